"""DR and AG: calls again, late, at once, and in the middle of others. Not here: answers."""

import time
from collections.abc import Callable, Iterator

import grpc.aio

from accelkit.backends.wire import services
from accelkit.conformance.calls import prepare_request
from accelkit.conformance.checks.claims import exclusive, two_of
from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.claims_bench import ClaimsBench, config_block
from accelkit.conformance.model import Badge, Check, Feature, Inapplicable
from accelkit.conformance.sims.api.faults import Which
from accelkit.conformance.sims.api.journal import Asked
from accelkit.conformance.sims.api.values import text
from accelkit.conformance.sims.dra.cdi import Unresolvable
from accelkit.conformance.sims.dra.events import UnprepareAnswered
from accelkit.conformance.staged import SOON_S
from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import EVENTS

MANY = 100
BUDGET_S = 10.0
"""For so many claims in one call."""
SLOW_S = 4.0
"""How much later the API server answers where a call has to be slow."""
PAUSE_S = 2.0
"""For what comes meanwhile, on a machine that does much else, too; no caller gives up so soon."""


def asks_for(ref: ClaimRef) -> Which:
    """Requests for one claim."""
    return lambda asked: asked.plural == "resourceclaims" and asked.name == ref.name


def slowed(bench: ClaimsBench, ref: ClaimRef, seconds: float) -> Callable[[], bool]:
    """Let the claim be answered late; returns what tells whether it was asked for since."""
    since = bench.ask(lambda: len(bench.api.journal.asked))
    bench.api.faults.delay(seconds, None, which=asks_for(ref))

    def is_asked() -> bool:
        news: list[Asked] = bench.api.journal.asked[since:]
        return any(asks_for(ref)(asked) for asked in news)

    return is_asked


