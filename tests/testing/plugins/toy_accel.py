"""A vendor with a library, a command and files of every sort, as another distribution brings it."""

from collections.abc import Callable, Iterable, Mapping
from ctypes import c_uint
from typing import Any, ClassVar

from accelkit import Device, Finished, Host, Vendor, hookimpl
from accelkit.testing.machines import (
    Entry,
    File,
    Function,
    Line,
    Link,
    Live,
    Machine,
    Node,
    State,
    pointee,
)


class ToyMachine(Machine):
    vendor = "toy"
    products = ("ball", "doll")
    verbs: ClassVar[Mapping[str, str]] = {
        "lose": "lose UNIT",
        "unload": "unload",
        "clash": "clash",
        "bad": "bad",
    }

    def units(self) -> tuple[str, ...]:
        return tuple(f"toy-{self.part.first + i}" for i in range(self.part.count))

    def tree(self, state: State) -> Iterable[Entry]:
        yield Line(path="/proc/devices", text="250 toy")
        for unit in self.units():
            if not state.get(unit, {}).get("lost"):
                yield File(path=f"/sys/toys/{unit}/size", content="7\n")
                yield File(path=f"/sys/toys/{unit}/config", content=b"\xff\x00", mode=0o600)
                yield Link(path=f"/sys/by-name/{unit}", target=f"/sys/toys/{unit}")
                yield Node(path=f"/dev/{unit}", major=250, minor=int(unit[4:]))
        if state.get("toy", {}).get("clash"):
            yield File(path="/proc/devices", content="mine\n")

    def libraries(self, live: Live) -> Mapping[str, Mapping[str, Function]]:
        calls = {"made": 0}

        def toy_count(count: Any) -> int:  # type: ignore[explicit-any]  # what byref gives
            calls["made"] += 1
            pointee(count).value = sum(not unit.get("lost") for unit in self._all(live.state()))
            return 0

        def toy_calls(count: Any) -> int:  # type: ignore[explicit-any]  # what byref gives
            pointee(count).value = calls["made"]
            return 0

        def toy_lose(index: c_uint) -> int:
            def lose(state: State) -> State:
                state.setdefault(self.units()[index.value], {})["lost"] = True
                return state

            live.change(lose)
            live.sleep(0)
            return 0

        functions = {"toyCount": toy_count, "toyCalls": toy_calls, "toyLose": toy_lose}
        return {"libtoy.so.1": functions}

    def _all(self, state: State) -> Iterable[dict[str, Any]]:  # type: ignore[explicit-any]  # JSON
        return (state.get(unit, {}) for unit in self.units())

    def unloaded(self, state: State) -> Mapping[str, str]:
        return {"libtoy.so.1": "nobody wound it up"} if state.get("toy", {}).get("off") else {}

    def commands(self) -> Mapping[str, Callable[[Live, tuple[str, ...]], Finished]]:
        return {"/usr/bin/toy": lambda _, argv: Finished(code=0, out=" ".join(argv), err="")}

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        match verb:
            case "lose":
                state.setdefault(self.unit(verb, args), {})["lost"] = True
            case "unload":
                state["toy"] = {"off": True}
            case "clash":
                state["toy"] = {"clash": True}
            case _:
                return super().verb(state, verb, args)
        return state

    def booted(self, state: State) -> State:
        return {key: value for key, value in state.items() if key != "toy"}


class Toy(Vendor):
    name = "toy"
    domain = "toy.example"
    machine: ClassVar[str | None] = "toy_accel:ToyMachine"

    def discover(self, host: Host) -> Iterable[Device]:
        return [self.device(name, kind="toy") for name in host.names("/sys/toys")]


class Plain(Toy):
    """Has no simulated machine."""

    name = "plain"
    machine = None


class Torn(Toy):
    """Names a machine that is not there."""

    name = "torn"
    machine = "toy_accel:NoSuchMachine"


class HalfMade(Machine):
    products = ("half",)


class BareMachine(ToyMachine):
    products: ClassVar[tuple[str, ...]] = ()  # type: ignore[assignment]  # that is what is wrong


class Halfmade(Toy):
    name = "halfmade"
    machine = "toy_accel:HalfMade"


class NoClass(Toy):
    name = "noclass"
    machine = "toy_accel:hookimpl"


class Bare(Toy):
    name = "bare"
    machine = "toy_accel:BareMachine"


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    return [Toy, Plain, Torn, Halfmade, NoClass, Bare]
