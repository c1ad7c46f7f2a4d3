"""Knows simulated accelerators: PCI functions whose files say all. Not here: who writes them."""

import re
import time
from collections.abc import Iterable, Mapping
from ctypes import c_uint, create_string_buffer
from typing import ClassVar

import attrs

from accelkit import (
    Condition,
    Device,
    DeviceId,
    DeviceNode,
    Edits,
    Event,
    Evidence,
    FrozenMap,
    Grant,
    Group,
    GroupRule,
    Holder,
    HolderKind,
    Holding,
    Host,
    LibraryMissing,
    Link,
    LinkKind,
    ModelError,
    NotThere,
    PciFunction,
    PciMatch,
    Placement,
    Setting,
    Severity,
    SourceError,
    SupportsEvents,
    SupportsGroups,
    SupportsHealth,
    SupportsHolders,
    SupportsLinks,
    SupportsPartitioning,
    SupportsPreparation,
    Unreadable,
    Vendor,
    Version,
    dns_label,
    pci_functions,
)
from accelkit.vendors.sim import carving
from accelkit.vendors.sim.preparing import SimClaim, edits_of, needs_of, set_to

PCI_VENDOR = 0xACCE
"""Assigned to nobody, so that no real host has one."""
LEGAL_SIZES = (1, 2, 4, 8)
_STEP_S = 0.02
_CODE = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


