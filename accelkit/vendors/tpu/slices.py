"""Which slice of a torus a host is in, and the host's part of it. Not here: what containers get."""

import re
from collections.abc import Mapping
from math import prod
from typing import TypeAlias

import attrs

from accelkit import Host, NotThere
from accelkit.vendors.tpu.facts import CUBE, SHAPES, TPU_ENV, Generation

Shape: TypeAlias = tuple[int, int, int]

_LINE = re.compile(r"\s*([A-Z][A-Z0-9_]*)\s*[:=]\s*(.*?)\s*")
_MOST = 1 << 16
"""Chips in a slice; a pod of the largest generation has 9,216."""


class Unknown(Exception):
    """The slice of a host is not known, or what is said of it cannot be.

    Args:
        reason: What is missing or wrong.
    """


@attrs.frozen(kw_only=True)
class Said:
    """What the operator says of the slice."""

    topology: str = ""
    """Empty: as the host says."""
    chips_per_host: int = 0
    """0: as the host says, or else as many as there are."""


@attrs.frozen(kw_only=True)
class Slice:
    """The slice that a host's chips belong to."""

    generation: Generation
    topology: Shape
    """Chips in each dimension of the slice."""
    bounds: Shape
    """Chips in each dimension of one host."""
    resilient: bool = True
    """Links that fail may be spared, where the slice is large enough for that."""
    worker: int | None = None
    """Which of the slice's hosts it is."""

    @property
    def chips(self) -> int:
        """Of each host."""
        return prod(self.bounds)

    @property
    def hosts(self) -> int:
        return prod(self.topology) // self.chips

    @property
    def name(self) -> str:
        """The topology as the maker writes it: 2x4, or 2x2x1."""
        return topology_name(self.topology, self.generation)


def topology_name(shape: Shape, generation: Generation) -> str:
    return "x".join(str(length) for length in shape[: generation.dimensions])


def accelerator_type(generation: Generation, chips: int) -> str:
    """The maker's name of a slice by its size: v5litepod-8, v5p-16."""
    return f"{generation.slug}-{chips * generation.counted}"


def there(chips: int) -> str:
    """So many chips, in words."""
    return "1 chip is there" if chips == 1 else f"{chips} chips are there"


def read_slice(host: Host, generation: Generation, found: int, said: Said) -> Slice:
    """The slice of this host.

    Args:
        host: The door.
        generation: Of its chips.
        found: How many chips the host has.
        said: What the operator says, which wins.

    Raises:
        Unknown: Nobody says it, or it contradicts itself.
        SourceError: The host's word cannot be read.
    """
    facts = read_facts(host)
    whole = read_topology(said.topology or facts.get("TOPOLOGY", ""))
    if whole[generation.dimensions :].count(1) != len(whole) - generation.dimensions:
        raise Unknown(
            f"the topology {'x'.join(map(str, whole))} has too many dimensions for "
            f"{generation.product}"
        )
    bounds = _bounds(facts, said.chips_per_host) or _bounds_of(generation, found, prod(whole))
    if found > prod(bounds):
        raise Unknown(f"{there(found)}, and a host should have {prod(bounds)}")
    if any(total % own for total, own in zip(whole, bounds, strict=True)):
        raise Unknown(
            f"hosts of {prod(bounds)} chips cannot make up the topology "
            f"{topology_name(whole, generation)}"
        )
    worker = facts.get("WORKER_ID", "")
    return Slice(
        generation=generation,
        topology=whole,
        bounds=bounds,
        resilient=facts.get("ENABLE_ICI_RESILIENCY", "").lower() != "false",
        worker=int(worker) if re.fullmatch(r"[0-9]{1,5}", worker) else None,
    )


def _bounds(facts: Mapping[str, str], chips_per_host: int) -> Shape | None:
    """What the operator says of a host, or the host itself; None: nobody says it."""
    if chips_per_host:
        return SHAPES[chips_per_host]
    said = facts.get("CHIPS_PER_HOST_BOUNDS", "")
    return _shape(said, ",", "chips of a host") if said else None


def _bounds_of(generation: Generation, found: int, total: int) -> Shape:
    """Of a host of which nobody says how many chips it has, by those that are there.

    Some may be missing: hosts of a number that none is made with must not be taken for whole ones,
    nor must a single chip for the host of a larger slice.
    """
    if found not in generation.per_host:
        made = ", ".join(str(count) for count in generation.per_host)
        raise Unknown(
            f"{there(found)}, hosts of {generation.product} have {made}, and nobody says how many "
            "it should be"
        )
    if found == 1 < total:
        raise Unknown(
            f"{there(found)} of a slice of {total}, and nobody says how many it should be"
        )
    return SHAPES[found]


def read_topology(text: str) -> Shape:
    """A topology as the maker writes it.

    Raises:
        Unknown: It is none.
    """
    return _shape(text, "x", "topology")


def _shape(text: str, mark: str, what: str) -> Shape:
    if not text:
        raise Unknown(f"the {what} is not known: neither {TPU_ENV} nor the policy says it")
    parts = text.split(mark)
    if not (2 <= len(parts) <= 3 and all(re.fullmatch(r"[1-9][0-9]{0,4}", p) for p in parts)):
        raise Unknown(f"the {what} {text[:40]!r} is none")
    x, y, z = (int(part) for part in (*parts, "1")[:3])
    if x * y * z > _MOST:
        raise Unknown(f"the {what} {text} is larger than any")
    return x, y, z


def read_facts(host: Host) -> Mapping[str, str]:
    """What /etc/tpu/tpu-env says, by name; empty: there is none.

    Lines are ``NAME: 'value'`` as the metadata server writes them, or ``NAME=value``; others are
    passed over.

    Raises:
        SourceError: It cannot be read.
    """
    try:
        text = host.read(TPU_ENV)
    except NotThere:
        return {}
    found: dict[str, str] = {}
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line)) is not None:
            found[match[1]] = match[2].strip("'\"")
    if "CHIPS_PER_HOST_BOUNDS" not in found and "TPU_CHIPS_PER_HOST_BOUNDS" in found:
        found["CHIPS_PER_HOST_BOUNDS"] = found["TPU_CHIPS_PER_HOST_BOUNDS"]
    return found


def wraps(generation: Generation, topology: Shape) -> tuple[bool, bool, bool]:
    """Which dimensions of a slice are closed to a ring."""
    if generation.ring is not None:
        x, y, z = (length == generation.ring for length in topology)
        return x, y, z
    closed = min(topology) >= CUBE
    return closed, closed, closed


def spares_links(generation: Generation, topology: Shape) -> bool:
    """Whether a slice can go on without a link that failed."""
    return generation.name in {"v4", "v5p"} and min(topology) >= CUBE
