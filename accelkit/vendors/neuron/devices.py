"""Chips and cores as devices of the model. Not here: how they were read."""

from collections.abc import Iterator, Mapping, Sequence

from accelkit import (
    Device,
    DeviceNode,
    FrozenMap,
    Locality,
    Mode,
    Profile,
    Scope,
    Vendor,
    Version,
    dns_label,
)
from accelkit.vendors.neuron import facts
from accelkit.vendors.neuron.chips import Chip
from accelkit.vendors.neuron.lnc import VALUES, mode_of

CHIP, CORE = "neuron", "neuroncore"
"""Kinds, and so the ends of resource names. Source: Neuron documentation, device plugin."""
FIXED = "core"
"""Profile of cores that nothing changes, and the one mode of their chips."""


def name_of(serial: str) -> str:
    """A chip's name: its serial number, which is the same wherever it is plugged in."""
    return dns_label(f"neuron-{serial}")


def serial_of(device: Device) -> str:
    """The serial number in the name of a chip or of one of its cores, in lower case."""
    return device.root.name.removeprefix("neuron-")


def chip_device(
    vendor: Vendor,
    chip: Chip,
    place: Locality,
    lnc: int | None,
    also: Mapping[str, int | str | Version],
) -> Device:
    """A chip; it can be used whole in any mode.

    Args:
        vendor: Whose device it is.
        chip: As it was read.
        place: Where it hangs, as far as it is known.
        lnc: Physical cores that are one logical core; None: they always are one.
        also: Attributes that it has from the host as a whole.
    """
    family = chip.family
    attributes = {
        "serial": chip.serial,
        "deviceId": chip.index,
        "coreCount": chip.cores,
        "architecture": chip.arch,
        "instanceType": chip.instance,
        "logicalNeuronCore": lnc,
        **also,
    }
    address = place.pci_address
    return vendor.device(
        name_of(chip.serial),
        kind=CHIP,
        product=chip.product,
        locality=place,
        nodes=[DeviceNode(path=f"/dev/{chip.word}")],
        attributes={key: value for key, value in attributes.items() if value is not None},
        own={"serial"},
        capacity={"memory": family.memory} if family else {},
        slots=chip.cores,
        profiles=[_profile(chip, name, size) for name, size in _cuts(chip, lnc).items()],
        modes=[_mode(chip, name, size) for name, size in _cuts(chip, lnc).items()],
        mode=FIXED if lnc is None else mode_of(lnc),
        # A core belongs to one process from its first use to the end of the process.
        # Source: Neuron documentation, Neuron Runtime configuration.
        sharing=frozenset(),
        aliases={chip.serial, chip.word, *([address] if address else [])},
        handle=chip.word,
    )


def core_devices(vendor: Vendor, whole: Device) -> Iterator[Device]:
    """The cores of *whole* in its mode: they are simply there."""
    for profile in whole.profiles:
        if profile.mode == whole.mode:
            for start in profile.starts:
                yield vendor.partition(
                    whole,
                    profile,
                    start,
                    nodes=whole.nodes,
                    sharing=frozenset(),
                    handle=whole.handle,
                )


def _cuts(chip: Chip, lnc: int | None) -> Mapping[str, int]:
    """How many physical cores one core of a mode has, by the mode."""
    if lnc is None:
        return {FIXED: 1}
    return {mode_of(size): size for size in VALUES if chip.cores % size == 0}


def _mode(chip: Chip, name: str, size: int) -> Mode:
    return Mode(name=name, disturbs=Scope.VENDOR, cut=name, count=chip.cores // size)


def _profile(chip: Chip, name: str, size: int) -> Profile:
    """Cores of a chip; each has its part of the memory, which nothing keeps it to."""
    memory = None if chip.family is None else chip.family.memory * size // chip.cores
    return Profile(
        name=name,
        slug=name,
        size=size,
        starts=tuple(range(0, chip.cores, size)),
        mode=name,
        kind=CORE,
        capacity=FrozenMap({} if memory is None else {"memory": memory}),
    )


def shape_of(chips: Sequence[Chip]) -> str | None:
    """How the chips of a host are linked: torus, ring or chain; None: otherwise, or not known.

    A chip that tells no links has those that others tell of it. A ring whose last chip is not
    there is a chain: by their numbers nobody sees the gap.
    """
    here = {chip.index for chip in chips}
    linked = {chip.index: chip.beside for chip in chips if chip.beside}
    told = {j for beside in linked.values() for j in beside}
    if not linked or not here <= told | set(linked):
        return None
    if all(sorted(facts.neighbours(i)) == sorted(beside) for i, beside in linked.items()):
        return "torus"
    end = max(here | told)
    ring = {i: {(i - 1) % (end + 1), (i + 1) % (end + 1)} for i in linked}
    chain = {i: {j for j in (i - 1, i + 1) if 0 <= j <= end} for i in linked}
    found = {i: set(beside) for i, beside in linked.items()}
    if found == chain or (found == ring and end not in here):
        return "chain"
    return "ring" if found == ring else None


def places_in_torus(chip: Chip) -> Mapping[str, int]:
    """Row and column of a chip, and which groups of four and eight it is in.

    Named as the DRA driver of AWS names them: x is the row.
    """
    row, column = divmod(chip.index % facts.TORUS, facts.SIDE)
    return {
        "topology_x": row,
        "topology_y": column,
        "topology4_id": chip.index // facts.ROW,
        "topology8_id": chip.index // (2 * facts.ROW),
    }
