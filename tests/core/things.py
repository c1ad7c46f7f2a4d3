"""Devices, reports and views that tests of core are made of."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Holder,
    Holding,
    Placement,
    Problem,
    Profile,
    Snapshot,
    VendorReport,
)
from accelkit.core.policy import Offer, Policy
from accelkit.core.reading import HealthReading
from accelkit.core.snapshot import assemble, build_view
from accelkit.core.values import FrozenMap, HolderKind, Severity
from accelkit.core.view import View

START = datetime(2030, 1, 1, tzinfo=UTC)
LATER = datetime(2030, 1, 2, tzinfo=UTC)
SMALL = Profile(name="1g", slug="1g", size=1, starts=(0, 1, 2, 3))
BIG = Profile(name="2g+me", slug="2g-me", size=2, starts=(0, 2))
DOMAINS = FrozenMap({"toy": "toy.example", "other": "other.example"})


def of(name: str, vendor: str = "toy") -> DeviceId:
    return DeviceId(vendor=vendor, name=name)


def gpu(name: str, **fields: Any) -> Device:  # type: ignore[explicit-any]  # of Device
    vendor = fields.pop("vendor", "toy")
    return attrs.evolve(Device(id=of(name, vendor), kind="gpu"), **fields)


def cut(name: str, *, usable: bool = False, **fields: Any) -> Device:  # type: ignore[explicit-any]  # of Device
    return gpu(name, usable=usable, **{"slots": 4, "profiles": (SMALL, BIG), **fields})


def part(parent: str, start: int, profile: Profile = SMALL, **fields: Any) -> Device:  # type: ignore[explicit-any]  # of Device
    device = Device(
        id=of(f"{parent}-{profile.slug}-{start}"),
        kind="slice",
        parent=of(parent),
        placement=Placement(profile=profile.name, start=start, size=profile.size),
    )
    return attrs.evolve(device, **fields)


def fatal(code: str = "burnt", **fields: Any) -> Condition:  # type: ignore[explicit-any]  # of Condition
    return attrs.evolve(Condition(code=code, severity=Severity.FATAL), **fields)


def info(code: str = "warm") -> Condition:
    return Condition(code=code, severity=Severity.INFO)


def report(*devices: Device, vendor: str = "toy", **fields: Any) -> VendorReport:  # type: ignore[explicit-any]  # of VendorReport
    return attrs.evolve(VendorReport(vendor=vendor, answered=True, devices=devices), **fields)


def silent(vendor: str = "toy", code: str = "driver-not-ready") -> VendorReport:
    return VendorReport(
        vendor=vendor, answered=False, problems=(Problem(vendor=vendor, code=code),)
    )


def reading(*devices: Device, vendor: str = "toy", **conditions: Condition) -> HealthReading:
    """All *devices* are fine but those named in *conditions*, with _ for -."""
    bad = {name.replace("_", "-"): (condition,) for name, condition in conditions.items()}
    return HealthReading(
        vendor=vendor, conditions=FrozenMap((d.id, bad.get(d.id.name, ())) for d in devices)
    )


def seen(
    *reports: VendorReport,
    readings: Iterable[HealthReading] | None = None,
    previous: Snapshot | None = None,
    held: Iterable[DeviceId] = (),
    now: datetime = START,
    unseen: Sequence[Device] = (),
) -> Snapshot:
    """What is assembled of *reports*; without *readings* every device that they have is fine."""
    if readings is None:
        readings = [reading(*r.devices, vendor=r.vendor) for r in reports]
    return assemble(
        "node", reports, readings, previous=previous, held=set(held), now=now, unseen=unseen
    )


def pod(device: DeviceId, resource: str | None = None, through: str = "kubelet") -> Holding:
    return Holding(
        device=device,
        through=through,
        resource=resource,
        holder=Holder(kind=HolderKind.POD, pod="trainer"),
    )


def process(device: DeviceId) -> Holding:
    return Holding(
        device=device, through="process", holder=Holder(kind=HolderKind.FOREIGN, uid="42")
    )


def policy(*offers: Offer, **fields: Any) -> Policy:  # type: ignore[explicit-any]  # of Policy
    return attrs.evolve(Policy(offers=offers) if offers else Policy(), **fields)


def view(
    snapshot: Snapshot,
    rules: Policy | None = None,
    *,
    previous: View | None = None,
    holdings: Iterable[Holding] = (),
    now_s: float = 0.0,
) -> View:
    return build_view(
        snapshot,
        rules or Policy(),
        holdings=holdings,
        edits={},
        domains=DOMAINS,
        previous=previous,
        now_s=now_s,
        now=START,
    )
