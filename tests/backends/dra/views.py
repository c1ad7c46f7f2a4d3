"""Devices and views that tests of slices are made of."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import attrs

from accelkit.backends.dra.document import Document, render
from accelkit.backends.dra.pool import Dialect, Pool, PoolDevice, Slice
from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Holder,
    Holding,
    Locality,
    Placement,
    Profile,
    Snapshot,
    partition_name,
)
from accelkit.core.policy import DraPolicy, Offer, Policy
from accelkit.core.snapshot import build_view
from accelkit.core.values import FrozenMap, HolderKind, Severity
from accelkit.core.view import Assignment, View

GIB = 1 << 30
NODE = "node-a"
DRIVER = "acme.accelkit.dev"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALL = Offer(name="all", through="dra")
FULL = Dialect()

SMALL = Profile(
    name="1g.10gb",
    slug="1g10gb",
    size=1,
    starts=range(7),
    limit=7,
    capacity=FrozenMap({"memory": 10 * GIB}),
)
MEDIA = Profile(
    name="1g.10gb+me",
    slug="1g10gb-me",
    size=1,
    starts=range(7),
    limit=1,
    capacity=FrozenMap({"memory": 10 * GIB}),
    counters=FrozenMap({"ofa": 1}),
)
HALF = Profile(
    name="3g.40gb",
    slug="3g40gb",
    size=4,
    starts=(0, 4),
    limit=2,
    capacity=FrozenMap({"memory": 40 * GIB}),
)


def ident(name: str, vendor: str = "acme") -> DeviceId:
    return DeviceId(vendor=vendor, name=name)


def gpu(name: str, **fields: Any) -> Device:  # type: ignore[explicit-any]  # of Device
    vendor = fields.pop("vendor", "acme")
    given = {
        "id": ident(name, vendor),
        "kind": "gpu",
        "product": "X100",
        "locality": Locality(pci_address="0000:41:00.0", pcie_root="pci0000:40", numa_node=0),
        "capacity": {"memory": 80 * GIB},
        **fields,
    }
    return Device(**given)


def cut(name: str, **fields: Any) -> Device:  # type: ignore[explicit-any]  # of Device
    """A device that can be cut in 7 or 2."""
    return gpu(
        name,
        **{
            "slots": 8,
            "counters": FrozenMap({"ofa": 1}),
            "profiles": (SMALL, MEDIA, HALF),
            **fields,
        },
    )


def part(parent: str, profile: Profile, start: int, **fields: Any) -> Device:  # type: ignore[explicit-any]  # of Device
    return gpu(
        partition_name(parent, profile.slug, start),
        **{
            "parent": ident(parent),
            "placement": Placement(profile=profile.name, start=start, size=profile.size),
            "capacity": profile.capacity,
            **fields,
        },
    )


def parts(parent: str) -> tuple[Device, ...]:
    """Every partition that there can be of a `cut` device."""
    return tuple(
        part(parent, profile, start) for profile in (SMALL, MEDIA, HALF) for start in profile.starts
    )


def sick(device: Device, code: str = "burnt", severity: Severity = Severity.FATAL) -> Device:
    return attrs.evolve(device, conditions=(Condition(code=code, severity=severity),))


def held(name: str, *, share: str | None = None, kind: HolderKind = HolderKind.CLAIM) -> Holding:
    holder = Holder(kind=kind, namespace="default", claim="c", uid="u")
    return Holding(device=ident(name), share=share, through="dra", holder=holder)


def view_of(  # type: ignore[explicit-any]  # of View
    *devices: Device,
    offers: Iterable[Offer] = (ALL,),
    holdings: Iterable[Holding] = (),
    potential: Iterable[Device] = (),
    answered: Iterable[str] = ("acme",),
    previous: View | None = None,
    **fields: Any,
) -> View:
    """What the core makes of *devices*, with potential partitions on the terms of their parents."""
    made = build_view(
        Snapshot(node=NODE, devices=devices, answered=frozenset(answered)),
        Policy(offers=tuple(offers)),
        holdings=holdings,
        edits={d.id: ContainerEdits() for d in devices},
        domains={"acme": "acme.test"},
        previous=previous,
        now_s=0.0,
        now=NOW,
    )
    possible = tuple(d for d in potential if d.id not in made.devices)
    terms = {d.id: Assignment(terms=next(iter(offers))) for d in possible}
    return attrs.evolve(
        made,
        potential=possible,
        assignments=FrozenMap({**made.assignments, **terms}),
        **fields,
    )


def document(
    view: View,
    dialect: Dialect = FULL,
    previous: Pool | None = None,
) -> Document:
    before = {} if previous is None else {previous.driver: previous}
    return render(view, DraPolicy(), dialect, before)


def pool_of(
    view: View,
    dialect: Dialect = FULL,
    previous: Pool | None = None,
) -> Pool:
    """The driver's pool; an empty one if nothing is published."""
    nothing = Pool(driver=DRIVER, name=NODE, slices=(Slice(),))
    return document(view, dialect, previous).pools.get(DRIVER, nothing)


def listed(view: View, dialect: Dialect = FULL) -> dict[str, PoolDevice]:
    """Published devices by name, in the order in which the scheduler tries them."""
    return {d.name: d for one in pool_of(view, dialect).slices for d in one.devices}


def tainted(view: View, dialect: Dialect = FULL) -> dict[str, list[str]]:
    """Of each published device its taints, as code:effect."""
    return {
        name: [f"{t.key.removeprefix('accelkit.dev/')}:{t.effect}" for t in device.taints]
        for name, device in listed(view, dialect).items()
    }
