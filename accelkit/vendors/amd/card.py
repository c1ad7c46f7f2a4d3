"""One GPU as files show it: its PCI function, its KFD nodes and its modes. Not here: devices."""

from collections.abc import Iterable, Mapping

import attrs

from accelkit import NotThere, PciFunction, SourceError
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.cutting import Cut, Grid, complexes_of, possible
from accelkit.vendors.amd.kfd import KfdNode

COMPUTE_FILE = "current_compute_partition"
MEMORY_FILE = "current_memory_partition"
_NOT_CUT = frozenset({"", "UNKNOWN", "NONE"})
_MOST_TEXT = 64


@attrs.frozen(kw_only=True)
class Card:
    """One GPU."""

    function: PciFunction
    device: int
    """PCI device id."""
    parts: Mapping[int, KfdNode]
    """Its KFD nodes by partition, ascending; an uncut GPU is partition 0."""
    grid: Grid | None
    """None: it cannot be cut, or does not say so."""

    @property
    def first(self) -> KfdNode:
        return next(iter(self.parts.values()))

    @property
    def expected(self) -> int:
        """Partitions that its mode stands for."""
        return 1 if self.grid is None else self.grid.count(self.grid.now)


def nodes_by_address(
    nodes: Iterable[KfdNode], addresses: Iterable[str]
) -> dict[str, dict[int, KfdNode]]:
    """KFD nodes by PCI function and partition.

    The function in a location is that of the GPU, or the partition: GPUs that are cut have one
    function only. The domain counts: virtual machines give each GPU one of its own.
    """
    known = frozenset(addresses)
    found: dict[str, dict[int, KfdNode]] = {}
    for node in sorted(nodes, key=lambda n: (n.render_minor, n.number)):
        domain, bus, device, function = node.place
        base = f"{domain:04x}:{bus:02x}:{device:02x}"
        exact, part = f"{base}.{function}", node.high
        if exact not in known:
            exact, part = f"{base}.0", node.high or function
        parts = found.setdefault(exact, {})
        while part in parts:  # numbered in no way that is known: in order of the device files
            part += 1
        parts[part] = node
    return {address: dict(sorted(parts.items())) for address, parts in found.items()}


def read_card(function: PciFunction, parts: Mapping[int, KfdNode]) -> Card:
    """One GPU; *parts* has at least one.

    Raises:
        SourceError: Its modes cannot be read.
        ValueError: Its files are nonsense.
    """
    device = function.id("device")
    return Card(
        function=function, device=device, parts=parts, grid=_read_grid(function, device, parts)
    )


def _read_grid(function: PciFunction, device: int, parts: Mapping[int, KfdNode]) -> Grid | None:
    complexes = complexes_of(
        device, (n.facts.get("num_xcc", 0) for n in parts.values()), len(parts)
    )
    compute = _mode(function, COMPUTE_FILE, facts.COMPUTE) or _guessed(parts, complexes)
    if not compute:
        return None
    now = Cut(compute=compute, memory=_mode(function, MEMORY_FILE, facts.MEMORY))
    gfx = next(iter(parts.values())).facts.get("gfx_target_version", 0)
    listed = _listed(function, "available_compute_partition", facts.COMPUTE)
    memory = _listed(function, "available_memory_partition", facts.MEMORY)
    named = _listed(function, "compute_partition_config/supported_xcp_configs", facts.COMPUTE)
    if facts.count_of(compute, complexes) > complexes:
        raise ValueError(f"{compute} of {complexes} accelerator complexes")
    found = {now, *(Cut(compute=mode, memory=now.memory) for mode in listed)}
    if listed and memory:
        # What is listed is what goes with the present memory mode.
        others = [ranges for ranges in memory if ranges != now.memory]
        able = named or facts.compute_modes(complexes)
        found |= {*possible(able, others, gfx, virtual=device in facts.VIRTUAL)}
    found = {cut for cut in found if facts.count_of(cut.compute, complexes) <= complexes}
    if found == {Cut(compute=facts.SPX, memory=now.memory)}:
        return Grid(now=now, complexes=1, cuts=(), settable=False)
    return Grid(
        now=now, complexes=complexes, cuts=tuple(sorted(found, key=_order)), settable=bool(listed)
    )


def _order(cut: Cut) -> tuple[int, int]:
    return facts.COMPUTE.index(cut.compute), facts.MEMORY.get(cut.memory, 0)


def _mode(function: PciFunction, name: str, known: Iterable[str]) -> str:
    """The mode in a file; empty: the GPU has none.

    Raises:
        ValueError: It is one that nobody knows.
    """
    try:
        found = function.read(name).strip().upper()
    except NotThere:
        return ""
    if found in _NOT_CUT:
        return ""
    if found not in known:
        raise ValueError(f"{name} is {found[:20]!r}")
    return found


def _guessed(parts: Mapping[int, KfdNode], complexes: int) -> str:
    """The compute mode of a GPU that does not say it; empty: it is not cut."""
    if len(parts) < 2:
        return ""
    counts = {facts.count_of(mode, complexes): mode for mode in facts.COMPUTE}
    return counts.get(len(parts), "CPX")


def _listed(function: PciFunction, name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Modes in a file, those that are known; the file may be missing."""
    words = optional(function, name).upper().replace(",", " ").split()
    return tuple(word for word in known if word in words)


def optional(function: PciFunction, name: str) -> str:
    """The text of a file that is not on all GPUs, or not readable on all; else empty."""
    try:
        return function.read(name).strip()
    except SourceError:
        return ""


def said(text: str) -> str | None:
    """*text* as an attribute; None: it is none."""
    text = " ".join(text.split())
    return text if text and text.isprintable() and len(text) <= _MOST_TEXT else None
