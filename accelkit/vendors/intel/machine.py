"""The simulated Intel machine: its GPUs, virtual functions and device files. Not: what happens."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import attrs

from accelkit.testing.machines import Entry, File, Line, Link, Machine, Node, Part, State
from accelkit.testing.pasted import Cut, Looks, Verb
from accelkit.testing.sysfs import PciPlace, extended_minor, part_place, pci_function
from accelkit.vendors.intel import facts, shown, sriov, states, told
from accelkit.vendors.intel.products import PRODUCTS

_FIRST_RENDER, _CLASSIC = 128, 64
"""Linux, drivers/gpu/drm/drm_drv.c: 64 minors of each sort."""
_INTEGRATED, _BMC = "integrated", "bmc"


@attrs.frozen(kw_only=True)
class Numbers:
    """What the kernel calls a GPU this time."""

    card: int
    render: int


def numbers(part: Part, position: int) -> Numbers:
    """Those of the GPU at *position* of all of *part*, one that is no unit before them."""
    beside = part.options.get("beside", "")
    if beside == _INTEGRATED:
        position += 1
    if part.first:
        render = extended_minor(part, position)
    elif position < _CLASSIC - 1:
        card = position + (beside == _BMC)  # it has no render node
        return Numbers(card=card, render=_FIRST_RENDER + position)
    else:
        render = extended_minor(part, position - _CLASSIC + 1)
    return Numbers(card=render + 1, render=render)


class IntelMachine(Machine):
    """GPUs of i915 or xe, which have other numbers after each boot, and their virtual functions."""

    vendor = states.VENDOR
    products: ClassVar[tuple[str, ...]] = tuple(PRODUCTS)
    verbs: ClassVar[Mapping[str, str]] = {v: usage for v, (usage, _) in states.VERBS.items()}
    history = frozenset({"probes"})
    options: ClassVar[Mapping[str, str]] = {
        "driver": "i915 or xe, whatever the product has by default",
        "backport": "version of the i915 of Intel's own packages, instead of the kernel's",
        "beside": "another display controller that has card0: integrated or bmc",
    }
    looks: ClassVar[Mapping[str, Looks]] = {
        name: Looks(names=(name,), memory=one.memory, pci=frozenset({one.device}))
        for name, one in PRODUCTS.items()
    }
    drivers = ("gpu.intel.com",)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.product = PRODUCTS[part.product]
        self.places = tuple(part_place(part, i) for i in range(part.count))

    @classmethod
    def cut(cls, product: str, index: int, cuts: Sequence[Cut]) -> tuple[Verb, ...]:
        """As many virtual functions as their profile tells; other drivers do not tell it."""
        counts = range(1, PRODUCTS[product].vfs + 1)
        wanted = {cut.profile for cut in cuts}
        return tuple(("vfs", index, str(n)) for n in counts if {sriov.profile_name(n)} == wanted)

    @property
    def driver(self) -> str:
        wished = self.part.options.get("driver", "")
        return wished if wished in facts.DRIVERS else self.product.driver

    @property
    def backport(self) -> str:
        """Empty: the kernel's own driver."""
        return self.part.options.get("backport", "") if self.driver == facts.I915 else ""

    @property
    def beside(self) -> str:
        return self.part.options.get("beside", "")

    def units(self) -> tuple[str, ...]:
        return tuple(f"gpu-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        yield from self._strangers(state)
        if states.loaded(state):
            yield from self._module()
        free = self.part.count
        for index, unit in enumerate(self.units()):
            own = states.of(state, unit)
            if own.get("lost"):
                continue
            yield from self._unit(state, index, own, free)
            free += states.number(own, "vfs")
        yield from self._processes(state)

    def _module(self) -> Iterator[Entry]:
        yield File(path=f"/sys/module/{self.driver}/initstate", content="live\n")
        if self.backport:
            yield File(path=f"/sys/module/{self.driver}/version", content=f"{self.backport}\n")
        yield Line(path="/proc/modules", text=f"{self.driver} 1 0 - Live 0x0")
        yield Line(path="/proc/devices", text=f"{facts.DRM_MAJOR} drm")
        yield Line(path="/proc/devices", text=f"{facts.MEI_MAJOR} mei")

    def _strangers(self, state: State) -> Iterator[Entry]:
        """Display controllers that are none of the units."""
        if self.beside == _INTEGRATED:
            place = PciPlace(address="0000:00:02.0", root="pci0000:00", above=(), numa=0)
            loaded = states.loaded(state)
            yield from pci_function(
                place,
                vendor=facts.PCI_VENDOR,
                device=0xA7A0,
                pci_class=0x030000,
                driver=facts.I915 if loaded else None,
            )
            if loaded:
                yield from self._nodes(state, place, Numbers(card=0, render=_FIRST_RENDER))
        if self.beside == _BMC:
            place = PciPlace(address="0000:00:03.0", root="pci0000:00", above=(), numa=0)
            yield from pci_function(
                place, vendor=0x1A03, device=0x2000, pci_class=0x030000, driver="ast"
            )
            yield Node(path=f"{facts.DRI}/card0", major=facts.DRM_MAJOR, minor=0)

    def _unit(self, state: State, index: int, own: states.Fields, free: int) -> Iterator[Entry]:
        """A GPU and its virtual functions, which have the numbers from *free* on."""
        place = self.places[index]
        card, names = self._shown(state, own), self._numbers(state, index)
        driver, vfs = card.driver, card.vfs
        files = {**card.files(f"drm/card{names.card}"), **states.texts(own, "files")}
        yield from self._function(place, driver, files)
        if card.serves:
            yield from self._nodes(state, place, names)
            yield Node(path=f"/dev/mei{names.card}", major=facts.MEI_MAJOR, minor=names.card)
            yield File(
                path=f"{folder_of(place)}/{driver}.mei-gscfi.{names.card}/mei/mei{names.card}/dev",
                content=f"{facts.MEI_MAJOR}:{names.card}\n",
            )
        for position in range(vfs):
            yield from self._virtual(state, place, own, position, free + position)

    def _shown(self, state: State, own: states.Fields) -> shown.Shown:
        driver = self._bound(state, own.get("bound"))
        return shown.Shown(
            product=self.product,
            driver=driver,
            backport=self.backport,
            own=own,
            vfs=states.number(own, "vfs") if driver in facts.DRIVERS else 0,
            autoprobe=not states.of(state, self.vendor).get("manual"),
        )

    def files(self, state: State, unit: str) -> frozenset[str]:
        """Names of files that the PCI function of a GPU has now."""
        index = self.units().index(unit)
        card, place = self._shown(state, states.of(state, unit)), self.places[index]
        files = card.files(f"drm/card{self._numbers(state, index).card}")
        folder = f"{folder_of(place)}/"
        found = (one.path for one in self._function(place, None, files) if isinstance(one, File))
        return frozenset(path.removeprefix(folder) for path in found)

    def _virtual(
        self, state: State, physical: PciPlace, own: states.Fields, position: int, number: int
    ) -> Iterator[Entry]:
        place = vf_place(physical, position)
        yield Link(path=f"{folder_of(place)}/physfn", target=folder_of(physical))
        yield Link(path=f"{folder_of(physical)}/virtfn{position}", target=folder_of(place))
        driver: str | None = self._bound(state, None)
        if str(position) in states.names(own, "passed"):
            driver = "xe-vfio-pci" if driver == facts.XE else "vfio-pci"
        elif states.of(state, self.vendor).get("manual"):
            driver = None
        yield from self._function(place, driver, {})
        if driver in facts.DRIVERS:
            yield from self._nodes(state, place, numbers(self.part, number))

    def _bound(self, state: State, bound: object) -> str | None:
        driver = str(bound) if bound is not None else self.driver
        if driver in facts.DRIVERS and not states.loaded(state):
            return None
        return driver or None

    def _function(
        self, place: PciPlace, driver: str | None, files: Mapping[str, str | bytes]
    ) -> Iterator[Entry]:
        return pci_function(
            place,
            vendor=facts.PCI_VENDOR,
            device=self.product.device,
            pci_class=self.product.pci_class,
            driver=driver,
            files=files,
        )

    def _numbers(self, state: State, index: int) -> Numbers:
        probes = states.number(states.of(state, self.vendor), "probes")
        return numbers(self.part, (index + probes) % self.part.count)

    def _nodes(self, state: State, place: PciPlace, names: Numbers) -> Iterator[Entry]:
        there = not states.of(state, self.vendor).get("nodeless")
        for sort, minor in (("card", names.card), ("renderD", names.render)):
            folder = f"{folder_of(place)}/drm/{sort}{minor}"
            yield File(path=f"{folder}/dev", content=f"{facts.DRM_MAJOR}:{minor}\n")
            yield Link(path=f"/sys/class/drm/{sort}{minor}", target=folder)
            if there:
                node = f"{facts.DRI}/{sort}{minor}"
                mode = 0o666 if sort == "renderD" else 0o660
                yield Node(path=node, major=facts.DRM_MAJOR, minor=minor, mode=mode)
                link = f"{facts.BY_PATH}/pci-{place.address}-{sort.removesuffix('D')}"
                yield Link(path=link, target=node)

    def _processes(self, state: State) -> Iterator[Entry]:
        """What /proc shows of those that have a GPU open."""
        free = self.part.count
        for index, unit in enumerate(self.units()):
            own = states.of(state, unit)
            for pid, vf in states.holders(own):
                names = self._numbers(state, index)
                if vf is not None:
                    names = numbers(self.part, free + vf)
                yield File(path=f"/proc/{pid}/comm", content="python3\n")
                node = f"{facts.DRI}/renderD{names.render}"
                yield Link(path=f"/proc/{pid}/fd/{names.render}", target=node)
            free += 0 if own.get("lost") else states.number(own, "vfs")

    def written(self, state: State, path: str, text: str) -> State | None:
        folder, _, name = path.rpartition("/")
        for unit, place in zip(self.units(), self.places, strict=True):
            if name == "sriov_numvfs" and folder == folder_of(place):
                return states.with_vfs(self, state, unit, text)
        return None

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        return states.VERBS[verb][1](self, state, args)

    def says(self, state: State, verb: str, args: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        units = self.units()
        for unit in units if verb == "load" else [unit for unit in units if args[:1] == (unit,)]:
            index = units.index(unit)
            address, folder = self.places[index].address, folder_of(self.places[index])
            driver = self._bound(state, states.of(state, unit).get("bound"))
            if verb == "wedge":
                card = f"{folder}/drm/card{self._numbers(state, index).card}"
                yield from told.wedged(address, card, driver, args[1])
            elif verb in {"load", "bind", "restore"} and driver in facts.DRIVERS:
                yield told.bound(address, folder, driver)
            elif verb == "vfs" and driver in facts.DRIVERS:
                yield from self._new_vfs(state, index, driver)

    def _new_vfs(self, state: State, index: int, driver: str) -> Iterator[tuple[str, ...]]:
        """What is told of virtual functions that the driver has taken over."""
        if not states.of(state, self.vendor).get("manual"):
            for position in range(states.number(states.of(state, self.units()[index]), "vfs")):
                place = vf_place(self.places[index], position)
                yield told.bound(place.address, folder_of(place), driver)

    def booted(self, state: State) -> State:
        return states.booted(self, state)


def folder_of(place: PciPlace) -> str:
    """Where sysfs has a function."""
    return "/".join(("/sys/devices", place.root, *place.above, place.address))


def vf_place(physical: PciPlace, position: int) -> PciPlace:
    """Where the virtual function at *position*, from 0, hangs: the routing ids after its GPU's."""
    bus = physical.address.rpartition(":")[0]
    number = position + 1
    return attrs.evolve(physical, address=f"{bus}:{number // 8:02x}.{number % 8}")
