"""The simulated TPU host: its files and what can happen to it. Not here: the plugin's tables."""

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import ClassVar

import attrs

from accelkit.testing.machines import Entry, File, Json, Line, Link, Machine, Node, Part, State
from accelkit.testing.pasted import Looks
from accelkit.testing.sysfs import PciPlace, part_place, pci_function
from accelkit.vendors.tpu import states
from accelkit.vendors.tpu.facts import BY_NAME, CONTAINER, PCI_VENDOR, SHAPES, TPU_ENV
from accelkit.vendors.tpu.slices import accelerator_type, topology_name

_PRODUCTS = ("v5e", "v6e", "v5p", "7x", "v4")
_VFIO_MAJOR, _ACCEL_MAJOR = 511, 510
"""The kernel gives them when it starts."""
_CLASS = 0x120000
"""Processing accelerators; nobody looks at it."""
_SUBSYSTEM = 0x0070
"""Of generations that are told apart by their own ids: it says nothing."""
_FIRST_GROUP = 6
"""The bridges and the disk of the host have the groups before it."""
_STRANGERS = (
    (PciPlace(address="0000:00:1c.0", root="pci0000:00", above=(), numa=0), 0x001F, 0x010802),
    (PciPlace(address="0000:00:1d.0", root="pci0000:00", above=(), numa=0), 0x0042, 0x020000),
)
"""A disk and a network card of the same maker that are passed on to somebody: VFIO groups, too."""
_POD = "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-pod1.slice/cri-containerd-1.scope"
_NO_POD = "0::/system.slice/tpu-runtime.service"
_LANES = 16


@attrs.frozen(kw_only=True)
class _Core:
    """A PCI function of a chip."""

    place: PciPlace
    group: int
    own: Mapping[str, Json]


