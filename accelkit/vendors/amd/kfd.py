"""What KFD, the compute half of the driver, says is there. Not here: PCI and device files."""

from collections.abc import Iterable, Mapping

import attrs

from accelkit import Host, NotThere, SourceError
from accelkit.vendors.amd import facts

NODES = f"{facts.KFD}/topology/nodes"
_DIGITS = 20
"""Of the largest number of 64 bits."""
_PUBLIC, _PRIVATE = 1, 2
"""Memory of a GPU (Linux, drivers/gpu/drm/amd/amdkfd/kfd_crat.h, HSA_MEM_HEAP_TYPE_FB_*)."""


@attrs.frozen(kw_only=True)
class KfdNode:
    """One GPU, or one partition of a GPU, as programs see it."""

    number: int
    """Of its folder; given anew at every change."""
    facts: Mapping[str, int]

    @property
    def unique_id(self) -> int:
        """The same for every partition of a GPU; 0: it has none."""
        return self.facts.get("unique_id", 0)

    @property
    def render_minor(self) -> int:
        return self.facts.get("drm_render_minor", 0)

    @property
    def compute_units(self) -> int:
        """0: not known."""
        return self.facts.get("simd_count", 0) // max(1, self.facts.get("simd_per_cu", 1))

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Domain, bus, device and function."""
        location = self.facts.get("location_id", 0)
        domain = self.facts.get("domain", 0)
        return domain, location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7

    @property
    def high(self) -> int:
        """The partition, where the kernel writes it into the upper bits of location_id."""
        return self.facts.get("location_id", 0) >> 28 & 0xF


@attrs.frozen(kw_only=True)
class Topology:
    """All of KFD's GPU nodes."""

    nodes: tuple[KfdNode, ...] = ()
    denied: SourceError | None = None
    """Why a node could not be read."""


def read_topology(host: Host) -> Topology:
    """The GPUs that KFD has now; those that go meanwhile are left out.

    Raises:
        SourceError: The list itself cannot be read.
    """
    nodes, denied = [], None
    for name in host.names(NODES):
        if not name.isdecimal():
            continue
        try:
            read = numbers(host.read(f"{NODES}/{name}/properties"))
        except NotThere:
            continue
        except SourceError as error:
            denied = error
            continue
        if read.get("gfx_target_version", 0) and not read.get("cpu_cores_count", 0):
            nodes.append(KfdNode(number=int(name), facts=read))
    return Topology(nodes=tuple(sorted(nodes, key=lambda n: n.number)), denied=denied)


def numbers(text: str) -> dict[str, int]:
    """The ``name number`` lines of *text*; others are left out."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.isascii() and value.isdecimal() and len(value) <= _DIGITS:
            found[name] = int(value)
    return found


def memory_of(host: Host, nodes: Iterable[KfdNode]) -> int | None:
    """Bytes that *nodes* have of their own together; None: they do not say."""
    total = 0
    for node in nodes:
        folder = f"{NODES}/{node.number}/mem_banks"
        for bank in host.names(folder):
            try:
                read = numbers(host.read(f"{folder}/{bank}/properties"))
            except NotThere:
                continue
            except SourceError:  # the rest would be too little
                return None
            if read.get("heap_type") in {_PUBLIC, _PRIVATE}:
                total += read.get("size_in_bytes", 0)
    return total or None
