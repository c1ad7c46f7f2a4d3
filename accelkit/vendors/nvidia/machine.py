"""The simulated NVIDIA machine: its files and what can happen to it. Not here: its library."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from accelkit import Finished
from accelkit.testing.machines import (
    Entry,
    File,
    Function,
    Line,
    Link,
    Live,
    Machine,
    Node,
    Part,
    State,
)
from accelkit.testing.pasted import Cut, Output, Verb
from accelkit.testing.sysfs import pci_function
from accelkit.vendors.nvidia import facts, instances, queried, states, strangers, tools, topo
from accelkit.vendors.nvidia.board import TOPOLOGY, Board
from accelkit.vendors.nvidia.products import PRODUCTS
from accelkit.vendors.nvidia.simulated import library

DRIVER_VERSION = "580.65.06"
_VERSION_BEFORE = "575.57.08"
"""What stays loaded after its files were replaced."""
_FOLDER = "/usr/lib/x86_64-linux-gnu"
_GPU_MAJOR, _UVM_MAJOR, _CAPS_MAJOR = 195, 510, 237
"""195: Linux, Documentation/admin-guide/devices.txt; the others are given at run time."""
_LIBRARIES = ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-nvvm")
_PROGRAMS = ("nvidia-debugdump", "nvidia-persistenced", "nvidia-cuda-mps-control", *tools.TOOLS)


_VERBS = {**states.VERBS, **strangers.VERBS}


class NvidiaMachine(Machine):
    """GPUs with NVML, NVLinks and MIG."""

    vendor = "nvidia"
    products: ClassVar[tuple[str, ...]] = tuple(PRODUCTS)
    verbs: ClassVar[Mapping[str, str]] = {verb: usage for verb, (usage, _) in _VERBS.items()}
    history = frozenset({"made", "sequence", "boots"})
    options: ClassVar[Mapping[str, str]] = {
        "driver": "version of the driver",
        "driverRoot": "folder of the driver's files",
        "hamiCore": "folder of the library that limits shares, such as /usr/local/vgpu",
        "cluster": "UUID of the NVLink cluster",
        "guest": "vgpu: a virtual machine that has parts of GPUs",
        TOPOLOGY: "made by --from",
    }
    outputs = (
        Output(name=queried.NAME, is_it=queried.is_it, read=queried.read),
        Output(name=topo.NAME, is_it=topo.is_it, read=topo.read),
    )
    looks = queried.LOOKS
    drivers = ("gpu.nvidia.com",)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.board = Board(part)

    @property
    def driver_version(self) -> str:
        return self.part.options.get("driver", DRIVER_VERSION)

    @property
    def driver_root(self) -> str:
        """Empty: that of the host."""
        return self.part.options.get("driverRoot", "").rstrip("/")

    @classmethod
    def cut(cls, product: str, index: int, cuts: Sequence[Cut]) -> tuple[Verb, ...]:
        return queried.cut(product, index, cuts)

    def units(self) -> tuple[str, ...]:
        return tuple(f"gpu-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        yield from self._functions(state)
        yield from self._driver_files()
        yield from self._cpus()
        yield from self._enforcers(state)
        if states.loaded(state):
            yield from self._loaded(state)

    def _functions(self, state: State) -> Iterator[Entry]:
        product = self.board.product
        for unit, place in zip(self.units(), self.board.places, strict=True):
            if states.of(state, unit).get("removed"):
                continue
            bound = states.bound(states.of(state, unit))
            loaded = states.loaded(state) or bound != "nvidia"
            yield from pci_function(
                place,
                vendor=facts.PCI_VENDOR,
                device=product.pci_device,
                pci_class=product.pci_class,
                driver=bound if loaded and bound else None,
            )

    def _driver_files(self) -> Iterator[Entry]:
        root = self.driver_root
        for stem in _LIBRARIES:
            file = f"{root}{_FOLDER}/{stem}.so.{self.driver_version}"
            yield File(path=file, content=f"{stem}\n")
            yield Link(path=f"{root}{_FOLDER}/{stem}.so.1", target=file)
        for program in _PROGRAMS:
            yield File(path=f"{root}/usr/bin/{program}", content="#!/bin/sh\n", mode=0o755)

    def _enforcers(self, state: State) -> Iterator[Entry]:
        """What others run or install to enforce shares."""
        folder = self.part.options.get("hamiCore", "").rstrip("/")
        if folder:
            yield File(path=f"{folder}/libvgpu.so", content="libvgpu\n")
            yield File(path=f"{folder}/ld.so.preload", content=f"{folder}/libvgpu.so\n")
        for unit, uuid in zip(self.units(), self.board.uuids, strict=True):
            if states.of(state, unit).get("mps"):
                yield File(path=f"/run/accelkit/mps/{uuid.lower()}/pipe/control")

    def _cpus(self) -> Iterator[Entry]:
        """NUMA nodes of a topology text beyond those that every machine has."""
        topology = self.board.topology
        if topology is None:
            return
        cpus = {n: c for n, c in zip(topology.numa, topology.cpus, strict=True) if n is not None}
        for node, text in cpus.items():
            if node > 1:
                path = f"/sys/devices/system/node/node{node}/cpulist"
                yield File(path=path, content=f"{text or node * 8}\n")

    def _loaded(self, state: State) -> Iterator[Entry]:
        mismatch = states.of(state, self.vendor).get("mismatch")
        version = _VERSION_BEFORE if mismatch else self.driver_version
        yield File(path="/sys/module/nvidia/version", content=f"{version}\n")
        yield File(
            path="/proc/driver/nvidia/version",
            content=f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}\n",
        )
        for major, name in (
            (_GPU_MAJOR, "nvidia"),
            (_GPU_MAJOR, "nvidiactl"),
            (_CAPS_MAJOR, "nvidia-caps"),
            (_UVM_MAJOR, "nvidia-uvm"),
        ):
            yield Line(path="/proc/devices", text=f"{major} {name}")
        yield Line(path="/proc/modules", text="nvidia 1 0 - Live 0x0")
        if not states.of(state, self.vendor).get("nodes", True):
            return
        yield Node(path="/dev/nvidiactl", major=_GPU_MAJOR, minor=255)
        yield Node(path="/dev/nvidia-modeset", major=_GPU_MAJOR, minor=254)
        yield Node(path="/dev/nvidia-uvm", major=_UVM_MAJOR, minor=0)
        yield Node(path="/dev/nvidia-uvm-tools", major=_UVM_MAJOR, minor=1)
        for index, unit in enumerate(self.units()):
            yield from self._gpu(state, index, unit)

    def _gpu(self, state: State, index: int, unit: str) -> Iterator[Entry]:
        if not states.listed(state, unit):
            return
        minor = states.minor(state, self.part, index)
        yield Node(path=f"/dev/nvidia{minor}", major=_GPU_MAJOR, minor=minor)
        yield File(
            path=f"/proc/driver/nvidia/gpus/{self.board.places[index].address}/information",
            content=f"Model: {self.board.product.name}\nDevice Minor: {minor}\n",
        )
        folder = f"/proc/driver/nvidia/capabilities/gpu{minor}/mig"
        for instance in instances.instances(state, unit):
            gi = instance["gi"]
            rights = {f"{folder}/gi{gi}/access": _cap(minor, gi)} | {
                f"{folder}/gi{gi}/ci{compute['ci']}/access": _cap(minor, gi) + 1 + compute["ci"]
                for compute in instance["computes"]
            }
            for right, number in rights.items():
                yield from _capability(right, number, node=tools.has_node(state, right))

    def libraries(self, live: Live) -> Mapping[str, Mapping[str, Function]]:
        return {facts.LIBRARY: library(self.board, live, self.units(), self.driver_version)}

    def commands(self) -> Mapping[str, Callable[[Live, tuple[str, ...]], Finished]]:
        return {
            f"{self.driver_root}/usr/bin/{name}": partial(tool, self)
            for name, tool in tools.TOOLS.items()
        }

    def unloaded(self, state: State) -> Mapping[str, str]:
        if states.of(state, self.vendor).get("uninstalled"):
            return {facts.LIBRARY: "cannot open shared object file: No such file or directory"}
        return {}

    def says(self, state: State, verb: str, args: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Each XID stands in the kernel's log, too.

        Source:
            NVIDIA XID errors guide, "Working with Xid Errors".
        """
        if verb == "xid" and states.loaded(state):
            where = self.board.places[self.units().index(args[0])].address.rpartition(".")[0]
            where += f" GPU-I:{int(args[2]):02}" if len(args) == 3 else ""
            yield ("kernel", f"NVRM: Xid (PCI:{where}): {args[1]}, pid='<unknown>', name=<unknown>")

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        return _VERBS[verb][1](self, state, args)

    def booted(self, state: State) -> State:
        return states.booted(self, state)


def _cap(minor: int, gi: int) -> int:
    """The minor of the right to a GPU instance; those of its compute instances follow.

    Source: /proc/driver/nvidia-caps/mig-minors, which begins with config 1 and monitor 2.
    """
    return 3 + (minor * 15 + gi) * (1 + instances.MOST_COMPUTES)


def _capability(path: str, minor: int, *, node: bool) -> Iterator[Entry]:
    yield File(path=path, content=f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\n", mode=0o444)
    if node:
        path = f"/dev/nvidia-caps/nvidia-cap{minor}"
        yield Node(path=path, major=_CAPS_MAJOR, minor=minor, mode=0o444)