class TpuMachine(Machine):
    """A host of TPU chips: VFIO groups of their functions, or nodes of the older driver.

    Groups have other numbers after each reboot, and strangers have some between those of chips.
    """

    vendor = "tpu"
    products: ClassVar[tuple[str, ...]] = _PRODUCTS
    verbs: ClassVar[Mapping[str, str]] = states.VERBS
    options: ClassVar[Mapping[str, str]] = {
        "topology": "of the slice, as 4x4; the chips of this host unless told",
        "worker": "which of the slice's hosts it is",
    }
    looks: ClassVar[Mapping[str, Looks]] = {
        name: Looks(
            names=(BY_NAME[name].product, BY_NAME[name].slug),
            memory=BY_NAME[name].memory,
            pci=frozenset({BY_NAME[name].device}),
        )
        for name in _PRODUCTS
    }
    drivers = ("tpu.google.com",)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.generation = BY_NAME[part.product]

    def units(self) -> tuple[str, ...]:
        return tuple(f"tpu-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        common = state.get(self.vendor, {})
        yield from self._metadata(str(common.get("metadata", "full")))
        loaded = not common.get("unloaded", False)
        make = self._vfio if self.generation.vfio else self._accel
        yield from make(state, loaded=loaded)
        yield from self._processes(state, loaded=loaded)

    def _metadata(self, said: str) -> Iterator[Entry]:
        """The file of the host that says which slice it is in."""
        bounds = SHAPES.get(self.part.count, (1, self.part.count, 1))
        topology = self.part.options.get("topology") or topology_name(bounds, self.generation)
        chips = prod(int(length) for length in topology.split("x") if length.isdecimal())
        facts = {
            "ACCELERATOR_TYPE": accelerator_type(self.generation, chips),
            "CHIPS_PER_HOST_BOUNDS": ",".join(str(length) for length in bounds),
            "ENABLE_ICI_RESILIENCY": "true",
            "TOPOLOGY": topology,
            "TYPE": self.generation.slug.upper(),
            "WORKER_ID": self.part.options.get("worker", "0"),
        }
        if said == "ambiguous":
            del facts["CHIPS_PER_HOST_BOUNDS"]
        if said != "none":
            lines = "".join(f"{name}: '{value}'\n" for name, value in facts.items())
            yield File(path=TPU_ENV, content=lines)

    def _cores(self, state: State) -> Iterator[tuple[int, str, _Core]]:
        """Position, unit and function of every function that is there, in the order of the bus."""
        first, number = self._first_group(state), 0
        for index, unit in enumerate(self.units()):
            own = state.get(unit, {})
            place = part_place(self.part, index)
            for function in range(self.generation.functions):
                # The disk comes between two chips, if there are two.
                group = first + number + (1 if index * 2 >= self.part.count else 0)
                number += 1
                if own.get("lost") or (own.get("halved") and function):
                    continue
                address = f"{place.address[:-1]}{function}"
                core = _Core(place=attrs.evolve(place, address=address), group=group, own=own)
                yield self.part.first + index, unit, core

    def _vfio(self, state: State, *, loaded: bool) -> Iterator[Entry]:
        yield File(path="/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", content="N\n")
        if loaded:
            yield File(path="/sys/module/vfio_pci/version", content="0.2\n")
            yield Line(path="/proc/devices", text=f"{_VFIO_MAJOR} vfio")
            yield Node(path=CONTAINER, major=10, minor=196)
        for _, _, core in self._cores(state):
            yield from self._function(core, None if not loaded else "vfio-pci", self._group(core))
            if (
                loaded
                and core.own.get("driver", "vfio-pci") == "vfio-pci"
                and not core.own.get("hidden")
            ):
                yield _group_node(core.group)
        yield from self._passed_on(state, loaded=loaded)

    def _passed_on(self, state: State, *, loaded: bool) -> Iterator[Entry]:
        """A disk and a network card whose groups are VFIO's, too."""
        first, each = self._first_group(state), self.generation.functions
        numbers = (first + (self.part.count + 1) // 2 * each, first + self.part.count * each + 1)
        for (place, device, pci_class), group in zip(_STRANGERS, numbers, strict=True):
            yield from pci_function(
                place,
                vendor=PCI_VENDOR,
                device=device,
                pci_class=pci_class,
                driver="vfio-pci" if loaded else None,
            )
            yield from _membership(place, group)
            if loaded:
                yield _group_node(group)

    def _first_group(self, state: State) -> int:
        boots = state.get(self.vendor, {}).get("boots", 0)
        assert isinstance(boots, int)
        return _FIRST_GROUP + 3 * boots

    def _group(self, core: _Core) -> Iterator[Entry]:
        if core.own.get("rubbish"):
            yield Link(path=f"{_folder(core.place)}/iommu_group", target="/sys/rubbish")
            return
        yield from _membership(core.place, core.group)
        if core.own.get("shared") and core.place.address.endswith("0"):
            bridge = attrs.evolve(core.place, address=f"{core.place.address[:-1]}7")
            yield from pci_function(
                bridge, vendor=PCI_VENDOR, device=0x0042, pci_class=0x020000, driver="gve"
            )
            yield from _membership(bridge, core.group)

    def _accel(self, state: State, *, loaded: bool) -> Iterator[Entry]:
        if loaded:
            yield Line(path="/proc/devices", text=f"{_ACCEL_MAJOR} accel")
        for position, _, core in self._cores(state):
            driver = "tpu-accel" if loaded else None
            bound = loaded and core.own.get("driver", driver) == driver
            entries = self._accel_files(core, position) if bound else iter(())
            yield from self._function(core, driver, entries)
            if bound and not core.own.get("hidden"):
                yield Node(path=f"/dev/accel{position}", major=_ACCEL_MAJOR, minor=position)

    def _accel_files(self, core: _Core, position: int) -> Iterator[Entry]:
        name = "rubbish" if core.own.get("rubbish") else f"accel{position}"
        folder = f"{_folder(core.place)}/accel/{name}"
        yield File(path=f"{folder}/status", content=f"{core.own.get('status', 'ALIVE')}\n")
        yield File(path=f"{folder}/driver_version", content="1.2.0\n")
        if name != "rubbish":
            yield Link(path=f"/sys/class/accel/{name}", target=folder)
            yield Link(path=f"{folder}/device", target=_folder(core.place))

    def _function(self, core: _Core, driver: str | None, more: Iterator[Entry]) -> Iterator[Entry]:
        generation = self.generation
        bound = str(core.own.get("driver", driver or "none"))
        files = {
            "current_link_width": f"{core.own.get('lanes', _LANES)}\n",
            "max_link_width": f"{_LANES}\n",
            "aer_dev_correctable": "RxErr 0\nTOTAL_ERR_COR 0\n",
            "aer_dev_nonfatal": f"TOTAL_ERR_NONFATAL {core.own.get('errors', 0)}\n",
            "aer_dev_fatal": "TOTAL_ERR_FATAL 0\n",
        }
        files["subsystem_device"] = f"0x{generation.subsystem or _SUBSYSTEM:04x}\n"
        yield from pci_function(
            core.place, vendor=PCI_VENDOR, device=generation.device, pci_class=_CLASS,
            driver=None if bound == "none" or driver is None else bound, files=files,
        )  # fmt: skip
        yield from more

    def _processes(self, state: State, *, loaded: bool) -> Iterator[Entry]:
        """What has chips open; a chip whose driver is gone is open no more."""
        in_pods: dict[str, bool] = {}
        open_files: dict[str, list[str]] = {}
        for position, _, core in self._cores(state):
            node = f"/dev/vfio/{core.group}" if self.generation.vfio else f"/dev/accel{position}"
            for holder in states.listed(core.own.get("holders")) if loaded else ():
                pid, _, pod = str(holder).partition(" ")
                in_pods[pid] = in_pods.get(pid, False) or bool(pod)
                open_files.setdefault(pid, []).append(node)
        for pid, paths in open_files.items():
            cgroup = _POD if in_pods[pid] else _NO_POD
            yield File(path=f"/proc/{pid}/cgroup", content=f"{cgroup}\n")
            yield File(path=f"/proc/{pid}/comm", content="python3\n")
            for number, path in enumerate(paths, start=3):
                yield Link(path=f"/proc/{pid}/fd/{number}", target=path)

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        made = self.generation
        whose = {
            "status": ("the driver of /dev/accelN", not made.vfio),
            "share": ("an IOMMU group", made.vfio),
            "halve": ("two functions", made.functions > 1),
        }
        what, has = whose.get(verb, ("", True))
        if not has:
            raise self.misused(verb, f"{made.product} does not have {what}")
        return states.after(self, state, verb, args)

    def booted(self, state: State) -> State:
        return states.booted(state.get(self.vendor, {}), self.vendor)


def _folder(place: PciPlace) -> str:
    return "/".join(("/sys/devices", place.root, *place.above, place.address))


def _membership(place: PciPlace, group: int) -> Iterator[Entry]:
    home = f"/sys/kernel/iommu_groups/{group}"
    yield Link(path=f"{_folder(place)}/iommu_group", target=home)
    yield Link(path=f"{home}/devices/{place.address}", target=_folder(place))


def _group_node(group: int) -> Node:
    return Node(path=f"/dev/vfio/{group}", major=_VFIO_MAJOR, minor=group)
