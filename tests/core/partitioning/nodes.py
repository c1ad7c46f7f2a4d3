"""Devices of every style of partitioning, and what becomes of a node when steps are taken."""

from collections.abc import Iterable, Iterator

import attrs
from hypothesis import strategies as st

from accelkit.core.model import (
    Device,
    DeviceId,
    Holding,
    Mode,
    Placement,
    Profile,
    Snapshot,
    part_of,
)
from accelkit.core.partitioning import Create, Destroy, SetMode, Step
from accelkit.core.policy import (
    Foreign,
    Partitioning,
    PartitioningHow,
    Policy,
    Selection,
)
from accelkit.core.values import FrozenMap, Scope
from tests.core.partition.brute import everything
from tests.core.things import gpu, pod, process

MIG = (Mode(name="mig", live=True), Mode(name="whole", live=True))
COLD = (Mode(name="mig"), Mode(name="whole"))
"""A mode that only a reset changes."""
MODES = (
    Mode(name="spx"),
    Mode(name="dpx", cut="dpx", count=2),
    Mode(name="cpx", cut="cpx", count=4, disturbs=Scope.VENDOR),
)
ONE = Profile(name="1g", slug="1g", size=1, starts=(0, 1, 2, 3), mode="mig", kind="mig")
MEDIA = Profile(
    name="1g+me", slug="1g-me", size=1, starts=(0, 1, 2, 3), limit=1, mode="mig", kind="mig"
)
TWO = Profile(name="2g", slug="2g", size=2, starts=(0, 2), mode="mig", kind="mig")
CUTS = (
    Profile(name="dpx", slug="dpx", size=2, starts=(0, 2), mode="dpx"),
    Profile(name="cpx", slug="cpx", size=1, starts=(0, 1, 2, 3), mode="cpx"),
)


def carved(name: str, *, mode: str = "whole", modes: tuple[Mode, ...] = MIG) -> Device:
    """A device that is cut one by one, in mode mig."""
    return gpu(
        name,
        slots=4,
        profiles=(ONE, MEDIA, TWO),
        modes=modes,
        mode=mode,
        usable=mode == "whole",
        attributes=FrozenMap({"serial": f"S-{name}", "engines": 4}),
        own=frozenset({"serial"}),
    )


def modal(name: str, *, mode: str = "spx") -> Device:
    """A device whose mode is its cut."""
    return gpu(name, slots=4, profiles=CUTS, modes=MODES, mode=mode, usable=mode == "spx")


def plain(name: str, *, usable: bool = True) -> Device:
    """A device that is cut one by one, in no mode."""
    profiles = tuple(attrs.evolve(p, mode=None, kind=None) for p in (ONE, TWO))
    return gpu(name, slots=4, profiles=profiles, usable=usable)


def at(device: Device, profile: str, start: int) -> Device:
    """The partition of *device* there."""
    return part_of(device, next(p for p in device.profiles if p.name == profile), start)


def node(*devices: Device) -> Snapshot:
    return Snapshot(node="node", devices=devices)


def cut_by_mode(device: Device) -> Iterator[Device]:
    """The partitions that come with the mode that *device* is in."""
    for mode in device.modes:
        if mode.name == device.mode and mode.cut is not None:
            profile = next(p for p in device.profiles if p.name == mode.cut)
            yield from (at(device, profile.name, s) for s in profile.starts[: mode.count])


def taken(snapshot: Snapshot, steps: Iterable[Step]) -> Snapshot:
    """The node after *steps*, none of which hardware would refuse."""
    there = dict(snapshot.by_id)
    for step in steps:
        match step:
            case Destroy(partition=partition):
                del there[partition]
            case SetMode(device=i, mode=mode):
                _set_mode(there, i, mode)
            case Create(device=i, placement=place, partition=partition):
                profile = next(p for p in there[i].profiles if p.name == place.profile)
                assert profile.mode in {None, there[i].mode}
                made = part_of(there[i], profile, place.start)
                assert made.id == partition
                assert partition not in there or not there[partition].usable
                there[partition] = made
    return Snapshot(node=snapshot.node, devices=tuple(there.values()))


def _set_mode(there: dict[DeviceId, Device], device: DeviceId, mode: str) -> None:
    old = there[device]
    coming = {part.id for part in cut_by_mode(old)}
    left = [part for part in there.values() if part.parent == device and part.id not in coming]
    assert left == []  # it would be gone with the mode, unasked
    for part in coming:
        del there[part]
    there[device] = new = attrs.evolve(old, mode=mode)
    there.update((part.id, part) for part in cut_by_mode(new))


LAYOUTS = FrozenMap(
    {
        "none": FrozenMap(),
        "ones": FrozenMap({"1g": 4}),
        "mixed": FrozenMap({"1g": 1, "2g": 1}),
        "media": FrozenMap({"1g+me": 1, "1g": 2}),
        "twice": FrozenMap({"1g+me": 2}),
        "halves": FrozenMap({"dpx": 2}),
        "quarters": FrozenMap({"cpx": 4}),
        "thirds": FrozenMap({"cpx": 3}),
        "odd": FrozenMap({"dpx": 2, "1g": 1}),
    }
)

rules = st.builds(
    Partitioning,
    select=st.sampled_from([Selection(), Selection(name=("a", "b")), Selection(name=("c",))]),
    how=st.sampled_from(PartitioningHow),
    layout=st.sampled_from(sorted(LAYOUTS)),
    mode=st.sampled_from(["mig", "whole", "spx", "dpx", "cpx"]),
    profiles=st.sampled_from([(), ("1g*",), ("2g", "cpx")]),
    foreign=st.sampled_from(Foreign),
)
policies = st.lists(rules, max_size=3).map(
    lambda some: Policy(partitioning=tuple(some), layouts=LAYOUTS)
)


@st.composite
def nodes(draw: st.DrawFn) -> Snapshot:
    """One to four devices, cut in any way that can be."""
    return node(*(d for name in draw(_NAMES) for d in draw(_families(name))))


_NAMES = st.sampled_from(["a", "ab", "abc", "abcd"])


@st.composite
def _families(draw: st.DrawFn, name: str) -> list[Device]:
    sort = draw(st.sampled_from([carved, modal, plain]))
    if sort is modal:
        device = modal(name, mode=draw(st.sampled_from(["spx", "dpx", "cpx"])))
        return [device, *cut_by_mode(device)]
    if sort is plain:
        some = draw(st.sampled_from(everything(plain(name))))
        device = plain(name, usable=not some)
        return [device, *_at_all(draw, device, some)]
    mode, modes = draw(st.sampled_from(["mig", "whole"])), draw(st.sampled_from([MIG, COLD]))
    device = carved(name, mode=mode, modes=modes)
    some = draw(st.sampled_from(everything(device))) if mode == "mig" else frozenset()
    return [device, *_at_all(draw, device, some)]


def _at_all(draw: st.DrawFn, device: Device, some: Iterable[Placement]) -> Iterator[Device]:
    for place in sorted(some):
        usable = draw(st.sampled_from([True, True, True, False]))
        yield attrs.evolve(at(device, place.profile, place.start), usable=usable)


def holdings_on(snapshot: Snapshot) -> st.SearchStrategy[list[Holding]]:
    """Up to two holders of anything."""
    ids = [d.id for d in snapshot.devices]
    return st.lists(
        st.builds(lambda i, how: how(i), st.sampled_from(ids), st.sampled_from([pod, process])),
        max_size=2,
    )
