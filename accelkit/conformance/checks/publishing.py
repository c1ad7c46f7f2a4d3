"""SL: when slices are written, and what is never left out. Not here: what else is in them."""

import time
from collections.abc import Iterator, Mapping, Sequence

from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.checks.slices import part_of
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.model import Check, Feature, Inapplicable, Unanswered
from accelkit.conformance.setups import MANY, Setup
from accelkit.conformance.sims.api.faults import writes
from accelkit.conformance.sims.api.journal import Asked
from accelkit.conformance.sims.api.values import number, part, parts, text
from accelkit.conformance.sims.dra.events import DriverRegistered
from accelkit.conformance.stage import Stage
from accelkit.conformance.staged import SOON_S, STILL_S
from accelkit.core.kube import SLICES, Json

REPAIR_S = 45.0
"""Until what somebody else has changed is as it should be."""
CHURN = 3
"""Writes that may still come when all has been said."""
FIRST_WRITE_S = 9.0
"""Three times what slices may take that were missing."""
APART_S = 4.0
"""A start that is so much later than the earliest waits on purpose, if there are two of them."""
SLOWER = 2
"""And so many times later than slices were that were missing: machines may be busy."""
NODES = ("conformance-0", "conformance-9", "conformance-2", "conformance-25", "conformance-18")
"""One after another, until two starts are late enough."""
ENTRIES = 32
"""Attributes and capacities of a device."""


