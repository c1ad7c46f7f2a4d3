"""D: what a plugin says is there. Not here: how the devices are called and how they are."""

from collections.abc import Iterator

import attrs

from accelkit.conformance.bench import PluginBench, aside, grant, told
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.doors import Shuffled, Watched
from accelkit.conformance.model import Check, Feature
from accelkit.core.attributes import check_attributes, declaration_problems
from accelkit.core.model import Device, Profile, Unreadable, VendorReport
from accelkit.core.policy import Selection
from accelkit.core.reading import grant_edits
from accelkit.core.selection import select
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import SupportsDiagnosis, SupportsHolders

MANY = 128
DISCOVER_S = 10.0
"""The deadline of discover."""


def differences(before: VendorReport, after: VendorReport) -> Iterator[str]:
    """What two reports of one machine do not have in common, a sentence each."""
    old, new = {d.id: d for d in before.devices}, {d.id: d for d in after.devices}
    for i in sorted(old.keys() ^ new.keys()):
        yield f"{i} is there only the {'first' if i in old else 'second'} time"
    for i in sorted(old.keys() & new.keys()):
        fields = [
            f.name
            for f in attrs.fields(Device)
            if getattr(old[i], f.name) != getattr(new[i], f.name)
        ]
        if fields:
            yield f"{i} differs in {', '.join(fields)}"
    for what in ("links", "groups", "problems", "software"):
        if getattr(before, what) != getattr(after, what):
            yield f"{what} differ"


def repeats(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    first = rig.report()
    for _ in range(3):
        yield from differences(first, rig.report())


def without_order(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    first = rig.report()
    for _ in range(3):
        door = Shuffled(rig.door, bench.rng)
        yield from differences(first, rig.report(vendor=bench.plugin(), door=door))


def only_looks(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    before, door, vendor = rig.tree(), Watched(rig.host), rig.vendor
    devices = rig.report(door=door).devices
    rig.reading(devices, door=door)
    grant_edits(vendor, door, grant(d for d in devices if d.usable))
    if isinstance(vendor, SupportsHolders):
        list(vendor.holders(door, devices))
    if isinstance(vendor, SupportsDiagnosis):
        list(vendor.diagnose(door))
    after = rig.tree()
    yield from (f"it writes to {path}" for path in door.written)
    changed = sorted(p for p in {*before, *after} if before.get(p) != after.get(p))
    yield from (f"{path.removeprefix(rig.directory or '')} is not as it was" for path in changed)


def added(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    unit = rig.units()[-1]
    rig.do(Feature.REMOVE, unit)
    few = {d.id for d in rig.report().devices}
    rig.do(Feature.REMOVE, unit, undo=True)
    if not {d.id for d in rig.report().devices} - few:
        yield f"{unit} is put in, and the next discovery does not see it"


def removed(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    before, unit = set(rig.ids()), rig.units()[1]
    rig.do(Feature.REMOVE, unit)
    gone = before - {d.id for d in rig.report().devices}
    if not gone:
        yield f"{unit} is taken out, and all devices are there still"
    links = [link for link in rig.report().links if {link.a, link.b} & gone]
    if links:
        yield f"{min(gone)} is gone, and still linked"


def readded(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    before = rig.report()
    for unit in rig.units()[:2]:
        rig.do(Feature.REMOVE, unit)
        rig.report()
        rig.do(Feature.REMOVE, unit, undo=True)
    yield from differences(before, rig.report())


def many(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig(count=MANY)
    ended, found = aside(rig.report, bench.patience(3 * DISCOVER_S))
    if not ended:
        yield f"{MANY} devices are not discovered within {3 * DISCOVER_S:g} s"
    elif isinstance(found, BaseException):
        raise found
    elif found is not None:
        whole = sum(d.parent is None for d in found.devices)
        if whole != MANY:
            yield f"{whole} of {MANY} devices are found"


def selectable(bench: PluginBench) -> Iterator[str]:
    devices = bench.rig().devices()
    for device in devices:
        found = select(Selection(name=(device.id.name,)), devices, "node")
        if found != (device,):
            yield f"{device.id}: selecting its name selects {len(found)} devices"
        texts: list[tuple[str, Selection]] = []
        if device.product:
            texts.append((device.product, Selection(product=(device.product,))))
        for name, value in device.attributes.items():
            if isinstance(value, str):
                wanted = Selection(attributes=FrozenMap({name: (value,)}))
                texts.append((f"{name} {value}", wanted))
        for text, wanted in texts:
            if device not in select(wanted, devices, "node"):
                yield f"{device.id}: selecting {text!r} as it is written does not select it"


def declared(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    for one in rig.vendor.discover(rig.door):
        if isinstance(one, Unreadable):
            continue
        parts: tuple[Device | Profile, ...] = (one, *one.profiles)
        for part in parts:
            yield from told(str(one.id), check_attributes(rig.vendor, part))


def not_reserved(bench: PluginBench) -> Iterator[str]:
    return declaration_problems(bench.subject.vendor.attributes)


def described(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    rig.devices()
    report = rig.report()
    yield from (f"{d.id} has no product" for d in report.devices if not d.product)
    if not report.software:
        yield "no version is told, neither of a driver nor of a library"
    yield from (f"the version of {n} is empty" for n, text in report.software.items() if not text)


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process("D01", "Two discoveries without a change in between are equal.", repeats),
    in_process(
        "D02", "Nothing depends on the order in which directories are listed.", without_order
    ),
    in_process(
        "D03", "Discovery and health change nothing on the host.", only_looks, Feature.MACHINE
    ),
    in_process(
        "D07",
        "A device that is added is seen by the next discovery.",
        added,
        Feature.REMOVE,
        must=False,
    ),
    in_process(
        "D08",
        "A device that is removed is gone with the next discovery, and so are its links.",
        removed,
        Feature.REMOVE,
        must=False,
    ),
    in_process(
        "D09",
        "A device that is removed and added again is the same device.",
        readded,
        Feature.REMOVE,
    ),
    in_process(
        "D10",
        "As many as 128 devices are discovered within the deadline.",
        many,
        Feature.MACHINE,
        must=False,
    ),
    in_process(
        "D11",
        "What a device says of itself selects it, written as it stands.",
        selectable,
        must=False,
    ),
    in_process(
        "D12", "Attributes and amounts are as declared and within the limits of the API.", declared
    ),
    in_process("D13", "No attribute has a name that accelkit itself publishes.", not_reserved),
    in_process(
        "D14",
        "Every device has a product, and the versions of the driver's software are told.",
        described,
        Feature.HARDWARE,
    ),
)
