"""The simulated Gaudi machine: its files. Not here: what can happen to it."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from accelkit.testing.machines import Entry, File, Line, Link, Machine, Node, Part, State
from accelkit.testing.sysfs import PciPlace, part_place, pci_function
from accelkit.vendors.gaudi import facts, pasted, states

DRIVER_VERSION = "1.22.0-ee698fb"
_ACCEL_MAJOR, _VERBS_MAJOR, _CONTROL_MAJOR = 261, 231, 508
"""Linux, include/drm/drm_accel.h; Documentation/admin-guide/devices.txt; given at run time."""
_FIRST_VERBS = 192
"""Linux, drivers/infiniband/core/uverbs_main.c, IB_UVERBS_BASE_MINOR."""
_MODULES = (0, 4, 1, 5, 2, 6, 3, 7)
"""Module ids by index, as seen on one HLS-1 server; other servers have other orders."""
_LAYOUTS = ("accel", "virtual", "hl")


@attrs.frozen(kw_only=True)
class Product:
    """One product of the machine."""

    pci_device: int
    type: str
    card: str
    """What the firmware calls the board, which is the name of its sensors."""
    speed: str
    """Of its PCIe link."""
    clock_mhz: int
    power_mw: int
    ports: int = 3
    """To other nodes."""


PRODUCTS: Mapping[str, Product] = {
    "gaudi3": Product(
        pci_device=0x1060, type="GAUDI3", card="HL325", speed="32.0 GT/s PCIe",
        clock_mhz=1600, power_mw=850_000,
    ),
    "gaudi3-pcie": Product(
        pci_device=0x1062, type="GAUDI3 HL-338", ports=0, card="HL338", speed="32.0 GT/s PCIe",
        clock_mhz=1600, power_mw=600_000,
    ),
    "gaudi2": Product(
        pci_device=0x1020, type="GAUDI2", card="HL225", speed="16.0 GT/s PCIe",
        clock_mhz=1650, power_mw=600_000,
    ),
    "gaudi2-pcie": Product(
        pci_device=0x1020, type="GAUDI2 HL-288", ports=0, card="HL288", speed="16.0 GT/s PCIe",
        clock_mhz=1650, power_mw=450_000,
    ),
    "gaudi": Product(
        pci_device=0x1000, type="GAUDI", card="HL205", speed="16.0 GT/s PCIe",
        clock_mhz=2050, power_mw=350_000,
    ),
}  # fmt: skip
"""Clocks and powers are examples; 0x1062 for the PCIe card, and no ports on them, are assumed."""


class GaudiMachine(Machine):
    """Gaudi cards with a shuffled map of modules, of which each can be opened once."""

    vendor = states.VENDOR
    products: ClassVar[tuple[str, ...]] = tuple(PRODUCTS)
    verbs: ClassVar[Mapping[str, str]] = {v: usage for v, (usage, _) in states.VERBS.items()}
    history = frozenset({"boots"})
    options: ClassVar[Mapping[str, str]] = {
        "driver": "version of the driver",
        "firmware": "version of the firmware",
        "layout": "where the driver shows a card: accel, virtual (older) or hl (before accel)",
        "hook": "path of the maker's container hook; none: it is not installed",
    }
    outputs = pasted.outputs()
    looks = pasted.LOOKS
    drivers = ("gaudi.intel.com",)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.product = PRODUCTS[part.product]
        self.places = tuple(part_place(part, i) for i in range(part.count))
        self.modules = _shuffled(part)

    @property
    def driver_version(self) -> str:
        return self.part.options.get("driver", DRIVER_VERSION)

    @property
    def layout(self) -> str:
        wished = self.part.options.get("layout", "")
        return wished if wished in _LAYOUTS else _LAYOUTS[0]

    def units(self) -> tuple[str, ...]:
        return tuple(f"gaudi-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        hook = self.part.options.get("hook", facts.HOOKS[0])
        if hook != "none":
            yield File(path=hook, content="#!/bin/sh\n", mode=0o755)
        yield File(path=facts.GAUDINET, content='{"NIC_NET_CONFIG": []}\n')
        loaded = not states.of(state, self.vendor).get("unloaded")
        if loaded:
            yield from self._driver()
        for index, unit in enumerate(self.units()):
            own = states.of(state, unit)
            if own.get("removed"):
                continue
            bound = str(own.get("bound", facts.DRIVER))
            ours = loaded and bound == facts.DRIVER
            yield from self._function(index, own, bound if loaded or bound != facts.DRIVER else "")
            if ours:
                yield from self._served(state, index, own)

    def _driver(self) -> Iterator[Entry]:
        yield File(path="/sys/module/habanalabs/version", content=f"{self.driver_version}\n")
        yield Line(path="/proc/modules", text="habanalabs 1 0 - Live 0x0")
        for major, name in (
            (_ACCEL_MAJOR, "accel"),
            (_VERBS_MAJOR, "infiniband_verbs"),
            (_CONTROL_MAJOR, "habanalabs"),
        ):
            yield Line(path="/proc/devices", text=f"{major} {name}")

    def _function(self, index: int, own: states.Fields, driver: str) -> Iterator[Entry]:
        speed = self.product.speed
        link = {
            "current_link_width": f"{states.number(own, 'lanes', 16)}\n",
            "max_link_width": "16\n",
            "current_link_speed": f"{speed}\n",
            "max_link_speed": f"{speed}\n",
        }
        with_driver = driver == facts.DRIVER and self.layout == "accel"
        yield from pci_function(
            self.places[index],
            vendor=facts.PCI_VENDOR,
            device=self.product.pci_device,
            pci_class=facts.ACCELERATOR << 8,
            driver=driver or None,
            files={**link, **(self.attributes(index, own) if with_driver else {})},
        )

    def attributes(self, index: int, own: states.Fields) -> dict[str, str]:
        """The driver's own files of a card, by name.

        Source:
            Linux, drivers/accel/habanalabs/common/sysfs.c.
        """
        status = str(own.get("status", "operational"))
        module = states.number(own, "module", self.modules[index])
        release = self.part.options.get("firmware", self.driver_version.partition("-")[0])
        found = {
            "device_type": f"{self.product.type}\n",
            "driver_ver": f"{self.driver_version}\n",
            "fw_os_ver": f"hl-{self.product.type.split()[0].lower()}-{release}-fw-60.1.0\n",
            "status": f"{status[:1].upper()}{status[1:]}\n",
            "pci_addr": f"{self.places[index].address}\n",
            "hard_reset_cnt": f"{states.number(own, 'resets')}\n",
            "max_power": f"{self.product.power_mw}\n",
            "clk_cur_freq_mhz": f"{self.product.clock_mhz}\n",
            **({} if module < 0 else {"module_id": f"{module}\n"}),
        }
        return {**found, **states.texts(own, "files")}

    def _served(self, state: State, index: int, own: states.Fields) -> Iterator[Entry]:
        """What a loaded driver shows of a card that it serves."""
        place, minor = self.places[index], self.minor(state, index)
        folder = _folder(place)
        common = states.of(state, self.vendor)
        if self.layout == "accel":
            yield from _accel(folder, minor)
        else:
            yield from self._elsewhere(index, minor, own)
        yield from self._sensors(folder, index)
        for port in range(self.product.ports):
            name = f"ens{self.part.first + index}d{port}"
            link = states.texts(own, "ports").get(str(port), "up")
            yield File(path=f"{folder}/net/{name}/operstate", content=f"{link}\n")
        if common.get("verbs", True):
            yield File(path=f"{folder}/infiniband_verbs/uverbs{minor}/abi_version", content="1\n")
        if common.get("nodes", True):
            yield from self._nodes(minor, verbs=common.get("verbs", True) is True)
        if (holder := own.get("holder")) is not None:
            yield File(path=f"/proc/{holder}/comm", content="python3\n")
            yield Link(path=f"/proc/{holder}/fd/{3 + index}", target=self._own_node(minor))

    def minor(self, state: State, index: int) -> int:
        """The number of a card's nodes: another one after each boot, where there are several."""
        boots = states.number(states.of(state, self.vendor), "boots")
        return self.part.first + (index + boots) % self.part.count

    def _elsewhere(self, index: int, minor: int, own: states.Fields) -> Iterator[Entry]:
        old = self.layout == "hl"
        home = (
            f"/sys/devices/virtual/habanalabs/hl{minor}"
            if old
            else (f"/sys/devices/virtual/accel/accel{minor}/device")
        )
        for name, text in self.attributes(index, own).items():
            yield File(path=f"{home}/{name}", content=text)
        if old:
            yield Link(path=f"/sys/class/habanalabs/hl{minor}", target=home)

    def _sensors(self, folder: str, index: int) -> Iterator[Entry]:
        home = f"{folder}/hwmon/hwmon{self.part.first + index}"
        for name, text in {
            "name": self.product.card,
            "temp1_input": str(35_000 + 500 * index),
            "power1_input": str(90_000_000 + 1_000_000 * index),
        }.items():
            yield File(path=f"{home}/{name}", content=f"{text}\n")

    def _nodes(self, minor: int, *, verbs: bool) -> Iterator[Entry]:
        control = f"hl_controlD{minor}" if self.layout == "hl" else f"accel/accel_controlD{minor}"
        yield Node(path=self._own_node(minor), major=_ACCEL_MAJOR, minor=minor)
        yield Node(path=f"/dev/{control}", major=_CONTROL_MAJOR, minor=minor)
        if verbs:
            path = f"/dev/infiniband/uverbs{minor}"
            yield Node(path=path, major=_VERBS_MAJOR, minor=_FIRST_VERBS + minor)

    def _own_node(self, minor: int) -> str:
        return f"/dev/hl{minor}" if self.layout == "hl" else f"/dev/accel/accel{minor}"

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        return states.VERBS[verb][1](self, state, args)

    def booted(self, state: State) -> State:
        return states.booted(state)


