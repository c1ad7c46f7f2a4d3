"""DP and T: what a driver answers when pods start. Not here: what it lists."""

from collections.abc import Callable, Iterator

import grpc

from accelkit.conformance.checks.making import over_sockets
from accelkit.conformance.model import Badge, Check, Feature, Inapplicable
from accelkit.conformance.sims.events import PreferredAsked
from accelkit.conformance.sims.pods import Phase
from accelkit.conformance.socket_bench import SOON_S, SocketBench, refusal

ANSWER_S = 6.0
"""Three times what an answer may take, whatever hangs."""
STRANGER = "no-such-device"


def refused(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    for asked in ([STRANGER], [ids[0], STRANGER]):
        if refusal(lambda asked=asked: bench.allocate(asked)) is None:  # type: ignore[misc]  # mypy#7464
            yield f"{', '.join(asked)} is handed out, and {STRANGER} is no device"
    if Feature.BREAK not in bench.driver.features:
        return
    bench.driver.break_device()
    if bench.happens(bench.sick, 3 * SOON_S):
        sick = min(bench.sick())
        if refusal(lambda: bench.allocate([sick])) is None:
            yield f"{sick} is handed out, and is not healthy"


def in_order(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()[:2]
    alone = [bench.allocate([i]).container_responses[0] for i in ids]
    together = bench.allocate(*([i] for i in ids)).container_responses
    if len(together) != len(ids):
        yield f"asked for {len(ids)} containers it answers for {len(together)}"
    elif list(together) != alone:
        yield "answers for two containers are not in the order of the questions"


def repeatable(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    first = bench.allocate(ids)
    for _ in range(3):
        if bench.allocate(ids) != first:
            yield "the same devices are answered otherwise when they are asked for again"
            return
    if bench.allocate(ids[::-1]) != first:
        yield "the same devices are answered otherwise when they are named in another order"


def files_first(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()[:1]
    names = [c.name for c in bench.allocate(ids).container_responses[0].cdi_devices]
    directory = bench.cdi
    assert directory is not None
    texts = [p.read_text("utf-8", "replace") for p in directory.glob("*.[jy]*")]
    for name in names:
        kind, _, device = name.partition("=")
        if not any(kind in text and device in text for text in texts):
            yield f"{name} is answered, and no file in {directory} has it"


def preference(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    pod = bench.do(bench.sim.admit("pod", {bench.resource: max(1, len(ids) // 2)}))
    if pod.phase is not Phase.RUNNING:
        yield f"a pod fails: {pod.message}"
    yield from (
        f"it has no answer for {e.size} of {len(e.available)} devices"
        for e in bench.sim.seen(PreferredAsked, answer=None)
    )
    odd: tuple[tuple[str, list[str], list[str], int], ...] = (
        ("nothing", ids, [], 0),
        ("more than there are", ids, [], len(ids) + 3),
        ("one of none", [], [], 1),
        ("a device that is not known", [*ids, STRANGER], [STRANGER], 2),
        ("fewer than must be", ids, ids, 1),
    )
    if not bench.registered()[-1].options.preferred:
        return
    for what, available, must, size in odd:
        if error := refusal(
            lambda a=available, m=must, s=size: bench.prefer(a, m, s)  # type: ignore[misc]  # mypy#7464
        ):
            yield f"asked for {what} it fails, and the pod with it: {error.details()}"


def _prefers(bench: SocketBench) -> None:
    if not bench.registered()[-1].options.preferred:
        raise Inapplicable("it registers without preferences")


def choice(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    _prefers(bench)
    for size in range(1, len(ids) + 1):
        for must in ([], ids[-1:], ids[: size - 1]):
            if len(must) > size:
                continue
            chosen = bench.prefer(ids, must, size)
            what = f"{size} of {len(ids)} with {', '.join(must) or 'none'}"
            if len(chosen) != size or len(set(chosen)) != size:
                yield f"{what}: it prefers {len(chosen)}"
            if not set(must) <= set(chosen):
                yield f"{what}: {min(set(must) - set(chosen))} is not among the preferred"
            if not set(chosen) <= set(ids):
                yield f"{what}: {min(set(chosen) - set(ids))} could not be had"
            again = bench.prefer(ids[::-1], must[::-1], size)
            if set(again) != set(chosen):
                yield f"{what}: it prefers others when it is asked again"


def quick_choice(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    _prefers(bench)
    half = max(1, len(ids) // 2)
    yield from _in_time(bench, "a preference", lambda: bench.prefer(ids, [], half, ANSWER_S))


def _in_time(bench: SocketBench, what: str, call: Callable[[], object]) -> Iterator[str]:
    error = refusal(call)
    # An error within the limit is an answer: what must not be is that the kubelet waits.
    if error is not None and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        yield f"{what} is not answered within {bench.patience(ANSWER_S):g} s"


def answers(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    if Feature.HANG in bench.driver.features:
        bench.driver.hang()
    for _ in range(2):
        yield from _in_time(bench, "Allocate", lambda: bench.allocate(ids[:1], timeout_s=ANSWER_S))
    if bench.registered()[-1].options.preferred:
        yield from _in_time(bench, "a preference", lambda: bench.prefer(ids, [], 1, ANSWER_S))


def hung(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    bench.driver.hang()
    stream = bench.watch()
    if not bench.happens(lambda: stream.lists):
        yield "no list comes to a new stream while the hardware hangs"
    yield from _in_time(bench, "Allocate", lambda: bench.allocate(ids[:1], timeout_s=ANSWER_S))
    bench.do(stream.close())


CHECKS: tuple[Check[SocketBench], ...] = (
    over_sockets("DP09", "What is unknown or not healthy is not handed out.", refused),
    over_sockets("DP10", "There is one answer for each container, in order.", in_order),
    over_sockets("DP11", "The same question has the same answer.", repeatable),
    over_sockets(
        "DP12",
        "CDI names that are answered are in a file by then.",
        files_first,
        Feature.CDI,
    ),
    over_sockets("DP13", "Asking for a preference never fails.", preference),
    over_sockets("DP15", "Hardware that hangs holds up no list and no answer.", hung, Feature.HANG),
    over_sockets("DP22", "Allocate and preferences are answered in time.", answers),
    over_sockets(
        "T10",
        "A preference has the right size, what must be in it, and nothing else than there is.",
        choice,
        badges=(Badge.DEVICE_PLUGIN, Badge.TOPOLOGY),
    ),
    over_sockets(
        "T11",
        "A preference for half of the devices comes in time.",
        quick_choice,
        badges=(Badge.DEVICE_PLUGIN, Badge.TOPOLOGY),
    ),
)
