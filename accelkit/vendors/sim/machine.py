"""The simulated hardware of the simulated vendors: their files, and all that can go wrong."""

from collections.abc import Iterable, Mapping
from ctypes import Array, c_char, c_uint
from typing import ClassVar

from accelkit import SourceError
from accelkit.testing.faults import duration
from accelkit.testing.machines import Entry, File, Function, Json, Line, Live, Machine, Node, State
from accelkit.testing.pasted import Looks
from accelkit.testing.sysfs import part_place, pci_function
from accelkit.vendors.sim import effects

GIB = 1 << 30
CALLS = (
    *("discover", "conditions", "listen", "links", "holders", "edits"),
    *("create", "destroy", "set_mode", "needs", "apply", "revert"),
)
NO_DRIVER, TOO_SHORT = 9, 7
_MOST_EVENTS = 64
_SEVERITIES: tuple[list[str], ...] = ([], ["FATAL"], ["DEGRADED"], ["INFO"])
_RUBBISH = "\x00rubbish"
_CLASS = 0x120000
"""Processing accelerators (PCI Code and ID Assignment Specification 1.11, section 1.19)."""


class SimMachine(Machine):
    """Accelerators with files for everything that the plugin asks.

    Products: *basic* has no links; *fabric* is linked all to all, on boards of four; *ring* has
    links to its neighbours; *cube* may be used in aligned blocks of 1, 2, 4 or 8 only; *split*
    comes cut in halves.
    """

    vendor = "sim"
    products: ClassVar[tuple[str, ...]] = (
        *("basic", "fabric", "ring", "cube", "split"),
        *("carve", "reset", "modal"),
    )
    verbs: ClassVar[Mapping[str, str]] = {
        "lose": "lose UNIT",
        "restore": "restore UNIT",
        "fault": "fault UNIT CODE [FATAL|DEGRADED|INFO]",
        "heal": "heal UNIT",
        "event": "event UNIT CODE",
        "hold": "hold UNIT PID",
        "free": "free UNIT",
        "mode": "mode UNIT MODE",
        "carve": "carve UNIT PROFILE START",
        "uncarve": "uncarve UNIT PROFILE START",
        "rubbish": "rubbish UNIT [FILE]",
        "unload": "unload",
        "load": "load",
        "hang": "hang CALL 30s",
        "raise": "raise CALL",
        "error": "error CALL",
        "calm": "calm [CALL]",
    }
    options: ClassVar[Mapping[str, str]] = {"driver": "version of its driver"}
    looks: ClassVar[Mapping[str, Looks]] = {name: Looks(names=(name,)) for name in products}
    device = 1
    major = 240
    """First of the numbers for local use (Linux, Documentation/admin-guide/devices.txt)."""

    def units(self) -> tuple[str, ...]:
        return tuple(f"accel-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        common = state.get(self.vendor, {})
        loaded = not common.get("unloaded", False)
        home = f"/run/sim/{self.vendor}"
        yield File(path=f"{home}/events", content=_lines(common.get("events")))
        for call, order in _mapping(common.get("orders")).items():
            yield File(path=f"{home}/{call}", content=f"{order}\n")
        if loaded:
            yield Line(path="/proc/devices", text=f"{self.major:3} {self.vendor}")
        for index, unit in enumerate(self.units()):
            own = state.get(unit, {})
            if not own.get("lost", False):
                yield from self._function(index, own, loaded=loaded)

    def _function(self, index: int, own: dict[str, Json], *, loaded: bool) -> Iterable[Entry]:
        part, position = self.part, self.part.first + index
        yield from pci_function(
            part_place(part, index),
            vendor=0xACCE,
            device=self.device,
            pci_class=_CLASS,
            driver=self.vendor if loaded else None,
            files={**self._files(index, own), **_texts(own.get("files"))} if loaded else {},
        )
        if loaded:
            path = f"/dev/{self.vendor}{position}"
            yield Node(path=path, major=self.major, minor=position)

    def _files(self, index: int, own: dict[str, Json]) -> dict[str, str]:
        product, position = self.part.product, self.part.first + index
        return {
            "serial": f"{self.serial(index)}\n",
            "product": f"{product}\n",
            "minor": f"{position}\n",
            "memory_bytes": f"{16 * GIB}\n",
            "firmware": "1.2.3\n",
            "board": f"board-{index // 4}\n" if product == "fabric" else "\n",
            "place": f"{index}\n",
            "halves": f"{int(product == 'split')}\n",
            "links": "".join(f"{line}\n" for line in self._links(index)),
            "faults": _lines(own.get("faults")),
            "cleared": f"{own.get('cleared', 0)}\n",
            "holders": _lines(own.get("holders")),
            "level": f"{own.get('level', '')}\n",
            "timeslice": f"{own.get('timeslice', '')}\n",
            **(effects.cuts(product, own) if product in effects.FIRST_MODES else {}),
        }

    def serial(self, index: int) -> str:
        told = self.part.told.units[index].serial
        return told or f"S{self.part.seed:02}-{self.part.first + index:04}"

    def _links(self, index: int) -> Iterable[str]:
        part = self.part
        for other in range(part.count):
            address = part_place(part, other).address
            if part.product == "fabric" and other != index:
                yield f"{address} FABRIC 6"
            if part.product == "ring" and (other - index) % part.count in {1, part.count - 1}:
                yield f"{address} DIRECT 2"

    def libraries(self, live: Live) -> Mapping[str, Mapping[str, Function]]:
        version = self.part.options.get("driver", "1.0").encode()

        def driver_version(buffer: Array[c_char], length: c_uint) -> int:
            if bool(live.state().get(self.vendor, {}).get("unloaded", False)):
                return NO_DRIVER
            if length.value <= len(version):
                return TOO_SHORT
            buffer.value = version
            return 0

        return {f"lib{self.vendor}.so.1": {"simDriverVersion": driver_version}}

    def unloaded(self, state: State) -> Mapping[str, str]:
        gone = bool(state.get(self.vendor, {}).get("unloaded", False))
        return {f"lib{self.vendor}.so.1": "its driver is not loaded"} if gone else {}

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        if verb in {"hang", "raise", "error", "calm", "unload", "load"}:
            common = state.setdefault(self.vendor, {})
            self._at_all(common, verb, args)
            return state
        unit, rest = self.unit(verb, args), args[1:]
        common = state.get(self.vendor, {})
        if verb == "event" and len(rest) == 1:
            state[self.vendor] = {**common, "events": self._told(common, unit, rest[0])}
        else:
            self._of_unit(state.setdefault(unit, {}), verb, rest)
        if verb == "heal":
            state[unit] = {"cleared": _newest(common)}
        return state

    def _of_unit(self, own: dict[str, Json], verb: str, args: tuple[str, ...]) -> None:
        match verb, args:
            case ("heal", ()):
                pass  # it is as new, but for what it was told
            case (("lose" | "restore"), ()):
                own["lost"] = verb == "lose"
            case "fault", (code, *severity) if severity in _SEVERITIES:
                line = f"{code} {''.join(severity) or 'FATAL'}"
                own["faults"] = [*_list(own.get("faults")), line]
            case "hold", (pid,) if pid.isdecimal():
                own["holders"] = [*_list(own.get("holders")), pid]
            case "free", ():
                own.pop("holders", None)
            case (("mode" | "carve" | "uncarve"), (_, *_)):
                self._cut(own, verb, args)
            case "rubbish", ():
                own["files"] = {"memory_bytes": _RUBBISH}
            case "rubbish", (name,) if name in self._files(0, {}):
                own["files"] = {name: _RUBBISH}
            case _:
                raise self.misused(verb, f"cannot be done with {' '.join(args) or 'nothing'}")

    def _cut(self, own: dict[str, Json], verb: str, args: tuple[str, ...]) -> None:
        """What a stranger does with his tools."""
        effect = {"mode": "mode", "carve": "make", "uncarve": "unmake"}[verb]
        try:
            effects.take(self.part.product, own, effect, " ".join(args))
        except SourceError as error:
            raise self.misused(verb, str(error)) from error

    def written(self, state: State, path: str, text: str) -> State | None:
        folder, _, name = path.rpartition("/")
        if name not in effects.NAMES:
            return None
        for index, unit in enumerate(self.units()):
            place = part_place(self.part, index)
            if folder.endswith(f"/{place.address}"):
                effects.take(self.part.product, state.setdefault(unit, {}), name, text)
                return state
        return None

    def booted(self, state: State) -> State:
        """Partitions and settings end with the boot, modes do not."""
        return {
            unit: {"mode": own["asked"] if "asked" in own else own["mode"]}
            for unit, own in state.items()
            if "mode" in own or "asked" in own
        }

    def _at_all(self, common: dict[str, Json], verb: str, args: tuple[str, ...]) -> None:
        orders = _mapping(common.get("orders"))
        match verb, args:
            case "hang", (call, time) if call in CALLS:
                orders[call] = f"hang {duration(time):g}"
            case (("raise" | "error"), (call,)) if call in CALLS:
                orders[call] = verb
            case "calm", ():
                orders = {}
            case "calm", (call,) if call in CALLS:
                orders.pop(call, None)
            case (("unload" | "load"), ()):
                common["unloaded"] = verb == "unload"
            case _:
                raise self.misused(verb, f"cannot be done; the calls are {', '.join(CALLS)}")
        common["orders"] = orders

    def _told(self, common: dict[str, Json], unit: str, code: str) -> list[Json]:
        index = self.units().index(unit)
        address = part_place(self.part, index).address
        line = f"{_newest(common) + 1} {address} {code}"
        return [*_list(common.get("events")), line][-_MOST_EVENTS:]


class SimSetMachine(SimMachine):
    """The same for the vendor whose containers are told of their set."""

    vendor = "simset"
    products = ("cube", "basic", "fabric", "ring", "carve")
    device = 2
    major = 241


def _list(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list) else []


def _mapping(value: Json) -> dict[str, Json]:
    return dict(value) if isinstance(value, dict) else {}


def _texts(value: Json) -> dict[str, str]:
    return {name: str(text) for name, text in _mapping(value).items()}


def _lines(value: Json) -> str:
    return "".join(f"{line}\n" for line in _list(value))


def _newest(common: dict[str, Json]) -> int:
    """The number of the newest event; 0: none yet."""
    return max((int(str(line).split()[0]) for line in _list(common.get("events"))), default=0)
