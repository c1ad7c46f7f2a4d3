"""SL: what is in slices. Not here: when they are written."""

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.model import Check, Feature, Inapplicable
from accelkit.conformance.setups import MANY, Setup
from accelkit.conformance.sims.api.quantity import amount
from accelkit.conformance.sims.api.values import entries, number, parts, text, texts
from accelkit.conformance.staged import SOON_S, Offered
from accelkit.core.kube import NODES, Json

TEXT_LIMIT = 64
CUT = Setup(cut=True)
"""Bytes of a string or a version in an attribute."""
Counters = Mapping[tuple[str, str], Fraction]


def accepted(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    yield from _refused(bench)


def _refused(bench: ClaimsBench) -> Iterator[str]:
    """Requests that the server does not take, whatever its state."""
    counts = Counter(w.status for w in bench.writes() if w.status in {400, 422})
    for status, count in counts.items():
        yield f"{count} writes of slices are refused with {status}"


def many(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    if len(devices) < bench.many:
        yield f"of {bench.many} devices {len(devices)} are published"
    if Feature.BREAK in bench.features:
        bench.driver.break_device()
        if not bench.happens(
            lambda: any(d.get("taints") for _, d in bench.stage.devices()), 3 * SOON_S
        ):
            yield f"one of {len(devices)} devices is broken, and none has a taint"
        elif not bench.happens(bench.stage.published):
            yield f"with a taint on one of {len(devices)} devices its pool is not complete"
    yield from _refused(bench)


def one_generation(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    slices = bench.slices()
    generations = {number(s, "spec", "pool", "generation") for s in slices}
    counts = {number(s, "spec", "pool", "resourceSliceCount") for s in slices}
    if len(generations) > 1:
        yield f"slices of one pool have the generations {sorted(generations)}"
    if counts != {len(slices)}:
        yield f"there are {len(slices)} slices, and they say that there are {sorted(counts)}"


def names(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    slices = bench.slices()
    pools = sorted({text(s, "spec", "pool", "name") for s in slices})
    if len(pools) > 1:
        yield f"the devices of one node are in the pools {', '.join(pools)}"
    counts = Counter(device.name for device in bench.devices())
    yield from (f"{name} is published {n} times" for name, n in counts.items() if n > 1)


def _counted(bench: ClaimsBench) -> tuple[list[Json], list[Offered]]:
    """Slices with counter sets, and devices that consume counters.

    Raises:
        Inapplicable: There are none.
    """
    bench.up()
    slices, devices = bench.slices(), bench.devices()
    if not any("sharedCounters" in part_of(s) for s in slices) and not any(
        "consumesCounters" in d.item for d in devices
    ):
        raise Inapplicable("no counters are published: nothing overlaps")
    return slices, devices


def part_of(item: Json) -> Json:
    """The specification of a slice."""
    spec = item.get("spec")
    return spec if isinstance(spec, dict) else {}


def totals(slices: list[Json]) -> Counters:
    """What every counter holds, by set and counter."""
    return {
        (text(one, "name"), name): amount(text(value, "value"))
        for item in slices
        for one in parts(item, "spec", "sharedCounters")
        for name, value in entries(one, "counters")
    }


def resolve(bench: ClaimsBench) -> Iterator[str]:
    slices, devices = _counted(bench)
    known = totals(slices)
    for item in slices:
        if "sharedCounters" in part_of(item) and not parts(item, "spec", "sharedCounters"):
            yield "a slice has a list of counter sets with nothing in it"
        for one in parts(item, "spec", "sharedCounters"):
            if not dict(entries(one, "counters")):
                yield f"counter set {text(one, 'name')} has no counter"
    for device in devices:
        missing = sorted(device.counters.keys() - known.keys())
        yield from (f"{device.name} consumes {n} of {s}, which is not there" for s, n in missing)


def apart(bench: ClaimsBench) -> Iterator[str]:
    slices, _ = _counted(bench)
    for item in slices:
        if parts(item, "spec", "sharedCounters") and parts(item, "spec", "devices"):
            yield f"{text(item, 'metadata', 'name')} has counter sets beside devices"
    yield from _refused(bench)


def owned(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    node = bench.ask(lambda: bench.api.get(NODES, bench.stage.node))
    for item in bench.slices():
        name = text(item, "metadata", "name")
        owners = parts(item, "metadata", "ownerReferences")
        if not any(text(one, "uid") == text(node, "metadata", "uid") for one in owners):
            yield f"{name} does not belong to its node, and stays when that is removed"
        for one in owners:
            if (text(one, "kind"), text(one, "apiVersion")) != ("Node", "v1"):
                yield f"{name} belongs to {text(one, 'kind')} {text(one, 'name')}"


def strict(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    slices = bench.slices()
    known = totals(slices)
    for device in bench.devices():
        yield from (f"{device.name}: {fault}" for fault in _too_long(device))
        for (where, name), value in device.counters.items():
            taken, there = amount(value), known.get((where, name))
            if taken <= 0:
                yield f"{device.name} consumes {value} of {name}: not more than nothing"
            elif there is not None and taken > there:
                yield f"{device.name} consumes {value} of {name}, which holds {there}"
            elif there is None:
                yield f"{device.name} consumes {name} of {where}, which is not there"


def _too_long(device: Offered) -> Iterator[str]:
    for name, value in entries(device.item, "attributes"):
        values = (text(value, "string"), text(value, "version"), *texts(value, "strings"))
        for one in values:
            if len(one.encode()) > TEXT_LIMIT:
                yield f"its {name} has {len(one.encode())} bytes, more than {TEXT_LIMIT}"


def ordered(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    before = [device.name for device in bench.devices()]
    bench.wipe()
    if not bench.happens(bench.stage.published, 3 * SOON_S):
        yield "slices that were removed do not come back"
        return
    bench.happens(lambda: len(bench.stage.devices()) == len(before))
    if (after := [device.name for device in bench.devices()]) != before:
        moved = next((b for a, b in zip(before, after, strict=False) if a != b), "its end")
        yield f"the order of devices is another one each time they are published, from {moved} on"


def whole_numbers(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    for device in bench.devices():
        for name, value in entries(device.item, "capacity"):
            found = [text(value, "value"), text(value, "requestPolicy", "default")]
            bounds = ("min", "max", "step")
            found += [text(value, "requestPolicy", "validRange", bound) for bound in bounds]
            policy = value.get("requestPolicy")
            found += texts(policy, "validValues") if isinstance(policy, dict) else []
            for quantity in filter(None, found):
                if amount(quantity).denominator != 1:
                    yield f"{device.name} has {quantity} of {name}: requests for parts never fit"


def no_overlap(bench: ClaimsBench) -> Iterator[str]:
    slices, devices = _counted(bench)
    known = totals(slices)
    consumed = {device.name: device.counters for device in devices}
    bench.leave()
    bench.up(release="1.35")
    left = dict(known)
    for device in bench.devices():
        for counter, value in consumed.get(device.name, {}).items():
            left[counter] = left.get(counter, Fraction(0)) - amount(value)
    over = sorted({where for (where, _), value in left.items() if value < 0})
    if over:
        yield (
            f"a server that drops counters is told of overlapping devices of {over[0]}: "
            "they are given out twice"
        )


CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims("SL01", "Slices are within the limits of the API.", accepted),
    with_claims(
        "SL02", "Many devices are in several slices.", many, Feature.MANY, setup=Setup(units=MANY)
    ),
    with_claims("SL03", "A pool is as large as it says, and of one generation.", one_generation),
    with_claims("SL04", "Names of devices are unique, and the node has one pool.", names),
    with_claims("SL05", "Counters that devices consume are there.", resolve, setup=CUT),
    with_claims("SL06", "Counter sets have slices of their own.", apart, setup=CUT),
    with_claims("SL07", "Slices belong to their node.", owned),
    with_claims("SL20", "What servers do not check is right, too.", strict, setup=CUT),
    with_claims("SL21", "Devices are in the same order each time.", ordered, setup=CUT),
    with_claims("SL23", "Where counters are dropped, nothing overlaps.", no_overlap, setup=CUT),
    with_claims("SL24", "Capacities are whole numbers.", whole_numbers, setup=Setup(shares=2)),
)