def quiet(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    bench.still()
    before = len(bench.writes())
    bench.still()
    if news := bench.writes(since=before):
        yield f"nothing changes, and slices are written {len(news)} times in {STILL_S:g} s"


def restored(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    before = [device.item for device in bench.devices()]

    def whole() -> bool:
        there = [device for _, device in bench.stage.devices()]
        return there == before and bench.stage.published()

    name = text(bench.slices()[0], "metadata", "name")
    bench.ask(lambda: bench.api.delete(SLICES, name))
    if not bench.happens(whole, REPAIR_S):
        yield "a slice that somebody deleted does not come back"
        return
    bench.ask(lambda: _empty(bench))
    if not bench.happens(whole, REPAIR_S):
        yield "a slice that somebody emptied stays empty"


def _empty(bench: ClaimsBench) -> None:
    """Take the devices out of a slice, as somebody might by hand."""
    item = next(s for s in bench.stage.slices() if parts(s, "spec", "devices"))
    spec = {**part(item, "spec"), "devices": []}
    bench.api.replace(SLICES, {**item, "spec": spec})


def degraded(bench: ClaimsBench) -> Iterator[str]:
    before = bench.up()
    bench.driver.break_device()
    if not bench.happens(lambda: len(bench.stage.devices()) < len(before), SOON_S):
        yield "a broken device stays in slices of a server that drops taints: pods get it"
    bench.still()
    seen = len(bench.writes())
    bench.still()
    if (news := len(bench.writes()) - seen) > CHURN:
        yield f"where fields are dropped, slices are written {news} times in {STILL_S:g} s"
    if Feature.PROBES in bench.features and not _drops(bench):
        yield "fields are dropped, and no metric tells of it"


def _drops(bench: ClaimsBench) -> bool:
    lines = bench.driver.probe("/metrics")[1].splitlines()
    counted = [line for line in lines if line.startswith("accelkit_slice_drops_total")]
    return any(not line.endswith(" 0") for line in counted)


def never_mixed(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    old = {device.name: device.item for device in bench.devices()}
    since = bench.version()
    bench.restart(mark="b")
    if not bench.happens(lambda: bool(_changed(bench, old)), 3 * SOON_S):
        yield "its devices are to be published otherwise, and are as before"
        return
    bench.happens(lambda: len(_changed(bench, old)) == len(old), 3 * SOON_S)
    new = {device.name: device.item for device in bench.devices()}
    for state in bench.pools(since):
        devices = _complete(state)
        stale = {n for n, item in devices.items() if item == old.get(n) != new.get(n)}
        fresh = {n for n, item in devices.items() if item == new.get(n) != old.get(n)}
        if stale and fresh:
            yield (
                f"a pool that counts as complete has {len(fresh)} new devices and "
                f"{len(stale)} old ones"
            )
            return


def _changed(bench: ClaimsBench, old: Mapping[str, Json]) -> list[str]:
    return [
        text(device, "name")
        for _, device in bench.stage.devices()
        if device != old.get(text(device, "name"))
    ]


def _complete(state: Sequence[Json]) -> dict[str, Json]:
    """The devices of a pool by name, if it counts as complete."""
    newest = max((number(s, "spec", "pool", "generation") for s in state), default=0)
    current = [s for s in state if number(s, "spec", "pool", "generation") == newest]
    if not current or number(current[0], "spec", "pool", "resourceSliceCount") != len(current):
        return {}
    return {text(d, "name"): d for s in current for d in parts(s, "spec", "devices")}


def tainted(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    for device in devices:
        bench.prepared(bench.claim(device))
    bench.driver.break_device()
    if not bench.happens(lambda: any(d.get("taints") for _, d in bench.stage.devices()), SOON_S):
        yield "a device that a claim has is broken, and has no taint"
    bench.still(1.0)
    there = {device.name: device for device in bench.devices()}
    for device in devices:
        if device.name not in there:
            yield f"{device.name} is broken and leaves the slices while a claim has it"
        elif there[device.name].counters != device.counters:
            yield f"{device.name} is broken and has other counters"


def whole_seconds(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    bench.driver.break_device()
    if not bench.happens(lambda: any(d.get("taints") for _, d in bench.stage.devices()), SOON_S):
        raise Inapplicable("a broken device has no taint")
    bench.still()
    before = len(bench.writes())
    bench.still()
    if news := bench.writes(since=before):
        yield f"a taint lets slices be written {len(news)} times in {STILL_S:g} s"


def kept(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    before = {text(s, "metadata", "uid"): part_of(s) for s in bench.slices()}
    writes_before, since = len(bench.writes()), bench.version()
    registered = len(bench.sim.seen(DriverRegistered, driver=bench.stage.name))
    bench.driver.stop()
    if not bench.slices():
        yield "it removes its slices when it ends: all its devices are gone until it is back"
    bench.driver.start(bench.stage.root)
    bench.happens(
        lambda: (
            len(bench.sim.seen(DriverRegistered, driver=bench.stage.name)) > registered
            and bench.stage.published()
        ),
        3 * SOON_S,
    )
    bench.still()
    news = [w.verb for w in bench.writes(since=writes_before)]
    if "delete" in news or "deletecollection" in news:
        yield "it removes slices when it starts again"
    if {text(s, "metadata", "uid"): part_of(s) for s in bench.slices()} != before:
        yield "nothing has changed over a restart, and its slices are others"
    if any(not _complete(state) for state in bench.pools(since)):
        yield "over a restart there is no complete pool for a while"


def disturbed(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    faults = bench.api.faults
    faults.fail(1, status=409, reason="Conflict", message="it was changed", which=_of_slices)
    faults.throttle(1, which=_of_slices)
    faults.fail(1, status=503, reason="ServiceUnavailable", which=_of_slices)
    bench.ask(bench.api.expire)
    bench.ask(lambda: bench.api.cut_watches("resourceslices"))
    bench.driver.break_device()
    if not bench.happens(
        lambda: any(d.get("taints") for _, d in bench.stage.devices()), 3 * SOON_S
    ):
        yield "after a conflict, a server that is busy and a history that expired it gives up"


def _of_slices(asked: Asked) -> bool:
    return asked.plural == SLICES.plural and writes(asked)


def trimmed(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    for device in devices:
        size = len(part(device.item, "attributes")) + len(part(device.item, "capacity"))
        if size > ENTRIES:
            yield f"{device.name} has {size} attributes and capacities"
    bench.restart()
    bench.still()
    if [d.item for d in bench.devices()] != [d.item for d in devices]:
        yield "which attributes are left out is another matter each time"


def spread(bench: ClaimsBench) -> Iterator[str]:
    bench.spoil()
    starts: list[tuple[float, float]] = []
    for node in NODES:
        stage = Stage(bench.subject, Setup(), bench.seed, bench.scale, node=node)
        bench.enter(stage)
        (registered,) = bench.sim.seen(DriverRegistered, driver=stage.name)[:1]
        made_s = stage.first_seen_s - registered.at
        if made_s > bench.patience(FIRST_WRITE_S):
            yield f"slices that were missing are written {made_s:.1f} s after the registration"
        for mark in ("b", "c"):
            starts.append((made_s, _until_written(bench, mark)))
            late = _late(starts)
            if len(late) > 1:
                return
            if node != NODES[0] and not late:
                break  # there is nothing to be seen again
        bench.leave()
    told = ", ".join(f"{delay:.1f} s" for _, delay in starts)
    yield f"after an upgrade nodes write their slices {told} after their start: all at once"


def _late(starts: Sequence[tuple[float, float]]) -> list[float]:
    """Those of *starts* that are late by more than a busy machine lets them be.

    Args:
        starts: Seconds until slices were made that were missing, and until they were changed.
    """
    least = min(delay for _, delay in starts)
    return [delay for made, delay in starts if delay - least >= max(APART_S, SLOWER * made)]


def _until_written(bench: ClaimsBench, mark: str) -> float:
    """Seconds from a restart to the first change of slices that are there."""
    before = len(bench.writes())
    bench.restart(mark=mark)
    began = time.monotonic()
    if not bench.happens(lambda: len(bench.writes()) > before, 4 * SOON_S):
        raise Unanswered("its devices are to be published otherwise, and are as before")
    return time.monotonic() - began


def held(bench: ClaimsBench) -> Iterator[str]:
    if not {Feature.WITHDRAW, Feature.REDRAW} & bench.features:
        raise Inapplicable("devices cannot be changed from here")
    if Feature.REDRAW in bench.features:
        yield from _stays_shareable(bench)
        bench.leave()
    if Feature.WITHDRAW in bench.features:
        yield from _stays_listed(bench)


def _stays_shareable(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    if not any(device.shareable for device in devices):
        return
    device = bench.shareable(devices)
    bench.prepared(bench.claim(device))
    bench.restart(shares=1)
    bench.happens(lambda: any(not d.get(_MANY) for _, d in bench.stage.devices()), 2 * SOON_S)
    found = bench.device(device.name)
    if found is None or not found.shareable:
        yield f"{device.name} is not shareable any more while a share of it is out"


_MANY = "allowMultipleAllocations"


def _stays_listed(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up(shares=1)
    bench.spoil()
    for device in devices:
        bench.prepared(bench.claim(device))
    since = bench.version()
    bench.driver.withdraw_device()
    bench.happens(lambda: len(bench.stage.devices()) < len(devices) or _tainted(bench), SOON_S)
    lost = {d.name for d in devices}
    for state in bench.pools(since):
        lost &= {text(d, "name") for s in state for d in parts(s, "spec", "devices")}
    for name in sorted({d.name for d in devices} - lost):
        yield f"{name} leaves the slices while a claim has it: it is given away again"


def _tainted(bench: ClaimsBench) -> bool:
    return any(d.get("taints") for _, d in bench.stage.devices())


def held_first(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    bench.spoil()
    names = {device.name for device in devices}
    for device in devices:
        bench.prepared(bench.claim(device))
    bench.driver.stop()
    bench.driver.withdraw_device()
    bench.wipe()
    since = bench.version()
    bench.driver.start(bench.stage.root)
    if not bench.happens(bench.stage.published, 3 * SOON_S):
        yield "after a restart with devices in use it publishes nothing"
        return
    bench.still(1.0)
    for state in bench.pools(since):
        there = _complete(state)
        if there and (missing := sorted(names - there.keys())):
            yield f"after a restart devices are published without {missing[0]}, which a claim has"
            return


def probed(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    asked = bench.ask(lambda: [a for a in bench.api.journal.asked if a.plural == SLICES.plural])
    made = [a for a in asked if a.writes]
    if not made or not made[0].dry_run:
        yield "it writes slices without asking by a dry run which fields the server keeps"


CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims("SL08", "Nothing is written where nothing changes.", quiet),
    with_claims("SL09", "What others change of slices is put right.", restored),
    with_claims(
        "SL10",
        "Where fields are dropped, devices that need them are left out.",
        degraded,
        Feature.BREAK,
        setup=Setup(release="1.35"),
    ),
    with_claims(
        "SL11",
        "A pool that counts as complete is never half old.",
        never_mixed,
        Feature.MANY,
        Feature.REDRAW,
        Feature.RESTART,
        setup=Setup(units=MANY),
    ),
    with_claims(
        "SL12", "A broken device that a claim has gets a taint, and stays.", tainted, Feature.BREAK
    ),
    with_claims("SL13", "A taint is written once.", whole_seconds, Feature.BREAK),
    with_claims("SL14", "Slices stay over a restart.", kept, Feature.STOP, Feature.RESTART),
    with_claims(
        "SL15",
        "Conflicts, busy servers and expired histories are got over.",
        disturbed,
        Feature.BREAK,
        must=False,
    ),
    with_claims(
        "SL16",
        "Attributes that are too many are left out, the same each time.",
        trimmed,
        Feature.RICH,
        Feature.RESTART,
        must=False,
        setup=Setup(rich=True),
    ),
    with_claims(
        "SL17",
        "A fleet that is upgraded does not write at once, a node that starts does.",
        spread,
        Feature.NODES,
        Feature.REDRAW,
        Feature.RESTART,
        must=False,
    ),
    with_claims(
        "SL18", "A device that a claim has stays published as it is.", held, setup=Setup(shares=2)
    ),
    with_claims(
        "SL19",
        "After a start nothing is published without the devices that claims have.",
        held_first,
        Feature.WITHDRAW,
        Feature.STOP,
        Feature.RESTART,
    ),
    with_claims("SL22", "Fields that servers may drop are tried by a dry run.", probed, must=False),
)
