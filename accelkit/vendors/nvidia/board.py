"""How the GPUs of a simulated machine hang together. Not here: what is done to them later."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from uuid import NAMESPACE_OID, uuid5

import attrs

from accelkit import ConfigError
from accelkit.testing.machines import Part
from accelkit.testing.sysfs import PciPlace, part_place
from accelkit.vendors.nvidia.products import PRODUCTS, Product

SINGLE, MULTIPLE, HOSTBRIDGE, NODE, SYSTEM = 10, 20, 30, 40, 50
"""Common ancestors. Source: nvml.h, nvmlGpuTopologyLevel_t."""
BUS_WORDS: Mapping[str, int] = {
    "PIX": SINGLE,
    "PXB": MULTIPLE,
    "PHB": HOSTBRIDGE,
    "NODE": NODE,
    "SYS": SYSTEM,
}
"""As `nvidia-smi topo -m` spells them."""
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SWITCH_ADDRESS = "0000:c{:x}:00.0"
TOPOLOGY = "topology"
"""Option that holds a topology read from a text."""


@attrs.frozen(kw_only=True)
class Topology:
    """What a topology text says about its GPUs."""

    words: tuple[tuple[str, ...], ...]
    """The matrix: X, NV4, PIX and so on."""
    numa: tuple[int | None, ...]
    cpus: tuple[str, ...]
    """CPU affinity of each GPU, as a list of CPUs; empty: not given."""

    def dump(self) -> str:
        return json.dumps({"words": self.words, "numa": self.numa, "cpus": self.cpus})

    @classmethod
    def load(cls, text: str) -> "Topology":
        """Read what *dump* wrote.

        Raises:
            ConfigError: It is something else.
        """
        try:
            found = json.loads(text)
            made = cls(
                words=tuple(tuple(row) for row in found["words"]),
                numa=tuple(found["numa"]),
                cpus=tuple(found["cpus"]),
            )
        except (ValueError, LookupError, TypeError) as error:
            raise _not_dumped() from error
        if {len(made.words)} != {*map(len, made.words), len(made.numa), len(made.cpus)}:
            raise _not_dumped()
        return made

    def links(self, one: int, other: int) -> int:
        """NVLinks between two GPUs; where the two rows differ, those of *one*."""
        word = self.words[one][other]
        return int(word[2:]) if word.startswith("NV") else 0

    def level(self, one: int, other: int) -> int:
        """The common ancestor; behind NVLinks it is hidden, and only affinities tell."""
        for word in (self.words[one][other], self.words[other][one]):
            if word in BUS_WORDS:
                return BUS_WORDS[word]
        mine, theirs = ((self.numa[i], self.cpus[i]) for i in (one, other))
        return NODE if mine == theirs else SYSTEM


def _not_dumped() -> ConfigError:
    return ConfigError(
        [(f"option {TOPOLOGY}", "is not what is made of a text")],
        remedy="give the text: accelkit simulate nvidia --from FILE DIR",
    )


class Board:
    """GPUs of one part: names, addresses, who is linked with whom."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.product: Product = PRODUCTS[part.product]
        text = part.options.get(TOPOLOGY)
        self.topology = None if text is None else Topology.load(text)
        if self.topology is not None and len(self.topology.words) != part.count:
            raise _not_dumped()

    @property
    def is_guest(self) -> bool:
        """Whether the machine is a virtual one that has parts of GPUs."""
        return self.part.options.get("guest") == "vgpu"

    @cached_property
    def uuids(self) -> tuple[str, ...]:
        told = [unit.uuid for unit in self.part.told.units]
        return tuple(
            uuid if uuid and _UUID.fullmatch(uuid) else f"GPU-{self.made(f'gpu/{i}')}"
            for i, uuid in enumerate(told)
        )

    def serial(self, index: int) -> str:
        """The number on the board of a GPU."""
        digits = int(self.made(f"gpu/{index}")[-8:], 16) % 10**12
        return self.part.told.units[index].serial or f"1{digits:012d}"

    def made(self, what: str) -> str:
        """A UUID that this part always makes of *what*."""
        return str(uuid5(NAMESPACE_OID, f"nvidia/{self.part.seed}/{self.part.first}/{what}"))

    @cached_property
    def places(self) -> tuple[PciPlace, ...]:
        count = self.part.count
        if self.topology is None:
            return tuple(part_place(self.part, i) for i in range(count))
        return tuple(_places(self.topology, count))

    def level(self, one: int, other: int) -> int:
        """The common ancestor of two GPUs."""
        if self.topology is not None:
            return self.topology.level(one, other)
        a, b = self.places[one], self.places[other]
        if a.above[:2] == b.above[:2]:
            return SINGLE
        if a.root == b.root:
            return HOSTBRIDGE
        return NODE if a.numa == b.numa else SYSTEM

    def ports(self, index: int) -> tuple[int | None, ...]:
        """Where each NVLink of a GPU leads: to a GPU, or (None) to a switch."""
        if self.switched:
            return (None,) * self._links_to_switches(index)
        return tuple(
            other
            for other in range(self.part.count)
            for _ in range(self._links(index, other) if other != index else 0)
        )

    @cached_property
    def switched(self) -> bool:
        """Whether the links go to switches: GPUs that are linked with more than they have links."""
        if self.topology is None:
            return self.product.switched
        return is_switched(self.topology, self.product)

    def _links_to_switches(self, index: int) -> int:
        if self.topology is None:
            return self.product.links
        return max(self.topology.links(index, j) for j in range(self.part.count))

    def _links(self, one: int, other: int) -> int:
        if self.topology is not None:
            return self.topology.links(one, other)
        if one // 8 != other // 8:
            return 0
        a, b = sorted((one % 8, other % 8))
        return self.product.mesh.get((a, b), 0)


def is_switched(topology: Topology, product: Product) -> bool:
    """Whether NVLinks go to switches: some GPU is linked with more than *product* has links."""
    most, every = product.links or 18, range(len(topology.words))
    return any(sum(topology.links(i, j) for j in every) > most for i in every)


def _places(topology: Topology, count: int) -> Iterator[PciPlace]:
    """Places whose roots and switches are as the text says."""
    roots = nearest(topology, HOSTBRIDGE)
    switches = nearest(topology, MULTIPLE)
    for index in range(count):
        root, switch = roots[index], switches[index]
        domain, bus = root // 8, root % 8 * 32
        numa = topology.numa[index]
        yield PciPlace(
            address=f"{domain:04x}:{bus + 16 + index % 16:02x}:{index // 16:02x}.0",
            root=f"pci{domain:04x}:{bus:02x}",
            above=(
                f"{domain:04x}:{bus:02x}:{switch % 32:02x}.0",
                f"{domain:04x}:{bus + 1 + switch % 8:02x}:00.0",
                f"{domain:04x}:{bus + 9 + switch % 7:02x}:{index % 32:02x}.0",
            ),
            numa=-1 if numa is None else numa,
        )


def nearest(topology: Topology, level: int) -> Sequence[int]:
    """For each GPU the number of its group: GPUs that are as near as *level* are in one."""
    count = len(topology.words)
    groups = list(range(count))
    for one in range(count):
        for other in range(one):
            if topology.level(one, other) <= level:
                old, new = groups[one], groups[other]
                groups = [new if g == old else g for g in groups]
    return [sorted(set(groups)).index(g) for g in groups]
