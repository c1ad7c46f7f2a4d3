"""AG: what operators see of claims, and upgrades and outages while there are some."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import grpc.aio

from accelkit.conformance.checks.claims import two_of
from accelkit.conformance.checks.extended import BY_CLAIMS, listed_first
from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.checks.measured import holders_in, series_in
from accelkit.conformance.checks.records import LATER_MINOR, record_of, rewrite
from accelkit.conformance.claims_bench import USER, ClaimsBench
from accelkit.conformance.model import Badge, Check, Feature, Inapplicable, Unanswered
from accelkit.conformance.setups import RESOURCE
from accelkit.conformance.sims.api.values import text
from accelkit.conformance.sims.dra.events import DriverRegistered
from accelkit.conformance.stage import NAMESPACE
from accelkit.conformance.staged import SOON_S
from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import EVENTS, Json

FIRST, MORE = 3, 5
"""Claims that come and go: the first ones may bring series for what happens first."""
RETRIES = 12
"""Of a kubelet, for a claim that cannot be prepared."""
MOST_EVENTS = 3
"""That may be written meanwhile."""
AGAIN_S = 45.0
"""Until what could not be published is."""
PAUSE_S = 0.01


def _page(bench: ClaimsBench) -> str:
    return bench.driver.probe("/metrics")[1]


def bounded(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    gone: list[ClaimRef] = []

    def pass_by(count: int) -> Counter[str]:
        for _ in range(count):
            ref = bench.claim(device)
            bench.prepared(ref)
            bench.unprepare(ref)
            gone.append(ref)
        sets = {(one.name, _without_bound(one.labels)) for one in series_in(_page(bench))}
        return Counter(name for name, _ in sets)

    before, between, after = pass_by(FIRST), pass_by(MORE), pass_by(MORE)
    for name, count in sorted(after.items()):
        grown = between[name] - before[name], count - between[name]
        if min(grown) >= MORE:  # once, that is what was measured for the first time meanwhile
            yield f"{MORE} claims came and went, and {name} has {grown[1]} series more"

    def told() -> list[str]:
        names = {word for ref in gone for word in (ref.uid, ref.name)}
        return [s.name for s in series_in(_page(bench)) if not names.isdisjoint(s.labels.values())]

    if not bench.comes(lambda: not told(), SOON_S):
        yield f"{told()[0]} tells of a claim that is gone"


def _without_bound(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((key, value) for key, value in labels.items() if key != "le")


def same_labels(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    by_claims = _told_of(bench, bench.run(bench.wanted()))
    bench.leave()
    listed_first(bench)
    by_plugin = _told_of(bench, bench.run(resources={RESOURCE: 1}))
    for how, (pod, labels) in (("a claim", by_claims), ("the device plugin", by_plugin)):
        wanted = {"namespace": NAMESPACE, "pod": pod, "container": "main"}
        for name, value in wanted.items():
            if labels.get(name) != value:
                yield (
                    f"of a pod that has a device by {how} the label {name} is "
                    f"{labels.get(name)!r}, not {value!r}"
                )
    if by_claims[1].keys() != by_plugin[1].keys():
        yield f"labels differ: {sorted(by_claims[1])} by claims, {sorted(by_plugin[1])} otherwise"


def _told_of(bench: ClaimsBench, pod: str) -> tuple[str, Mapping[str, str]]:
    """A pod, and the labels under which metrics tell what it has; none: they do not."""

    def found() -> list[Mapping[str, str]]:
        return [labels for labels in holders_in(_page(bench)) if pod in labels.values()]

    bench.comes(lambda: any(labels.get("container") for labels in found()), SOON_S)
    return pod, next(iter(found()), {})


def few_events(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    result = {**bench.result(device), "device": "conformance-nowhere"}
    ref = bench.claim(results=[result])
    known = bench.ask(lambda: {text(e, "metadata", "uid") for e in bench.api.items(EVENTS)})
    before = bench.ask(lambda: len(bench.api.journal.writes(EVENTS.plural)))
    for _ in range(RETRIES):
        if bench.refusal(ref) is None:
            raise Inapplicable("a claim for a device that is not there is prepared")

    def about() -> list[Json]:
        news = [e for e in bench.api.items(EVENTS) if text(e, "metadata", "uid") not in known]
        return [e for e in news if text(e, "regarding", "name") in {ref.name, USER}]

    if not bench.happens(about, SOON_S):
        raise Inapplicable("it emits no event of a claim that cannot be prepared")
    bench.still(0.5)
    news = bench.ask(lambda: bench.api.journal.writes(EVENTS.plural))[before:]
    if len(news) > MOST_EVENTS:
        yield f"a claim is asked for {RETRIES} times in vain, and that is told {len(news)} times"
    for event in bench.ask(about):
        yield from (
            f"an event of a claim that cannot be prepared has no {key}"
            for key in ("reason", "note")
            if not text(event, key)
        )


def says_what_is_left(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    bench.prepared(ref)
    before = len(bench.driver.logged())
    bench.spoil()
    bench.driver.stop()
    lines = bench.driver.logged()[before:]
    if not any(ref.name in str(line) or ref.uid in str(line) for line in lines):
        yield "it ends while a claim is prepared, and does not log which"


def can_be_searched(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    before = len(bench.driver.logged())
    ref = bench.wanted()
    pod = bench.run(ref)
    (device,) = bench.allocated(ref)
    lines = bench.driver.logged()[before:]
    for key, words in (("claim", (ref.uid, ref.name)), ("pod", (pod,)), ("device", (device,))):
        if not any(word in str(_under(line, key)) for line in lines for word in words):
            yield f"a claim is prepared, and no line of the log has its {key} under such a key"


def _under(line: Json, stem: str) -> list[object]:
    return [value for key, value in line.items() if key.startswith(stem)]


def over_upgrades(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    one, other = two_of(devices)
    kept = bench.claim(one)
    before = bench.prepared(kept)
    bench.spoil()
    twin = bench.driver.twin()
    bench.later(twin.kill)
    calls = Counter[str]()
    end = _load(bench, bench.claim(other), calls)
    try:
        _beside(bench, twin.start, calls)
        bench.driver.stop()
        if Feature.RECORDS in bench.features:
            rewrite(record_of(bench, kept), LATER_MINOR)
        _beside(bench, bench.driver.start, calls)
        twin.stop()
    finally:
        failed = end()
    yield from failed[:1]
    if bench.attempt(kept) != before:
        yield "a claim that was prepared before is answered otherwise after both"


def _beside(bench: ClaimsBench, start: Callable[[Path], None], calls: Counter[str]) -> None:
    """Let another instance register beside the one that runs, and be asked."""
    there = len(bench.sim.seen(DriverRegistered, driver=bench.stage.name))
    start(bench.stage.root)
    if not bench.happens(
        lambda: len(bench.sim.seen(DriverRegistered, driver=bench.stage.name)) > there, 3 * SOON_S
    ):
        raise Unanswered("another instance does not register beside the first")
    before = calls.total()
    bench.comes(lambda: calls.total() > before + 1, SOON_S)  # one more has begun and ended


def _load(bench: ClaimsBench, ref: ClaimRef, done: Counter[str]) -> Callable[[], list[str]]:
    """Prepare a claim and give it back, over and over, and count that in *done*.

    Returns:
        What ends that, and tells what failed.
    """
    over, failed = threading.Event(), list[str]()

    def work() -> None:
        while not over.is_set():
            if why := _turn(bench, ref):
                failed.append(f"while instances overlap, {why}")
            done["calls"] += 1
            time.sleep(PAUSE_S)

    thread = threading.Thread(target=work, name="conformance-load", daemon=True)
    thread.start()

    def end() -> list[str]:
        over.set()
        thread.join(bench.patience(SOON_S))
        return failed if done else [*failed, "no claim was prepared while instances overlapped"]

    return end


def _turn(bench: ClaimsBench, ref: ClaimRef) -> str:
    """Prepare a claim and give it back; returns what fails."""
    asked = bench.endpoint()
    try:
        answer = bench.prepare(ref, path=asked).get(ref.uid)
        if answer is None or answer.error:
            return f"a claim is not prepared: {answer.error if answer else 'no word of it'}"
        bench.unprepare(ref, path=asked)
    except grpc.aio.AioRpcError as error:
        # Where another one has registered meanwhile, who was asked may have ended by then.
        return f"a call fails: {error.details()}" if bench.endpoint() == asked else ""
    return ""


def without_api(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    before = bench.prepared(ref)
    bench.spoil()

    def cut() -> None:
        bench.wipe()
        bench.api.faults.hang_up(None)

    bench.restart(meanwhile=cut)
    if bench.attempt(ref) != before:
        yield "it starts while the API server is away, and a prepared claim is not answered"
    if bench.ask(bench.stage.slices):
        raise Unanswered("slices are there though no request was answered")
    bench.api.faults.mend()
    if not bench.happens(bench.stage.published, AGAIN_S):
        yield "the API server is there again, and it publishes nothing"


_BADGE = (Badge.AGENT,)
CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims(
        "AG03",
        "Claims that come and go leave no series behind.",
        bounded,
        Feature.PROBES,
        badges=_BADGE,
    ),
    with_claims(
        "AG05",
        "Who has a device is told in the same labels, whichever interface gave it.",
        same_labels,
        Feature.PROBES,
        Feature.EXTENDED,
        Feature.SWITCH,
        badges=_BADGE,
        setup=BY_CLAIMS,
    ),
    with_claims(
        "AG08",
        "What fails again and again is told a few times, with its reason.",
        few_events,
        badges=_BADGE,
    ),
    with_claims(
        "AG12",
        "Claims that are prepared when it ends are told.",
        says_what_is_left,
        Feature.STOP,
        Feature.LOG,
        badges=_BADGE,
    ),
    with_claims(
        "AG19",
        "The log can be searched for claims, pods and devices.",
        can_be_searched,
        Feature.LOG,
        badges=_BADGE,
        must=False,
    ),
    with_claims(
        "AG21",
        "An upgrade and the way back, side by side, cost no claim anything.",
        over_upgrades,
        Feature.TWIN,
        Feature.STOP,
        Feature.RESTART,
        badges=_BADGE,
    ),
    with_claims(
        "AG22",
        "A start without an API server serves what is prepared, and publishes later.",
        without_api,
        Feature.STOP,
        Feature.RESTART,
        badges=_BADGE,
    ),
)
