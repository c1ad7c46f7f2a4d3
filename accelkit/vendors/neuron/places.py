"""Where chips hang. Not here: how they are linked with each other.

No file leads from a chip to its PCI function: a chip's number comes from its firmware.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from accelkit import Host, Locality, PciFunction, SourceError
from accelkit.vendors.neuron.chips import Chip

PATIENCE_S = 3.0
"""How long neuron-ls may take; it asks every chip."""
AGAIN_S = 600.0
"""When it is asked again after it failed."""
_BDF = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)


@attrs.define
class Places:
    """Remembers which chip has which PCI function: that stays until chips come or go.

    Args:
        tool: Path of neuron-ls; empty: it is never run.
        clock: Seconds that only grow.
    """

    tool: str
    clock: Callable[[], float] = time.monotonic
    _sign: object = None
    _found: Mapping[int, str] = attrs.field(factory=dict)
    _again: float | None = None

    def of(
        self, host: Host, chips: Sequence[Chip], functions: Sequence[PciFunction]
    ) -> Mapping[int, Locality]:
        """The locality of each chip, by number, as far as it can be known."""
        by_address = {function.address: function for function in functions}
        addresses = self._addresses(host, chips, tuple(by_address))
        places = {
            index: by_address[address].locality
            for index, address in addresses.items()
            if address in by_address
        }
        if len(places) == len(chips):
            return places
        common = _common([function.locality for function in functions])
        return {chip.index: places.get(chip.index, common) for chip in chips}

    def _addresses(
        self, host: Host, chips: Sequence[Chip], there: tuple[str, ...]
    ) -> Mapping[int, str]:
        if len(chips) == len(there) == 1:
            return {chips[0].index: there[0]}
        sign = (tuple((chip.index, chip.serial) for chip in chips), there)
        if sign != self._sign or (self._again is not None and self.clock() >= self._again):
            self._sign, self._found, self._again = sign, {}, None
            try:
                self._found = ask(host, self.tool, there)
            except SourceError:  # diagnosis says why
                self._again = self.clock() + AGAIN_S
        return self._found


def _common(places: Sequence[Locality]) -> Locality:
    """What is true of all of *places*."""
    if not places or any(place.numa_node != places[0].numa_node for place in places):
        return Locality()
    return Locality(numa_node=places[0].numa_node, near_nodes=places[0].near_nodes)


def ask(host: Host, tool: str, there: Sequence[str]) -> Mapping[int, str]:
    """Addresses of PCI functions by the numbers of their chips, as neuron-ls says.

    Args:
        host: The door.
        tool: Its path; empty: it is not to be run.
        there: Addresses of the functions that there are; it may leave out their domain.

    Raises:
        SourceError: It cannot be run, or answers nonsense.

    Source:
        Neuron documentation, neuron-ls user guide: keys neuron_device and bdf.
    """
    if not tool:
        raise SourceError("neuron-ls is not to be run")
    finished = host.run((tool, "-j"), PATIENCE_S)
    if finished.code:
        raise SourceError(f"{tool} -j ended with {finished.code}: {finished.err[:200]}")
    try:
        listed = json.loads(finished.out)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{tool} -j answers no JSON: {error}") from error
    found: dict[int, str] = {}
    for entry in listed if isinstance(listed, list) else ():
        number, bdf = (
            (entry.get("neuron_device"), entry.get("bdf")) if isinstance(entry, dict) else (0, 0)
        )
        if type(number) is int and isinstance(bdf, str) and _BDF.fullmatch(bdf.lower()):
            match = [address for address in there if address.endswith(bdf.lower())]
            if len(match) == 1:
                found[number] = match[0]
    if len(set(found.values())) != len(found) or not found:
        raise SourceError(f"{tool} -j names no PCI function of a chip, or one for two")
    return found