def again(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    first = bench.prepared(ref)
    before = bench.injected(first)
    for _ in range(3):
        if bench.prepared(ref) != first:
            yield "a claim that is prepared is answered otherwise when it is asked for again"
            return
    if bench.injected(first) != before:
        yield "what a container gets changes when a claim is asked for again"


def given_back(bench: ClaimsBench) -> Iterator[str]:
    ref, deleted = bench.claim(bench.up()[0]), bench.unallocated()
    unknown = ClaimRef(uid=deleted.uid, namespace=deleted.namespace, name="never-heard-of")
    if why := bench.unprepare(unknown).get(unknown.uid, "there is no answer"):
        yield f"a claim that was never prepared cannot be given back: {why}"
    bench.prepared(ref)
    for turn in ("once", "once more"):
        if why := bench.unprepare(ref).get(ref.uid, "there is no answer"):
            yield f"a claim cannot be given back {turn}: {why}"
    bench.prepared(ref)
    bench.forget(ref)
    if why := bench.unprepare(ref).get(ref.uid, "there is no answer"):
        yield f"a claim cannot be given back when it is deleted: {why}"


def forced(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    ref = bench.wanted()
    pod = bench.run(ref)
    bench.delete(pod, force=True)
    if not bench.gone(pod):
        yield "a pod that was deleted by force is not given back"
    if not bench.happens(lambda: not bench.files_of(ref)):
        yield f"{bench.files_of(ref)[0].name} is left when a pod was deleted by force"


def by_the_next(bench: ClaimsBench) -> Iterator[str]:
    one, other = two_of(bench.up())
    asked, silent = bench.claim(one), bench.claim(other)
    before = {ref: bench.prepared(ref) for ref in (asked, silent)}
    bench.restart()
    bench.still(PAUSE_S)
    for devices in before.values():
        try:
            bench.injected(devices)
        except Unresolvable as error:
            yield f"after a restart no container can be made again of a claim: {error}"
    if bench.prepared(asked) != before[asked]:
        yield "after a restart a claim that is prepared is answered otherwise"
    for ref in (asked, silent):
        if why := bench.unprepare(ref).get(ref.uid, "there is no answer"):
            yield f"after a restart a claim cannot be given back: {why}"
        if bench.files_of(ref):
            yield f"after a restart {bench.files_of(ref)[0].name} is left of a claim given back"
    if refused := bench.refusal(bench.claim(one, other)):
        yield f"what was given back after a restart is not to be had: {refused}"


def retried(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    ref = bench.unallocated()
    if bench.refusal(ref) is None:
        yield "a claim is prepared that has no devices"
    if bench.files_of(ref):
        yield f"{bench.files_of(ref)[0].name} is left of a claim that was refused"
    bench.allocate(ref, {"allocation": {"devices": {"results": [bench.result(device)]}}})
    bench.prepared(ref)
    bench.unprepare(ref)
    if bench.files_of(ref):
        yield f"{bench.files_of(ref)[0].name} is left of a claim that was given back"
    if why := bench.refusal(bench.claim(device)):
        yield f"its device is not to be had after that: {why}"


def joined(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    slowed(bench, ref, PAUSE_S)
    calls = [bench.begin(services.PREPARE, prepare_request([ref])) for _ in range(2)]
    bench.happens(lambda: all(call.done() for call in calls), SOON_S)
    bench.api.faults.mend()
    answers = []
    for call in calls:
        try:
            answers.append(bench.outcome(call).claims[ref.uid])
        except (grpc.aio.AioRpcError, TimeoutError) as error:
            yield f"asked for twice at once, a claim is not answered: {error}"
    if len(answers) == len(calls) and answers[0] != answers[1]:
        yield "asked for twice at once, a claim has two answers"
    if any(answer.error for answer in answers):
        yield f"asked for twice at once, a claim is refused: {answers[0].error or answers[1].error}"
    bench.prepared(ref)


def side_by_side(bench: ClaimsBench) -> Iterator[str]:
    one, other = two_of(bench.up())
    slow, quick = bench.claim(one), bench.claim(other)
    is_asked = slowed(bench, slow, bench.patience(SLOW_S))
    call = bench.begin(services.PREPARE, prepare_request([slow]))
    bench.happens(lambda: is_asked() or call.done(), SOON_S)
    if not is_asked() or call.done():
        raise Inapplicable("it does not ask for a claim, so that none can be made slow")
    bench.prepared(quick)
    if call.done():
        yield f"a claim waits for another one that takes {bench.patience(SLOW_S):g} s"
    bench.outcome(call)
    bench.keep(slow)


def while_away(bench: ClaimsBench) -> Iterator[str]:
    one, other = two_of(bench.up())
    known, new = bench.claim(one), bench.claim(other)
    before = bench.prepared(known)
    bench.stage.do(bench.api.stop())
    try:
        again_ = bench.attempt(known)
        guessed = bench.attempt(new)
    finally:
        bench.stage.do(bench.api.start())
    if again_ not in (None, before):
        yield "while the API server is away, a claim that is prepared is answered otherwise"
    if guessed is not None and [d.device for d in guessed] != [other.name]:
        yield f"while the API server is away, a claim gets {guessed[0].device}, not {other.name}"
    found = bench.prepared(new)
    if [d.device for d in found] != [other.name]:
        yield f"when the API server is back, a claim gets {found[0].device}, not {other.name}"


def many(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    refs = [bench.claim(device, admin=True) for _ in range(MANY)]
    began = time.monotonic()
    answers = bench.prepare(*refs, timeout_s=3 * BUDGET_S)
    took_s = time.monotonic() - began
    if wrong := [a.error for a in answers.values() if a.error]:
        yield f"{len(wrong)} of {MANY} claims are not prepared: {wrong[0]}"
    if took_s > bench.patience(BUDGET_S):
        yield f"{MANY} claims in one call take {took_s:.1f} s"


def waits(bench: ClaimsBench) -> Iterator[str]:
    device = exclusive(bench.up())
    holder, next_one = bench.claim(device), bench.claim(device)
    bench.prepared(holder)
    call = bench.begin(services.PREPARE, prepare_request([next_one]))
    bench.keep(next_one)
    bench.still(PAUSE_S)
    if call.done():
        answer = bench.outcome(call).claims[next_one.uid]
        if not answer.error:
            yield f"{device.name} is prepared for a claim while another one has it"
        else:
            yield f"a claim is refused whose device is being given back: {answer.error}"
        return
    bench.unprepare(holder)
    answer = bench.outcome(call).claims[next_one.uid]
    if answer.error:
        yield f"a claim is refused although its device was given back: {answer.error}"


def inside(bench: ClaimsBench) -> Iterator[str]:
    device = exclusive(bench.up())
    ref = bench.claim(device)
    is_asked = slowed(bench, ref, PAUSE_S)
    call = bench.begin(services.PREPARE, prepare_request([ref]))
    bench.happens(lambda: is_asked() or call.done(), SOON_S)
    if why := bench.unprepare(ref).get(ref.uid, "there is no answer"):
        yield f"a claim cannot be given back while it is being prepared: {why}"
    bench.outcome(call)
    bench.api.faults.mend()
    if not bench.happens(lambda: not bench.files_of(ref)):
        yield f"{bench.files_of(ref)[0].name} is left of a claim given back while it was prepared"
    if refused := bench.refusal(bench.claim(device), timeout_s=SOON_S):
        yield f"a device stays with a claim that was given back while it was prepared: {refused}"


def ends_what_it_began(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    bench.spoil()
    is_asked = slowed(bench, ref, PAUSE_S)
    call = bench.begin(services.PREPARE, prepare_request([ref]))
    bench.happens(lambda: is_asked() or call.done(), SOON_S)
    if call.done() or not is_asked():
        raise Inapplicable("it does not ask for a claim, so that none can be made slow")
    bench.driver.stop()
    try:
        answer = bench.outcome(call).claims[ref.uid]
    except grpc.aio.AioRpcError as error:
        yield f"a claim that is being prepared when it is asked to end is cut: {error.details()}"
        return
    if answer.error:
        yield f"a claim that is being prepared when it is asked to end is refused: {answer.error}"


def tells(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    block = config_block(bench.stage.name, bench.driver.blocks().first)
    ref = bench.wanted(config=[{"opaque": block["opaque"]}])
    pod = bench.run(ref)
    bench.driver.stick()
    bench.delete(pod)
    failed = bench.happens(lambda: any(e.error for e in bench.sim.seen(UnprepareAnswered)))
    told = failed and bench.happens(lambda: any(_is_about(e, ref, pod) for e in _events(bench)))
    bench.driver.loosen()
    if not failed:
        raise Inapplicable("its release does not fail, whatever the hardware says")
    if not told:
        yield "a claim cannot be given back, and no event in its namespace says so"
    if not bench.gone(pod, 3 * SOON_S):
        yield "a claim is not given back when the hardware is in order again"


def _events(bench: ClaimsBench) -> list[dict[str, object]]:
    return [dict(event) for event in bench.api.items(EVENTS)]


def _is_about(event: dict[str, object], ref: ClaimRef, pod: str) -> bool:
    here = text(event, "metadata", "namespace") == ref.namespace
    regarding = text(event, "regarding", "name"), text(event, "related", "name")
    return here and bool({ref.name, pod} & {*regarding})


CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims("DR05", "The same claim has the same answer, however often.", again, Feature.CDI),
    with_claims("DR12", "What nobody knows can be given back.", given_back),
    with_claims(
        "DR13", "What a pod had that was deleted by force is given back.", forced, Feature.CDI
    ),
    with_claims(
        "DR14",
        "What one process prepared, the next one knows and gives back.",
        by_the_next,
        Feature.RESTART,
        Feature.CDI,
    ),
    with_claims("DR18", "A claim that was refused leaves nothing.", retried, Feature.CDI),
    with_claims("DR19", "A claim that is asked for twice at once is prepared once.", joined),
    with_claims("DR20", "A claim does not wait for another one.", side_by_side),
    with_claims("DR23", "Without an API server no device is guessed.", while_away),
    with_claims("DR24", "A hundred claims in one call come in time.", many, must=False),
    with_claims("DR26", "A claim waits for a device that is being given back.", waits),
    with_claims(
        "DR27",
        "A claim that is given back while it is prepared leaves nothing.",
        inside,
        Feature.CDI,
    ),
    with_claims(
        "DR30",
        "What is being prepared is prepared before the process ends.",
        ends_what_it_began,
        Feature.STOP,
    ),
    with_claims(
        "AG24",
        "A claim that cannot be given back is told in its namespace.",
        tells,
        Feature.STICK,
        Feature.CONFIG,
        badges=(Badge.AGENT,),
    ),
)