def _shuffled(part: Part) -> tuple[int, ...]:
    """The module id of each unit; boards of eight, each in an order of its own."""
    found: list[int] = []
    rng = random.Random(part.seed)  # noqa: S311 - the same machine each time
    while len(found) < part.count:
        order = list(_MODULES)
        if part.seed or found:
            rng.shuffle(order)
        left = part.count - len(found)
        # Of a board that is not full the first places are.
        found += order if left >= facts.BOARD else [m for m in order if m < left]
    told = [unit.module for unit in part.told.units]
    # What is made up is none that another card tells.
    taken = Counter(told)
    free: list[int] = []
    for one in found:
        if taken[one] > 0:
            taken[one] -= 1
        else:
            free.append(one)
    made = iter(free)
    return tuple(next(made) if one is None else one for one in told)


def _folder(place: PciPlace) -> str:
    return "/".join(("/sys/devices", place.root, *place.above, place.address))


def _accel(folder: str, minor: int) -> Iterator[Entry]:
    home = f"{folder}/accel/accel{minor}"
    yield File(path=f"{home}/dev", content=f"{_ACCEL_MAJOR}:{minor}\n")
    yield Link(path=f"/sys/class/accel/accel{minor}", target=home)
    yield Link(path=f"{home}/device", target=folder)