class Sim(
    Vendor,
    SupportsHealth,
    SupportsEvents,
    SupportsLinks,
    SupportsGroups,
    SupportsHolders,
    SupportsPartitioning,
    SupportsPreparation,
):
    """Reads what a simulated machine shows, and misbehaves where the machine tells it to."""

    name = "sim"
    domain = "sim.accelkit.dev"
    hardware = (PciMatch(vendor=PCI_VENDOR, devices=(1,)),)
    machine = "accelkit.vendors.sim.machine:SimMachine"
    attributes: ClassVar[Mapping[str, type]] = {"board": str, "firmware": Version, "place": int}
    claim_config = SimClaim

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self._heard: int | None = None

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self._obey(host, "discover")
        for function in pci_functions(host, self.hardware):
            if not function.has("serial"):
                yield Unreadable(
                    subject=function.address,
                    code="driver-not-ready",
                    reason="no driver is bound",
                    remedy="simulate set DIR load",
                )
                continue
            try:
                yield from self._devices(function)
            except (ValueError, ModelError) as error:
                yield Unreadable(
                    subject=function.address, code="unreadable", reason=f"nonsense: {error}"
                )

    def _devices(self, function: PciFunction) -> Iterable[Device]:
        memory = int(function.read("memory_bytes"))
        if not 0 < memory < 1 << 63:
            raise ValueError(f"memory_bytes {memory}")
        halves = int(function.read("halves"))
        board, place = function.read("board"), int(function.read("place"))
        if board and dns_label(board) != board:
            raise ValueError(f"board {board[:40]!r}")
        if not 0 <= place < 1 << 32:
            raise ValueError(f"place {place}")
        whole = self.device(
            dns_label(function.read("serial")),
            kind="accel",
            product=function.read("product"),
            usable=not halves,
            locality=function.locality,
            nodes=[DeviceNode(path=f"/dev/{self.name}{int(function.read('minor'))}")],
            attributes={
                **({"board": board} if board else {}),
                "firmware": Version.parse(function.read("firmware")),
                "place": place,
            },
            capacity={"memory": memory},
            aliases={function.address},
        )
        if halves:
            half = attrs.evolve(carving.HALF, capacity=FrozenMap({"memory": memory // 2}))
            whole = attrs.evolve(whole, slots=2, profiles=(half,))
            yield whole
            for start in half.starts:
                yield self.partition(whole, half, start, nodes=whole.nodes)
        elif whole.product in carving.MODES:
            whole = carving.as_cut(whole, whole.product, function)
            yield whole
            yield from carving.parts_of(whole, function, self.partition)
        else:
            yield whole

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        self._obey(host, "conditions")
        function = _function(host, device)
        for line in function.read("faults").splitlines():
            code, _, severity = line.partition(" ")
            if severity not in Severity.__members__ or not re.fullmatch(_CODE, code):
                raise SourceError(f"{device.id}: the fault {line[:40]!r} has no code and severity")
            yield Condition(code=code, severity=Severity[severity])
        cleared = _number(function.read("cleared"), "cleared")
        for told in evidence:
            number = told.data.get("number", "")
            if number.isascii() and number.isdecimal() and int(number) > cleared:
                yield Condition(
                    code=told.code, severity=Severity.DEGRADED, message=f"told {told.count} times"
                )

    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        """What was told since the last call; the first call begins with what comes after it."""
        self._obey(host, "listen")
        until = time.monotonic() + timeout_s
        while True:
            told = [line.split() for line in host.read(f"/run/sim/{self.name}/events").splitlines()]
            newest = max((int(number) for number, _, _ in told), default=0)
            since, self._heard = newest if self._heard is None else self._heard, newest
            if newest > since or time.monotonic() >= until:
                break
            time.sleep(_STEP_S)
        return [
            Event(subject=subject, code=code, source="queue", data=FrozenMap({"number": number}))
            for number, subject, code in told
            if int(number) > since
        ]

    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:
        self._obey(host, "links")
        wholes = {d.locality.pci_address: d for d in devices if d.parent is None}
        found: dict[tuple[frozenset[DeviceId], LinkKind], Link] = {}
        for device in wholes.values():
            for line in _function(host, device).read("links").splitlines():
                address, kind, count = _three(line)
                if address in wholes and wholes[address] is not device:
                    if kind not in LinkKind.__members__:
                        raise SourceError(f"{device.id}: {kind[:40]!r} is no kind of link")
                    link = Link.between(
                        device.id, wholes[address].id, LinkKind[kind], count=_number(count, "count")
                    )
                    found[frozenset((link.a, link.b)), link.kind] = link
        return found.values()

    def groups(self, devices: tuple[Device, ...]) -> Iterable[Group]:
        wholes = [d for d in devices if d.parent is None]
        boards = {d.id: str(d.attributes.get("board", "")) for d in wholes}
        for board in sorted({*boards.values()} - {""}):
            members = tuple(d.id for d in wholes if boards[d.id] == board)
            yield Group(kind="board", name=dns_label(board), members=members)
        cube = {int(str(d.attributes["place"])): d.id for d in wholes if d.product == "cube"}
        for size in LEGAL_SIZES:
            for start in range(0, max(cube, default=-1) + 1, size):
                block = tuple(cube[p] for p in range(start, start + size) if p in cube)
                if len(block) == size:
                    name = f"{size}-{start}"
                    yield Group(kind="block", name=name, members=block, rule=GroupRule.LAW)

    def holders(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Holding]:
        self._obey(host, "holders")
        for device in (d for d in devices if d.parent is None):
            for pid in _function(host, device).read("holders").split():
                holder = Holder(kind=HolderKind.FOREIGN, uid=pid)
                yield Holding(device=device.id, through="process", holder=holder)

    def edits(self, host: Host, grant: Grant) -> Edits:
        self._obey(host, "edits")
        return edits_of(host, grant)

    def create(self, host: Host, parent: Device, placement: Placement) -> Device:
        self._obey(host, "create")
        return carving.create(host, parent, placement, self.partition)

    def destroy(self, host: Host, partition: Device) -> None:
        self._obey(host, "destroy")
        carving.destroy(host, partition)

    def set_mode(self, host: Host, device: Device, mode: str) -> None:
        self._obey(host, "set_mode")
        carving.set_mode(host, device, mode)

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:
        self._obey(host, "needs")
        return needs_of(grant)

    def apply(self, host: Host, setting: Setting) -> None:
        self._obey(host, "apply")
        set_to(self.discover(host), host, setting, setting.value)

    def revert(self, host: Host, setting: Setting) -> None:
        self._obey(host, "revert")
        try:
            set_to(self.discover(host), host, setting, "")
        except NotThere:  # the device is gone, and its setting with it
            return

    def software(self, host: Host) -> dict[str, str]:
        version = create_string_buffer(32)
        try:
            code = host.library(f"lib{self.name}.so.1").simDriverVersion(version, c_uint(32))
        except LibraryMissing:
            return {}
        if code:
            raise SourceError(f"simDriverVersion answered {code}", operation="software")
        return {"driver": version.value.decode(errors="replace")}

    def _obey(self, host: Host, call: str) -> None:
        """Misbehave as long as the machine has an order for *call*."""
        order = f"/run/sim/{self.name}/{call}"
        until: float | None = None
        while host.exists(order):
            what, _, amount = host.read(order).partition(" ")
            if what == "raise":
                raise RuntimeError(f"{call} was told to raise")
            if what == "error":
                raise SourceError(f"{call} was told to fail", operation=call)
            until = time.monotonic() + float(amount) if until is None else until
            if time.monotonic() >= until:
                return
            time.sleep(_STEP_S)


class SimSet(Sim):
    """Simulated accelerators whose containers must be told of the set that they have."""

    name = "simset"
    domain = "simset.accelkit.dev"
    hardware = (PciMatch(vendor=PCI_VENDOR, devices=(2,)),)
    machine = "accelkit.vendors.sim.machine:SimSetMachine"
    sets = True

    def edits(self, host: Host, grant: Grant) -> Edits:
        names = list(dict.fromkeys(granted.device.id.name for granted in grant.granted))
        made = super().edits(host, grant)
        told = {"SIM_SET": ",".join(names), "SIM_SET_SIZE": str(len(names))}
        return attrs.evolve(
            made, whole=attrs.evolve(made.whole, env=FrozenMap({**made.whole.env, **told}))
        )


def _function(host: Host, device: Device) -> PciFunction:
    return PciFunction(address=device.locality.pci_address or "", host=host)


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise SourceError(f"{what}: {text[:40]!r} is no number")
    return int(text)


def _three(line: str) -> list[str]:
    words = line.split()
    if len(words) != 3:
        raise SourceError(f"links: {line[:40]!r} are not address, kind and count")
    return words
