"""Simulated things that rules can describe. Not here: the rules."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from accelkit.testing.machines import Entry, File, Link, Machine, Node, State
from accelkit.testing.sysfs import part_place, pci_function

MAJOR = 242
"""For local use (Linux, Documentation/admin-guide/devices.txt)."""
USB_MAJOR, TTY_USB_MAJOR = 189, 188
"""The same list: usbfs, and USB serial converters."""
USB_FOLDER = "/sys/devices/pci0000:f0/0000:f0:14.0/usb1"


class GenericMachine(Machine):
    """Plain nodes (*widget*), PCI functions with a node (*card*) or USB devices (*stick*).

    A widget is /dev/widgetN; a card is 1dea:0001 with /dev/card/ADDRESS; a stick is 0403:6001
    with its node of usbfs and /dev/ttyUSBN, by path below /dev/serial/by-path.
    """

    vendor = "generic"
    products = ("widget", "card", "stick")
    verbs: ClassVar[Mapping[str, str]] = {
        "lose": "lose UNIT",
        "restore": "restore UNIT",
        "close": "close UNIT",
    }

    def units(self) -> tuple[str, ...]:
        return tuple(f"{self.part.product}-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        ways = {"widget": self._widget, "card": self._card, "stick": self._stick}
        for index, unit in enumerate(self.units()):
            own = state.get(unit, {})
            if own.get("lost", False):
                continue
            for entry in ways[self.part.product](index):
                if not (isinstance(entry, Node) and own.get("closed", False)):
                    yield entry

    def _widget(self, index: int) -> Iterator[Entry]:
        position = self.part.first + index
        yield Node(path=f"/dev/widget{position}", major=MAJOR, minor=position)

    def _card(self, index: int) -> Iterator[Entry]:
        position = self.part.first + index
        place = part_place(self.part, index)
        yield from pci_function(
            place, vendor=0x1DEA, device=0x0001, pci_class=0x120000, driver="card"
        )
        yield Node(path=f"/dev/card/{place.address}", major=MAJOR, minor=position)

    def _stick(self, index: int) -> Iterator[Entry]:
        position = self.part.first + index
        port, number = f"1-{position + 1}", position + 2
        serial = {} if index % 2 else {"serial": f"F{self.part.seed:02}{position:04}"}
        for name, text in {
            "idVendor": "0403",
            "idProduct": "6001",
            "busnum": "1",
            "devnum": str(number),
            **serial,
        }.items():
            yield File(path=f"{USB_FOLDER}/{port}/{name}", content=f"{text}\n")
        yield Link(path=f"/sys/bus/usb/devices/{port}", target=f"{USB_FOLDER}/{port}")
        yield Node(path=f"/dev/bus/usb/001/{number:03}", major=USB_MAJOR, minor=number - 1)
        yield Node(path=f"/dev/ttyUSB{position}", major=TTY_USB_MAJOR, minor=position)
        by_path = f"/dev/serial/by-path/pci-0000:f0:14.0-usb-0:{position + 1}:1.0-port0"
        yield Link(path=by_path, target=f"/dev/ttyUSB{position}")

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        unit = self.unit(verb, args)
        if len(args) != 1:
            raise self.misused(verb, f"takes the unit alone, not {' '.join(args[1:])}")
        state[unit] = {"lost": verb == "lose", "closed": verb == "close"}
        return state
