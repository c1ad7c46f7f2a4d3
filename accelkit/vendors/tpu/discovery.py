"""Chips as devices. Not here: what is wrong with them, and which may be used together."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from accelkit import (
    Device,
    DeviceNode,
    FrozenMap,
    Host,
    ModelError,
    NotThere,
    PciFunction,
    SourceError,
    Unreadable,
    Vendor,
    dns_label,
)
from accelkit.vendors.tpu.chips import (
    Chip,
    Unready,
    is_ours,
    nodes_of,
    read_chip,
    read_chips,
    shared_nodes,
)
from accelkit.vendors.tpu.slices import Said, Slice, Unknown, accelerator_type, read_slice

Answer = tuple[str, ...] | Unready | SourceError
"""Device files of a chip, or why it has none that can be used, or known."""
_PARTS = (2, 4)
"""Sizes of blocks of which a host may have several."""


@attrs.frozen(kw_only=True)
class Inventory:
    """The chips of a host, and the slice that they belong to."""

    chips: tuple[Chip, ...]
    """By PCI address; of the commonest generation first where there are several."""
    slice: Slice | None
    unknown: str
    """Why the slice is not known; empty: it is."""

    @property
    def complete(self) -> bool:
        """Whether the host has all the chips that it should have, and so each its place."""
        return self.slice is not None and len(self.chips) == self.slice.chips


def read_inventory(host: Host, said: Said) -> Inventory:
    """Look at all chips of *host*.

    Raises:
        SourceError: Not even that could be done.
    """
    chips = read_chips(host)
    generations = {chip.generation for chip in chips}
    if len(generations) != 1:
        mixed = ", ".join(sorted(generation.product for generation in generations))
        unknown = f"chips of several generations are on one host: {mixed}" if mixed else ""
        return Inventory(chips=chips, slice=None, unknown=unknown)
    try:
        found = read_slice(host, chips[0].generation, len(chips), said)
    except (Unknown, SourceError) as error:
        return Inventory(chips=chips, slice=None, unknown=str(error))
    return Inventory(chips=chips, slice=found, unknown="")


def unready(host: Host, here: Inventory) -> bool:
    """Whether a chip of the host cannot be used as it is; one that cannot be read may be well."""
    return _some_unready([_nodes(host, chip) for chip in here.chips])


def name_of(chip: Chip) -> str:
    """By its place: a chip shows no serial number."""
    return dns_label(f"tpu-{chip.place}")


def chip_of(host: Host, device: Device) -> Chip:
    """The chip that *device* is.

    Raises:
        NotThere: It is gone.
        SourceError: Could not be known.
    """
    functions = [PciFunction(address=address, host=host) for address in sorted(device.aliases)]
    # Something else may be in that place by now.
    if (chip := read_chip([f for f in functions if is_ours(f)])) is None:
        raise NotThere(
            f"{device.id}: {', '.join(sorted(device.aliases))} is no TPU any more",
            remedy="see the kernel log; a new virtual machine may help",
        )
    return chip


def discover_all(vendor: Vendor, host: Host, here: Inventory) -> Iterator[Device | Unreadable]:
    """Each chip as a device, or why it cannot be one."""
    answers = [_nodes(host, chip) for chip in here.chips]
    several = here.slice is not None and here.slice.hosts > 1
    # A worker's part of a slice is used as a whole: one chip without a driver is as good as gone.
    placed = here.complete and not (several and _some_unready(answers))
    for index, (chip, answer) in enumerate(zip(here.chips, answers, strict=True)):
        try:
            if isinstance(answer, Exception):
                raise answer
            yield _device(vendor, chip, answer, _facts(here, chip, index if placed else None))
        except Unready as error:
            yield Unreadable(
                subject=name_of(chip), code=error.code, reason=str(error), remedy=error.remedy
            )
        except (SourceError, ModelError) as error:
            yield Unreadable(
                subject=name_of(chip), code="unreadable", reason=str(error), remedy=error.remedy
            )


def _some_unready(answers: Iterable[Answer]) -> bool:
    return any(isinstance(answer, Unready) for answer in answers)


def _nodes(host: Host, chip: Chip) -> Answer:
    try:
        return nodes_of(host, chip)
    except (Unready, SourceError) as error:
        return error


def _facts(here: Inventory, chip: Chip, index: int | None) -> dict[str, bool | int | str]:
    found: dict[str, bool | int | str] = {
        "generation": chip.generation.name,
        "coresPerChip": chip.generation.cores,
    }
    if here.slice is None:
        return found
    part = here.slice
    found |= {
        "topology": part.name,
        "acceleratorType": accelerator_type(chip.generation, part.chips * part.hosts),
        "chipsPerHost": part.chips,
        "hosts": part.hosts,
    }
    if part.worker is not None:
        found["workerId"] = part.worker
    if index is not None:
        found["index"] = index
        # By which claims for a part of a host can ask for chips that may run together.
        sizes = [size for size in _PARTS if size < part.chips and part.hosts == 1]
        found |= {f"block{size}": index // size for size in sizes}
    return found


def _device(
    vendor: Vendor, chip: Chip, nodes: Sequence[str], facts: dict[str, bool | int | str]
) -> Device:
    return vendor.device(
        name_of(chip),
        kind="tpu",
        product=chip.generation.product,
        locality=chip.functions[0].locality,
        nodes=[DeviceNode(path=path) for path in (*shared_nodes(chip), *nodes)],
        attributes=FrozenMap(facts),
        capacity={"memory": chip.generation.memory},
        # One process has a chip; another one that opens it is told that it is busy.
        sharing=frozenset(),
        aliases=frozenset(chip.addresses),
        handle=",".join(path.rpartition("/")[2] for path in nodes),
    )
