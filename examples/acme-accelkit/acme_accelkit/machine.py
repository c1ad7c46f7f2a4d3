"""A simulated node with cards of Acme: the files of its driver, and what can go wrong."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from accelkit import SourceError
from accelkit.testing import (
    Entry,
    File,
    Line,
    Link,
    Machine,
    Node,
    PciPlace,
    State,
    part_place,
    pci_function,
)

Own = dict[str, Any]  # type: ignore[explicit-any]  # what differs from a new card
WRITTEN = ("halves", "clock")
_BUSY = "Device or resource busy"
_MAJOR = 243


@attrs.frozen(kw_only=True)
class Product:
    """One product."""

    name: str
    memory: int
    board: int = 1
    """Cards on a board, wired to each other."""
    halves: bool = False


PRODUCTS: Mapping[str, Product] = {
    "quad": Product(name="Acme Quad", memory=64 << 30, board=4, halves=True),
    "two": Product(name="Acme Two", memory=32 << 30, board=2, halves=True),
    "one": Product(name="Acme One", memory=16 << 30),
}
_STEPS: Mapping[str, tuple[str, Own]] = {
    "lose": ("lose UNIT", {"lost": True}),
    "restore": ("restore UNIT", {"lost": False}),
    "heal": ("heal UNIT", {"fault": ""}),
    "free": ("free UNIT", {"holder": ""}),
    "unload": ("unload", {"unloaded": True}),
    "load": ("load", {"unloaded": False}),
    "nodes": ("nodes", {"nodeless": False}),
    "no-nodes": ("no-nodes", {"nodeless": True}),
}


class AcmeMachine(Machine):
    """Cards on boards; those of *quad* and *two* can be cut in halves."""

    vendor = "acme"
    products: ClassVar[tuple[str, ...]] = tuple(PRODUCTS)
    verbs: ClassVar[Mapping[str, str]] = {
        **{verb: usage for verb, (usage, _) in _STEPS.items()},
        "fault": "fault UNIT CODE SEVERITY",
        "hold": "hold UNIT PID",
        "heat": "heat UNIT CELSIUS",
        "cut": "cut UNIT HALF",
        "rubbish": "rubbish UNIT [FILE]",
    }
    parted = (("cut", "npu-0", "1"),)
    blocks = ({"clock": "quiet"}, {"clock": "turbo"})
    shows = "clock"
    options: ClassVar[Mapping[str, str]] = {"driver": "version of the driver"}

    def units(self) -> tuple[str, ...]:
        return tuple(f"npu-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        common = state.get(self.vendor, {})
        loaded = not common.get("unloaded")
        if loaded:
            version = self.part.options.get("driver", "2.4")
            yield File(path="/sys/module/acme/version", content=f"{version}\n")
            yield Line(path="/proc/devices", text=f"{_MAJOR} acme")
        for index, unit in enumerate(self.units()):
            own = state.get(unit, {})
            if own.get("lost"):
                continue
            yield from pci_function(
                self._place(index),
                vendor=0x1DEA,
                device=1 + [*PRODUCTS].index(self.part.product),
                pci_class=0x120000,
                driver="acme" if loaded else None,
                files=self._files(index, own) if loaded else {},
            )
            if loaded and not common.get("nodeless"):
                yield from self._nodes(index, own)

    def _place(self, index: int) -> PciPlace:
        return part_place(self.part, index)

    def _files(self, index: int, own: Own) -> dict[str, str]:
        product, position = PRODUCTS[self.part.product], self.part.first + index
        board = index // product.board
        others = range(board * product.board, min((board + 1) * product.board, self.part.count))
        files = {
            "serial": f"SN-{self.part.seed:02}{position:04}",
            "product": product.name,
            "minor": str(position),
            "memory_bytes": str(product.memory),
            "firmware": "1.2.3",
            "board": f"board-{self.part.first + board * product.board}",
            "links": "\n".join(f"{self._place(i).address} 2" for i in others if i != index),
            "faults": own.get("fault", ""),
            "temp1_input": str(own.get("celsius", 40) * 1000),
            "power1_input": "150000000",
            "clock": own.get("clock") or "auto",
            **({"halves": " ".join(own.get("halves", []))} if product.halves else {}),
        }
        return {name: f"{text}\n" for name, text in {**files, **own.get("files", {})}.items()}

    def _nodes(self, index: int, own: Own) -> Iterator[Entry]:
        position = self.part.first + index
        path = f"/dev/acme{position}"
        yield Node(path=path, major=_MAJOR, minor=position)
        for half in own.get("halves", []):
            minor = 4096 + 2 * position + int(half)
            yield Node(path=f"{path}p{half}", major=_MAJOR, minor=minor)
        if own.get("holder"):
            yield Link(path=f"/proc/{own['holder']}/fd/{3 + index}", target=path)

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        if verb in _STEPS:
            usage, change = _STEPS[verb]
            subject = self.unit(verb, args) if "UNIT" in usage else self.vendor
            return {**state, subject: {**state.get(subject, {}), **change}}
        unit = self.unit(verb, args)
        return {**state, unit: {**state.get(unit, {}), **self._told(verb, args[1:])}}

    def _told(self, verb: str, words: tuple[str, ...]) -> Own:
        match verb, words:
            case "fault", (code, severity):
                return {"fault": f"{code}:{severity}"}
            case "hold", (pid,) if pid.isdecimal():
                return {"holder": pid}
            case "heat", (celsius,) if celsius.isdecimal():
                return {"celsius": int(celsius)}
            case "cut", (("0" | "1") as half,) if PRODUCTS[self.part.product].halves:
                return {"halves": [half]}
            case "rubbish", ():
                return {"files": {"memory_bytes": "rubbish"}}
            case "rubbish", (file,) if file in self._files(0, {}):
                return {"files": {file: "rubbish"}}
        raise self.misused(verb, f"cannot be done with {' '.join(words) or 'nothing'}")

    def written(self, state: State, path: str, text: str) -> State | None:
        folder, _, name = path.rpartition("/")
        for index, unit in enumerate(self.units()):
            if name in WRITTEN and folder.endswith(f"/{self._place(index).address}"):
                own: Own = state.get(unit, {})
                change = (
                    {"clock": "" if text == "auto" else text}
                    if name == "clock"
                    else {"halves": _cut(own, text)}
                )
                return {**state, unit: {**own, **change}}
        return None


def _cut(own: Own, text: str) -> list[str]:
    """The halves of a card after *text* was written to ``halves``."""
    if text not in {"+0", "+1", "-0", "-1"}:
        raise SourceError("Invalid argument")
    if own.get("holder"):
        raise SourceError(_BUSY)
    others = [half for half in own.get("halves", []) if half != text[1]]
    return sorted([*others, text[1]] if text[0] == "+" else others)
