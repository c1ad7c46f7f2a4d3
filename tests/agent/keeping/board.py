"""Hardware in memory, that outlives processes, and its door for one of them."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

import attrs

from accelkit.core.allocation import ContainerEdits, Edits, Grant, Setting
from accelkit.core.errors import (
    AccelkitError,
    ConfigRefused,
    ModeBusy,
    PartitionError,
    PartitionInUse,
    PlaceOccupied,
)
from accelkit.core.model import (
    Device,
    DeviceId,
    DeviceNode,
    Mode,
    Placement,
    Profile,
    partition_name,
)
from accelkit.core.values import Enforcement, FrozenMap
from accelkit.core.working import Needed
from tests.agent.keeping.process import Process

VENDOR = "toy"
CUT, WHOLE = "cut", "whole"
PROFILES = (
    Profile(name="half", slug="half", size=2, starts=(0, 2), mode=CUT),
    Profile(name="quarter", slug="quarter", size=1, starts=(0, 1, 2, 3), mode=CUT),
)


def ident(name: str) -> DeviceId:
    return DeviceId(vendor=VENDOR, name=name)


@attrs.define
class Part:
    """A partition on the hardware; its number is never given twice."""

    root: str
    profile: str
    start: int
    number: int
    usable: bool = True


@attrs.define
class Board:
    """What the hardware is like: devices that can be cut, those that cannot, and settings."""

    plain: tuple[str, ...] = ()
    modes: dict[str, str] = attrs.Factory(dict)
    """Of the devices that can be cut."""
    parts: dict[str, Part] = attrs.Factory(dict)
    settings: dict[tuple[str, str], str] = attrs.Factory(dict)
    """By device and key."""
    failures: dict[str, int] = attrs.Factory(dict)
    """How often a call still fails, by its name and what it is about: ``destroy a-half-0``."""
    numbers: int = 0
    tells_numbers: bool = True
    """Whether containers see them."""
    sets: bool = False
    """Whether edits say something of a set as a whole."""

    def add_part(self, root: str, profile: str, start: int, *, usable: bool = True) -> str:
        """Make a partition, by whomever; returns its name."""
        self.numbers += 1
        slug = next(p.slug for p in PROFILES if p.name == profile)
        name = partition_name(root, slug, start)
        self.parts[name] = Part(root, profile, start, self.numbers, usable)
        return name

    def devices(self) -> Iterator[Device]:
        """Everything that exists."""
        yield from (self.device(name) for name in (*self.plain, *self.modes, *self.parts))

    def device(self, name: str) -> Device:
        if name in self.parts:
            part = self.parts[name]
            return _partition(name, part.root, part.profile, part.start, part.number, part.usable)
        return _cuttable(name, self.modes[name]) if name in self.modes else _plain(name)

    def potential(self) -> Iterator[Device]:
        """Everything that could be cut and is not."""
        for root in self.modes:
            for profile in PROFILES:
                for start in profile.starts:
                    name = partition_name(root, profile.slug, start)
                    if name not in self.parts:
                        yield _partition(name, root, profile.name, start, 0, usable=True)

    def slots(self, name: str) -> set[int]:
        """Which slots of its root a partition has."""
        part = self.parts[name]
        size = next(p.size for p in PROFILES if p.name == part.profile)
        return set(range(part.start, part.start + size))


@lru_cache
def _plain(name: str) -> Device:
    return Device(
        id=ident(name),
        kind="toy",
        nodes=(DeviceNode(path=f"/dev/{name}"),),
        sharing=frozenset({Enforcement.NONE, Enforcement.LIBRARY}),
    )


@lru_cache
def _cuttable(name: str, mode: str) -> Device:
    return Device(
        id=ident(name),
        kind="toy",
        usable=mode == WHOLE,
        slots=4,
        profiles=PROFILES,
        modes=(Mode(name=CUT, live=True), Mode(name=WHOLE, live=True)),
        mode=mode,
        nodes=(DeviceNode(path=f"/dev/{name}"),),
    )


@lru_cache
def _partition(name: str, root: str, profile: str, start: int, number: int, usable: bool) -> Device:
    size = next(p.size for p in PROFILES if p.name == profile)
    return Device(
        id=ident(name),
        kind="toy",
        parent=ident(root),
        placement=Placement(profile=profile, start=start, size=size),
        usable=usable,
        nodes=(DeviceNode(path=f"/dev/{name}"),),
        handle=str(number) if number else None,
    )


class MemoryHardware:
    """What one process may do to a board; see ``accelkit.agent.hardware.Hardware``."""

    def __init__(self, board: Board, process: Process) -> None:
        self.board = board
        self._process = process
        self.slow: dict[str, float] = {}
        """Seconds that calls take, by name."""
        self.errors: dict[str, AccelkitError] = {}
        """What calls raise, by name and what they are about."""
        self.calls: list[str] = []
        self.grants: list[Grant] = []
        """Those whose edits were asked for."""

    async def edits(self, vendor: str, grant: Grant) -> Edits:  # noqa: ARG002 - there is one
        await self._begin("edits", *(g.device.id.name for g in grant.granted))
        self.grants.append(grant)
        order = ",".join(g.device.id.name for g in grant.granted)
        whole = ContainerEdits(env=FrozenMap({"SET": order})) if self.board.sets else None
        return Edits(
            whole=whole or ContainerEdits(),
            each=FrozenMap(
                (
                    g.device.id,
                    ContainerEdits(
                        env=FrozenMap({"TOY": self._told(g.device)}),
                        nodes=g.device.nodes,
                    ),
                )
                for g in grant.granted
            ),
        )

    def _told(self, device: Device) -> str:
        return (device.handle if self.board.tells_numbers else None) or device.id.name

    async def needs(self, vendor: str, grant: Grant) -> tuple[Setting, ...]:  # noqa: ARG002 - there is one
        await self._begin("needs")
        wanted = grant.config if isinstance(grant.config, Mapping) else {}
        ids = sorted({g.device.id for g in grant.granted})
        return tuple(
            Setting(device=i, key=key, value=str(value))
            for i in ids
            for key, value in wanted.items()
        )

    async def needed(self, vendor: str, grant: Grant) -> Needed:
        settings = await self.needs(vendor, grant)
        edits = None if settings else await self.edits(vendor, grant)
        return Needed(settings=settings, edits=edits)

    async def apply(self, vendor: str, setting: Setting) -> None:  # noqa: ARG002 - there is one
        name = self._of(setting)
        await self._begin("apply", name)
        self._process.effect(f"apply {name}", lambda: self._set(setting))

    def _set(self, setting: Setting) -> None:
        self.board.settings[self._of(setting), setting.key] = setting.value

    async def revert(self, vendor: str, setting: Setting) -> None:  # noqa: ARG002 - there is one
        name = self._of(setting)
        await self._begin("revert", name)
        self._process.effect(
            f"revert {name}", lambda: self.board.settings.pop((name, setting.key), None)
        )

    async def create(self, parent: Device, placement: Placement) -> Device:
        root = parent.id.name
        profile = next(p for p in PROFILES if p.name == placement.profile)
        name = partition_name(root, profile.slug, placement.start)
        await self._begin("create", name)
        if self.board.modes[root] != CUT:
            raise PartitionError(f"{root} is not in mode {CUT}", device=root)
        there = self.board.parts.get(name)
        if there is not None and not there.usable:  # half made, by whomever
            self._process.effect(f"unmake {name}", lambda: self.board.parts.pop(name))
            there = None
        taken = {
            slot
            for other, part in self.board.parts.items()
            if part.root == root and other != name
            for slot in self.board.slots(other)
        }
        if taken & set(placement.slots):
            raise PlaceOccupied(f"{name}: somebody is there", device=name)
        if there is None:
            self._process.effect(
                f"create {name}",
                lambda: self.board.add_part(root, placement.profile, placement.start, usable=False),
            )
            self._process.effect(f"finish {name}", lambda: self._finish(name))
        return self.board.device(name)

    def _finish(self, name: str) -> None:
        self.board.parts[name].usable = True

    async def destroy(self, partition: Device) -> None:
        name = partition.id.name
        await self._begin("destroy", name)
        if name in self.board.parts:
            self._process.effect(f"destroy {name}", lambda: self.board.parts.pop(name))

    async def set_mode(self, device: Device, mode: str) -> None:
        name = device.id.name
        await self._begin("set_mode", name)
        if any(part.root == name for part in self.board.parts.values()):
            raise ModeBusy(f"{name} is cut", device=name)
        self._process.effect(f"mode {name}", lambda: self.board.modes.update({name: mode}))

    async def find(self, device: DeviceId) -> Device | None:
        await self._begin("find", device.name)
        name = device.name
        known = name in self.board.parts or name in self.board.modes or name in self.board.plain
        return self.board.device(name) if known else None

    def config(self, vendor: str, block: Mapping[str, object]) -> object:
        if "bad" in block:
            raise ConfigRefused(f"$.vendor.bad: {vendor} knows no such key")
        return dict(block)

    async def _begin(self, call: str, *names: str) -> None:
        self._process.alive()
        self.calls.append(" ".join((call, *names)))
        await asyncio.sleep(self.slow.get(call, 0.0))
        self._process.alive()
        for key in (call, f"{call} {names[0]}" if names else call):
            if key in self.errors:
                raise self.errors[key]
            if self.board.failures.get(key, 0) > 0:
                self._process.effect(f"fail {key}", partial(self._failed_once, key))
                raise (PartitionInUse if call == "destroy" else PartitionError)(
                    f"{key} fails", device=key
                )

    def _failed_once(self, key: str) -> None:
        self.board.failures[key] -= 1

    @staticmethod
    def _of(setting: Setting) -> str:
        return setting.device.name if setting.device is not None else ""
