"""The simulated AMD machine: its files, and what can happen to it. Not here: what they hold."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from accelkit.testing.machines import Entry, File, Line, Link, Machine, Node, Part, State
from accelkit.testing.pasted import Cut, Verb
from accelkit.testing.sysfs import pci_function
from accelkit.vendors.amd import facts, pasted, simulated, states
from accelkit.vendors.amd.board import Board, number
from accelkit.vendors.amd.products import PRODUCTS
from accelkit.vendors.amd.told import told

DRIVER_VERSION = "6.14.14"


class AmdMachine(Machine):
    """GPUs with KFD, their partitions, and platform devices for partitions that are not there."""

    vendor = "amd"
    products: ClassVar[tuple[str, ...]] = tuple(PRODUCTS)
    verbs: ClassVar[Mapping[str, str]] = {verb: usage for verb, (usage, _) in states.VERBS.items()}
    history = frozenset({"boots", "generation"})
    options: ClassVar[Mapping[str, str]] = {
        "driver": "version of the driver; kernel: the one that came with the kernel",
        "domains": "own: each GPU has a PCI domain of its own, as in some clouds",
        "guest": "vf: a virtual machine that has virtual functions",
        "location": "high: the kernel writes partitions into the upper bits of location_id",
        "xcp": "dotted: platform devices are called amdgpu_xcp.0",
    }
    outputs = pasted.outputs()
    looks = pasted.LOOKS
    drivers = ("gpu.amd.com",)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.board = Board(part=part)

    @classmethod
    def cut(cls, product: str, index: int, cuts: Sequence[Cut]) -> tuple[Verb, ...]:  # noqa: ARG003 - of every product alike
        return pasted.cut(index, cuts)

    def units(self) -> tuple[str, ...]:
        return self.board.units

    def tree(self, state: State) -> Iterable[Entry]:
        common = state.get(self.vendor, {})
        loaded = not common.get("unloaded")
        for index, unit in enumerate(self.units()):
            own = state.get(unit, {})
            if not own.get("removed"):
                yield from self._function(state, index, loaded=loaded)
        if loaded:
            yield from self._module()
            yield from self._partitions(state)
            yield from states.holding(self, state)
            if not common.get("nokfd"):
                yield from simulated.kfd(self.board, state)

    def _function(self, state: State, index: int, *, loaded: bool) -> Iterator[Entry]:
        board, own = self.board, state.get(self.board.units[index], {})
        bound = str(own.get("bound", facts.DRIVER))
        ours = loaded and bound == facts.DRIVER
        hidden = own.get("hidden")
        gone = {f"{board.folder(index)}/{n}" for n in hidden} if isinstance(hidden, list) else ()
        driver = bound if ours or bound not in {facts.DRIVER, states.NO_DRIVER} else None
        files = simulated.pci_files(board, state, index) if ours else {}
        entries = self._entries(index, driver, files)
        yield from (one for one in entries if one.path not in gone)
        if ours:
            folder = board.folder(index)
            drivers = f"/sys/bus/pci/drivers/{facts.DRIVER}"
            yield Link(path=f"{drivers}/{board.place(index).address}", target=folder)
            yield from self._drm(folder, board.minor(state, index, 0))

    def _entries(
        self, index: int, driver: str | None, files: Mapping[str, str | bytes]
    ) -> Iterator[Entry]:
        return pci_function(
            self.board.place(index),
            vendor=facts.PCI_VENDOR,
            device=self.board.pci_device,
            pci_class=self.board.product.pci_class,
            driver=driver,
            files=files,
        )

    def files(self, state: State, index: int) -> tuple[str, ...]:
        """Names of all files that the PCI function of a GPU can have."""
        files = simulated.pci_files(self.board, state, index)
        folder = f"{self.board.folder(index)}/"
        found = (one.path for one in self._entries(index, None, files) if isinstance(one, File))
        return tuple(path.removeprefix(folder) for path in found if path.startswith(folder))

    def _module(self) -> Iterator[Entry]:
        version = self.part.options.get("driver", DRIVER_VERSION)
        yield Link(
            path=f"{facts.MODULE}/drivers/pci:amdgpu", target=f"/sys/bus/pci/drivers/{facts.DRIVER}"
        )
        yield File(path=f"{facts.MODULE}/srcversion", content="533BB7E5866E52F63B9ACCB\n")
        if version != "kernel":
            yield File(path=f"{facts.MODULE}/version", content=f"{version}\n")
        for major, name in ((simulated.DRM_MAJOR, "drm"), (simulated.KFD_MAJOR, "kfd")):
            yield Line(path="/proc/devices", text=f"{major} {name}")
        yield Line(path="/proc/modules", text=f"{facts.DRIVER} 1 0 - Live 0x0")

    def _partitions(self, state: State) -> Iterator[Entry]:
        """Platform devices for every partition but the first, used or not."""
        board = self.board
        if board.cut(state, 0) is None:
            return
        sign = "." if self.part.options.get("xcp", "") == "dotted" else "_"
        for index in range(self.part.count):
            for partition in range(1, board.product.complexes):
                if board.has_minor(state, index, partition):
                    minor = board.minor(state, index, partition)
                    xcp = board.xcp(state, index, partition)
                    folder = f"/sys/devices/platform/amdgpu_xcp{sign}{xcp}"
                    card = board.card_of(minor)
                    yield File(path=f"{folder}/drm/card{card}/dev", content=f"226:{card}\n")
                    yield File(path=f"{folder}/drm/renderD{minor}/dev", content=f"226:{minor}\n")
                    yield from self._drm(folder, minor)

    def _drm(self, folder: str, minor: int) -> Iterator[Entry]:
        card = self.board.card_of(minor)
        for name, number_ in ((f"card{card}", card), (f"renderD{minor}", minor)):
            yield Link(path=f"{facts.CLASS_DRM}/{name}", target=f"{folder}/drm/{name}")
            yield Node(path=f"/dev/dri/{name}", major=simulated.DRM_MAJOR, minor=number_)

    def written(self, state: State, path: str, text: str) -> State | None:
        return states.written(self, state, path, text)

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        return states.VERBS[verb][1](self, state, args)

    def says(self, state: State, verb: str, args: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        return told(self, state, verb, args)

    def booted(self, state: State) -> State:
        """Memory modes stay, compute modes do not; the driver finds the GPUs in another order."""
        common = state.get(self.vendor, {})
        kept = {k: v for k, v in common.items() if k == "minors"}
        memory = common.get("wanted", common.get("nps"))
        boots = {"boots": number(common.get("boots")) + 1}
        return {self.vendor: {**kept, **boots, **({} if memory is None else {"nps": memory})}}
