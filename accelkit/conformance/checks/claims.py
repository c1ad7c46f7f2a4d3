"""DR: which claims a driver prepares, and with what. Not here: repeats, restarts, other calls."""

from collections.abc import Iterator, Sequence

import attrs
import grpc.aio

from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.claims_bench import ClaimsBench, config_block
from accelkit.conformance.model import Check, Feature, Inapplicable
from accelkit.conformance.setups import Setup
from accelkit.conformance.sims.dra.cdi import Injected
from accelkit.conformance.staged import Offered
from accelkit.core.kube import Json

STRANGER = "00000000-0000-4000-8000-00000000abcd"
"""The uid of no claim."""
OTHER = "other.conformance.test"
"""A driver that is not there."""
HOLD_S = 3.0
"""For so long a driver may wait for a device that another claim has; it need not refuse by then."""


def two_of(devices: Sequence[Offered]) -> tuple[Offered, Offered]:
    """Two devices.

    Raises:
        Inapplicable: There is one only.
    """
    if len(devices) < len(("one", "other")):
        raise Inapplicable("it publishes one device only")
    return devices[0], devices[1]


def exclusive(devices: Sequence[Offered]) -> Offered:
    """The first that one claim alone may have.

    Raises:
        Inapplicable: There is none.
    """
    for one in devices:
        if not one.shareable:
            return one
    raise Inapplicable("every device may be had by several claims")


def one_result_each(bench: ClaimsBench) -> Iterator[str]:
    first, *others = bench.up()
    refs = [bench.claim(first), bench.claim(first, admin=True)]
    refs += [bench.claim(device) for device in others[:1]]
    answers = bench.prepare(*refs)
    asked = {ref.uid for ref in refs}
    if alien := sorted(answers.keys() - asked):
        yield f"it answers for {alien[0]}, which was not asked for"
    if missing := asked - answers.keys():
        yield f"it does not answer for {len(missing)} of {len(asked)} claims in one call"
    for error in sorted({answer.error for answer in answers.values() if answer.error}):
        yield f"a claim that is in order is not prepared: {error}"
    given = bench.unprepare(*refs)
    if given.keys() != asked:
        yield "giving claims back is not answered for each of them"


