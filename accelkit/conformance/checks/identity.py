"""I: how devices are called. Not here: what they are. I07 is among the checks over sockets."""

from collections.abc import Iterator
from itertools import product

from accelkit.conformance.bench import PluginBench
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.model import Badge, Check, Feature
from accelkit.core.errors import ModelError
from accelkit.core.model import Device, DeviceId, partition_name

_HASH_SEEDS = ("1", "2")


def unique(bench: PluginBench) -> Iterator[str]:
    seen: set[DeviceId] = set()
    for device in bench.rig().raw():
        if device.id in seen:
            yield f"{device.id} is given to more than one device"
        seen.add(device.id)


def labels(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    try:
        devices = rig.raw()
    except ModelError as error:
        yield str(error)
        return
    for device in devices:
        if device.id.vendor != rig.vendor.name:
            yield f"{device.id} is not called a device of {rig.vendor.name}"
        if DeviceId.parse(str(device.id)) != device.id:
            yield f"{device.id} cannot be read back"


def after_restart(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    here = [str(i) for i in rig.ids()]
    for seed in _HASH_SEEDS:
        there = rig.elsewhere(seed).ids
        if sorted(here) != sorted(there):
            odd = min(set(here) ^ set(there), default="the order")
            yield f"another process on the same machine calls devices otherwise: {odd}"
            return


def after_reboot(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    before = rig.ids()
    for _ in range(2):
        rig.reboot()
        after = tuple(d.id for d in rig.report(vendor=bench.plugin()).devices)
        yield from (f"after a reboot {i} has another name" for i in before if i not in after)


def replaced(bench: PluginBench) -> Iterator[str]:
    old, new = bench.rig(seed=bench.seed + 1), bench.rig(seed=bench.seed + 2)
    yield from (
        f"new hardware in the old place is called {i}, too"
        for i in sorted({*old.ids()} & {*new.ids()})
    )


def partitions(bench: PluginBench) -> Iterator[str]:
    devices = bench.rig(cut=True).raw()
    by_id = {d.id: d for d in devices}
    parts = [d for d in devices if d.placement is not None]
    if not parts:
        yield "the machine should have partitions, and none is found"
    for part in parts:
        parent = by_id.get(part.parent) if part.parent else None
        place = part.placement
        assert place is not None
        if parent is None:
            yield f"{part.id}: its parent {part.parent} is not there"
            continue
        slugs = {p.name: p.slug for p in parent.profiles}
        if place.profile not in slugs:
            yield f"{part.id}: its parent has no profile {place.profile}"
        elif part.id.name != partition_name(parent.id.name, slugs[place.profile], place.start):
            yield f"{part.id} is {place.profile} at {place.start}, which its name does not say"
    yield from _ambiguous(devices)


def _ambiguous(devices: tuple[Device, ...]) -> Iterator[str]:
    """Names that could mean two partitions, made or not."""
    meant: dict[str, tuple[DeviceId, str, int]] = {}
    for device in devices:
        for profile, start in product(device.profiles, range(device.slots)):
            if start not in profile.starts:
                continue
            name = partition_name(device.id.name, profile.slug, start)
            mine = (device.id, profile.name, start)
            if meant.setdefault(name, mine) != mine:
                yield f"{name} means {meant[name][1]} and {profile.name}"


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process("I01", "No two devices have one id.", unique),
    in_process("I02", "Names are DNS labels that leave room for suffixes.", labels),
    in_process("I03", "Another process gives the same ids.", after_restart),
    in_process("I04", "Ids are the same after a reboot.", after_reboot, Feature.MACHINE),
    in_process(
        "I05",
        "Replaced hardware has a new id.",
        replaced,
        Feature.MACHINE,
        Feature.SERIALS,
    ),
    in_process(
        "I06",
        "The name of a partition says its parent, profile and place, and nothing else has it.",
        partitions,
        Feature.CUT,
        badges=(Badge.PARTITIONING,),
    ),
)
