"""How the chips of a simulated machine hang together. Not here: what is done to them."""

import json
from uuid import NAMESPACE_OID, uuid5

from accelkit.testing.machines import Part
from accelkit.testing.sysfs import PciPlace, part_place
from accelkit.vendors.neuron import facts

PRODUCTS = {
    "trn2": facts.TRAINIUM2,
    "trn1": facts.TRAINIUM1,
    "inf2": facts.INFERENTIA2,
    "trn3": facts.TRAINIUM3,
}
"""By the name of their instances."""


class Board:
    """Chips of one part: serial numbers, numbers, who is linked with whom."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.family = PRODUCTS[part.product]
        self.torus = self.family.torus and part.count % facts.TORUS == 0

    def serial(self, position: int, replaced: int) -> str:
        """Of a chip, or of the one that came in its place."""
        told = self.part.told.units[position].serial
        if told is not None and not replaced:
            return told
        made = f"neuron/{self.part.seed}/{self.part.first + position}/{replaced}"
        return uuid5(NAMESPACE_OID, made).hex[:16]

    def number(self, position: int, boots: int) -> int:
        """Of a chip in its files: others after each boot, so that nobody takes them for names.

        Its driver counts from 0, whatever other devices there are.
        Turned by half a torus, or by one on a ring: links and legal sets stay what they are.
        """
        turn = 2 * facts.ROW if self.torus else 1
        return (position + boots * turn) % self.part.count

    def beside(self, number: int) -> tuple[int, ...]:
        """Numbers of the chips that chip *number* is linked with."""
        count = self.part.count
        if (told := self.part.told.beside(number)) is not None:
            return told
        if self.torus:
            return facts.neighbours(number)
        around = ((number - 1) % count, (number + 1) % count)
        if self.part.options.get("links") == "chain":
            around = (number - 1, number + 1)
        return tuple(
            other for other in dict.fromkeys(around) if other != number and 0 <= other < count
        )

    def place(self, position: int) -> PciPlace:
        return part_place(self.part, position)

    def listing(self, chips: dict[int, int], lnc: int) -> str:
        """What neuron-ls -j prints of the chips: positions by number.

        Source:
            Neuron documentation, neuron-ls user guide; the domain is left out as it does.
        """
        cores = self.family.cores // lnc
        return json.dumps(
            [
                {
                    "neuron_device": number,
                    "bdf": self.place(position).address.partition(":")[2],
                    "connected_to": [*self.beside(number)],
                    "nc_count": cores,
                    **({"logical_neuroncore_config": lnc} if self.family.lnc else {}),
                    "memory_size": self.family.memory,
                    "numa_node": str(self.place(position).numa),
                    "neuron_processes": [],
                }
                for number, position in sorted(chips.items())
            ]
        )


def kernel_line(error: str, number: int, serial: str, core: int = 0) -> str:
    """What the runtime writes into the kernel log. Source: as in `kernel`."""
    return (
        f"NEURON_HW_ERR={error} instance-id=i-0123456789abcdef0 hostname=node nd-id={number} "
        f"nc-id={core} serial-num={serial} action=TERMINATE_INSTANCE"
    )