def one_bad(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    good, bad = bench.claim(device), bench.unallocated()
    try:
        answers = bench.prepare(bad, good)
    except grpc.aio.AioRpcError as error:
        yield f"one claim without devices fails the whole call: {error.details()}"
        return
    if bad.uid not in answers or not answers[bad.uid].error:
        yield "a claim without devices is not refused by a text of its own"
    if good.uid not in answers or not answers[good.uid].devices:
        why = answers[good.uid].error if good.uid in answers else "it is not answered for"
        yield f"beside a claim that is refused, another is not prepared: {why}"


def other_uid(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    if bench.refusal(attrs.evolve(ref, uid=STRANGER)) is None:
        yield "a claim is prepared whose uid is not that of the claim of this name"
    bench.unprepare(attrs.evolve(ref, uid=STRANGER))
    if bench.refusal(attrs.evolve(ref, name="no-such-claim")) is None:
        yield "a claim is prepared that is not there"


def unallocated(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    if bench.refusal(bench.unallocated()) is None:
        yield "a claim is prepared that has not been given any device"


def others_left_out(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    alien: Json = {"request": "r", "driver": OTHER, "pool": "elsewhere", "device": device.name}
    block = config_block(OTHER, {"apiVersion": "other/v9", "kind": "Odd", "unknown": [1]})
    found = bench.prepared(bench.claim(device, results=[alien], config=[block]))
    if [one.device for one in found] != [device.name] or found[0].pool != device.pool:
        named = ", ".join(f"{one.pool}/{one.device}" for one in found)
        yield f"of a claim with a device of another driver it answers {named}"


def subrequests(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    for one in bench.prepared(bench.claim(device, request="main/sub")):
        strange = [name for name in one.requests if name != "main"]
        yield from (f"a device of request main/sub is answered for {name!r}" for name in strange)


def precedence(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    blocks, name = bench.driver.blocks(), bench.stage.name

    def effect(*given: tuple[str, Json]) -> tuple[str, Injected]:
        config = [config_block(name, block, source=source) for source, block in given]
        ref = bench.claim(device, config=config)
        injected = bench.injected(bench.prepared(ref))
        found = bench.driver.set_to(), injected
        bench.unprepare(ref)
        return found

    by_class, by_claim = "FromClass", "FromClaim"
    first, second = effect((by_claim, blocks.first)), effect((by_claim, blocks.second))
    if first == second:
        yield "two blocks that ask for different things have the same effect"
        return
    if effect((by_class, blocks.first)) != first:
        yield "a block of the device class has another effect than the same block of a claim"
    if effect((by_class, blocks.first), (by_claim, blocks.second)) != second:
        yield "a block of the device class wins over one of the claim"
    if effect((by_claim, blocks.second), (by_claim, blocks.first)) != first:
        yield "of two blocks of a claim the later one does not win"


def taken(bench: ClaimsBench) -> Iterator[str]:
    device = exclusive(bench.up())
    holder, rival = bench.claim(device), bench.claim(device)
    before = bench.prepared(holder)
    if bench.refusal(rival, timeout_s=HOLD_S) is None:
        yield f"{device.name} is prepared for a claim while another one has it"
    bench.unprepare(rival)
    if bench.prepared(holder) != before:
        yield "a claim is answered otherwise after another one has asked for its device"


def admin(bench: ClaimsBench) -> Iterator[str]:
    device = exclusive(bench.up())
    holder, watcher = bench.claim(device), bench.claim(device, admin=True)
    bench.prepared(holder)
    if why := bench.refusal(watcher):
        yield f"a claim with admin access cannot have a device that is in use: {why}"
    bench.unprepare(holder)
    bench.prepared(watcher)
    if why := bench.refusal(bench.claim(device)):
        yield f"a claim with admin access keeps others from a device: {why}"


def shares(bench: ClaimsBench) -> Iterator[str]:
    device = bench.shareable(bench.up())
    given = [bench.result(device), bench.result(device)]
    refs = [bench.claim(results=[one]) for one in given]
    found = [bench.prepared(ref) for ref in refs]
    for result, answer in zip(given, found, strict=True):
        if [one.share for one in answer] != [result["shareID"]]:
            yield f"share {result['shareID']} is answered as {answer[0].share}"
    names = [{name for one in answer for name in one.cdi} for answer in found]
    if names[0] & names[1]:
        yield f"two shares have one CDI name: {min(names[0] & names[1])}"
    bench.unprepare(refs[0])
    if bench.prepared(refs[1]) != found[1] or not bench.files_of(refs[1]):
        yield "giving one share back takes the other one away"


def split_set(bench: ClaimsBench) -> Iterator[str]:
    one, other = two_of(bench.up())
    apart = [bench.result(one, request="r"), bench.result(other, request="s")]
    split = bench.claim(results=apart)
    if bench.refusal(split) is None:
        yield "devices that must go together are prepared for two requests of a claim"
    bench.unprepare(split)
    bench.prepared(bench.claim(one))


CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims("DR04", "Each claim of a call has one answer.", one_result_each),
    with_claims("DR06", "One claim that is refused does not fail the others.", one_bad),
    with_claims("DR07", "A claim with another uid is refused.", other_uid),
    with_claims("DR08", "A claim that has no devices yet is refused.", unallocated),
    with_claims("DR09", "What other drivers give is left out.", others_left_out),
    with_claims("DR10", "Devices are answered for requests as containers name them.", subrequests),
    with_claims(
        "DR11",
        "Configuration of the claim wins over that of its class, and of two the later one.",
        precedence,
        Feature.CONFIG,
        Feature.CDI,
    ),
    with_claims("DR15", "A device that a claim has is given to no other one.", taken),
    with_claims("DR16", "Admin access takes nothing away.", admin),
    with_claims(
        "DR17", "Shares are told apart by their ids.", shares, Feature.CDI, setup=Setup(shares=2)
    ),
    with_claims(
        "DR25",
        "Devices that must go together are refused for several requests.",
        split_set,
        Feature.SETS,
    ),
)
