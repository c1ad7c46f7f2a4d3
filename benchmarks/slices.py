"""From reports to slices that are checked, as they would be sent. In process, without a server."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial

import attrs

from accelkit.backends.dra.checking import check_pool
from accelkit.backends.dra.document import Document, render
from accelkit.backends.dra.pool import Dialect, Pool
from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Locality,
    Placement,
    Profile,
    VendorReport,
    partition_name,
)
from accelkit.core.policy import DraPolicy, Offer, Policy
from accelkit.core.reading import HealthReading
from accelkit.core.snapshot import assemble, build_view
from accelkit.core.values import AttributeValue, FrozenMap, Severity, Version
from accelkit.core.view import Assignment, View
from benchmarks.many import timed
from benchmarks.rows import Row

VENDOR = "acme"
DEVICES = 1024
CUT = 16
VARIANTS = 31
"""Of each: itself and 30 partitions."""
BUDGET_MS = 100
OFFER = Offer(name="all", through="dra")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAID: dict[str, AttributeValue] = {
    "architecture": "hopper",
    "brand": "X",
    "capability": Version(9, 0, 0),
    "driver": Version(580, 65, 6),
    "ecc": True,
    "index": 7,
    "serial": "0123456789",
    "uuid": "GPU-01234567-89ab-cdef-0123-456789abcdef",
}


def measure(rounds: int) -> Iterator[Row]:
    plain = [_device(f"gpu-{number:04}") for number in range(DEVICES)]
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for what, took in _steps(plain):
            found.setdefault(f"{DEVICES} devices: {what}", []).append(took)
        cut_ms, document = timed(partial(_checked, _cut_view(), None))
        found.setdefault(f"{CUT} devices, {VARIANTS} variants each → slices", []).append(cut_ms)
        assert sum(len(s.devices) for s in _pool(document).slices) == CUT * VARIANTS
    for what, values in found.items():
        told = what.endswith("view")
        yield Row(what=what, values=values, budget=None if told else BUDGET_MS)


def _steps(devices: Iterable[Device]) -> Iterator[tuple[str, float]]:
    view_ms, view = timed(partial(_view, devices))
    slices_ms, document = timed(partial(_checked, view, None))
    yield "reports → view", view_ms
    yield "view → slices", slices_ms
    yield "reports → slices, in all", view_ms + slices_ms
    first, *rest = devices
    burnt = Condition(code="burnt", severity=Severity.FATAL)
    again = _view([attrs.evolve(first, conditions=(burnt,)), *rest])
    yield "one is bad → slices", timed(partial(_checked, again, _pool(document)))[0]


def _device(name: str, **fields: object) -> Device:
    given: dict[str, object] = {
        "id": DeviceId(vendor=VENDOR, name=name),
        "kind": "gpu",
        "product": "X100",
        "locality": Locality(pci_address="0000:41:00.0", pcie_root="pci0000:40", numa_node=0),
        "attributes": SAID,
        "capacity": {"memory": 80 << 30},
    }
    return Device(**{**given, **fields})  # type: ignore[arg-type]  # fields by name


def _profiles() -> tuple[Profile, ...]:
    """Twelve slots: five quarters, four halves and two wholes, which differ in their engines."""
    shapes = ((3, (0, 3, 6, 9), 5), (6, (0, 6), 4), (12, (0,), 2))
    return tuple(
        Profile(
            name=f"{size}g.{kind}",
            slug=f"{size}g{kind}",
            size=size,
            starts=starts,
            capacity=FrozenMap({"memory": size << 30}),
            counters=FrozenMap({"ofa": 1} if kind == 1 else {}),
        )
        for size, starts, kinds in shapes
        for kind in range(kinds)
    )


def _view(devices: Iterable[Device]) -> View:
    several = tuple(devices)
    report = VendorReport(vendor=VENDOR, answered=True, devices=several)
    fine = FrozenMap((device.id, device.conditions) for device in several)
    reading = HealthReading(vendor=VENDOR, conditions=fine)
    return build_view(
        assemble("bench", [report], [reading], previous=None, held=(), now=NOW),
        Policy(offers=(OFFER,)),
        edits={device.id: ContainerEdits() for device in several},
        domains={VENDOR: "acme.test"},
        previous=None,
        now_s=1.0,
        now=NOW,
    )


def _cut_view() -> View:
    """Devices that may be had whole or in any part."""
    profiles = _profiles()
    totals = FrozenMap({"ofa": 1})
    names = [f"gpu-{number:02}" for number in range(CUT)]
    view = _view(_device(n, slots=12, counters=totals, profiles=profiles) for n in names)
    parts = tuple(
        _device(
            partition_name(name, profile.slug, start),
            parent=DeviceId(vendor=VENDOR, name=name),
            placement=Placement(profile=profile.name, start=start, size=profile.size),
            capacity=profile.capacity,
        )
        for name in names
        for profile in profiles
        for start in profile.starts
    )
    given = {part.id: Assignment(terms=OFFER) for part in parts}
    return attrs.evolve(view, potential=parts, assignments=FrozenMap({**view.assignments, **given}))


def _checked(view: View, previous: Pool | None) -> Document:
    before = {} if previous is None else {previous.driver: previous}
    document = render(view, DraPolicy(), Dialect(), before)
    assert not check_pool(_pool(document))
    return document


def _pool(document: Document) -> Pool:
    (pool,) = document.pools.values()
    return pool
