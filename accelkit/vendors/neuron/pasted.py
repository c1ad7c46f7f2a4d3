"""Machines from what `neuron-ls --json-output` prints. Not here: the machine.

Source:
    Neuron documentation, neuron-ls user guide, Neuron 2.20 to 2.28.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from accelkit import ConfigError
from accelkit.testing.pasted import (
    Likeness,
    Looks,
    Told,
    Unit,
    Verb,
    address_in,
    nearest,
    numa_in,
)
from accelkit.testing.texts import json_in, mapping, mappings, numbers, word
from accelkit.vendors.neuron.board import PRODUCTS

NAME = "neuron-ls --json-output"
LOOKS: Mapping[str, Looks] = {
    name: Looks(
        names=(name, family.name, family.instance), memory=family.memory, pci=frozenset(family.pci)
    )
    for name, family in PRODUCTS.items()
}
_MOST_MEMORY = 1 << 48
_RING, _TORUS = "inf2", "trn1"
"""Chips with as much memory."""


def is_it(text: str) -> bool:
    return '"neuron_device"' in text


def read(text: str) -> Likeness:
    """What *text* says of its chips.

    Raises:
        ConfigError: It is no such output.
    """
    found = json_in(text)
    listed = mappings(found) or mappings(next(iter(mapping(found).values()), None))
    chips: dict[int, dict[str, object]] = {}
    for entry in listed:
        number = entry.get("neuron_device")
        if type(number) is not int or number in chips:
            text = f"{word(number) or 'something'!r} is no number, or is there twice"
            raise ConfigError([("neuron_device", text)])
        chips[number] = entry
    if not chips:
        raise ConfigError([("text", "has no chip")])
    return _likeness(dict(sorted(chips.items())))


def _likeness(chips: Mapping[int, Mapping[str, object]]) -> Likeness:
    places = {number: index for index, number in enumerate(chips)}
    model = next(iter(chips.values()))
    instance = word(model.get("instance_type"))
    memory = model.get("memory_size")
    known = type(memory) is int and 0 < memory < _MOST_MEMORY
    product, sure = nearest(
        LOOKS,
        name=instance.partition(".")[0],
        memory=memory if known else None,  # type: ignore[arg-type]  # looked at
    )
    links = tuple(
        (places[number], places[other])
        for number, chip in chips.items()
        for other in numbers(chip.get("connected_to"))
        if other in places
    )
    if not instance and product == _TORUS and _is_ring(links):
        product = _RING
    lnc = model.get("logical_neuroncore_config")
    # Chips of inf2 and trn1 have as much memory: cores that can be joined tell those of trn2.
    verbs: tuple[Verb, ...] = (("lnc", str(lnc)),) if type(lnc) is int and lnc in {1, 2} else ()
    return Likeness(
        product=product,
        told=Told(units=tuple(map(_unit, chips.values())), links=links),
        verbs=verbs if PRODUCTS[product].lnc else (),
        warnings=tuple(_warnings([*chips.values()], instance, product, sure=sure)),
    )


def _is_ring(links: Sequence[tuple[int, int]]) -> bool:
    """Whether there are links, and no chip has more than two."""
    return bool(links) and max(Counter(one for one, _ in links).values()) <= 2


def _unit(chip: Mapping[str, object]) -> Unit:
    return Unit(
        address=address_in(word(chip.get("bdf"))), numa=numa_in(word(chip.get("numa_node")))
    )


def _warnings(
    chips: Sequence[Mapping[str, object]], instance: str, product: str, *, sure: bool
) -> Iterator[str]:
    if not instance:
        yield f"the instance is not told: by its memory and links it is {product}"
    elif not sure and not instance.startswith(product):
        yield f"{instance} is not simulated: {product} is nearest"
    told = [chip["neuron_device"] for chip in chips]
    if told != [*range(len(chips))]:
        yield f"chips are counted anew, without gaps: told are {', '.join(map(str, told))[:80]}"
    if not any(numa_in(word(chip.get("numa_node"))) is not None for chip in chips):
        yield "NUMA nodes are not told: they are made up"
    yield "serial numbers are not told: they are made up"
    if any(chip.get("neuron_processes") for chip in chips):
        yield "not taken over: processes"
