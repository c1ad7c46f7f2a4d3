"""What a simulated machine is made of: parts, trees, libraries. Not here: the engine that runs it.

A vendor ships one ``Machine`` class and names it in ``Vendor.machine``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias

import attrs

from accelkit.core.errors import ConfigError
from accelkit.core.host import Finished
from accelkit.core.values import FrozenMap, freeze
from accelkit.testing.pasted import LIKE, Cut, Looks, Output, Told, Unit, Verb, load_told

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
State: TypeAlias = dict[str, dict[str, Json]]
"""What differs from a machine fresh from the factory: by unit name, and by the vendor's name for
what belongs to all of its units. An absent key or field means that nothing is wrong there."""

Function: TypeAlias = Callable[..., Any]  # type: ignore[explicit-any]  # of any C signature


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Part:
    """One vendor's share of a machine."""

    vendor: str
    product: str
    count: int
    seed: int = 0
    """Serial numbers and UUIDs are made from it."""
    first: int = 0
    """Units of earlier parts: offset of unit names, PCI addresses and NUMA nodes."""
    options: FrozenMap[str, str] = FrozenMap()
    """What else this vendor's machine can be told, such as a driver version."""

    @property
    def told(self) -> Told:
        """What is told of its devices, by a text that it is made like.

        Raises:
            ConfigError: The option that holds it is malformed.
        """
        text = self.options.get(LIKE)
        return _nothing(self.count) if text is None else load_told(text, self.count)


@lru_cache
def _nothing(count: int) -> Told:
    return Told(units=(Unit(),) * count)


@attrs.frozen(kw_only=True)
class File:
    """A file of the tree."""

    path: str
    content: str | bytes = ""
    mode: int = 0o644


@attrs.frozen(kw_only=True)
class Link:
    """A symbolic link of the tree; an absolute *target* is one below the machine's root."""

    path: str
    target: str


@attrs.frozen(kw_only=True)
class Node:
    """A device node. A plain file stands for it, unless the machine was made with real ones."""

    path: str
    kind: str = "c"
    major: int
    minor: int
    mode: int = 0o666


@attrs.frozen(kw_only=True)
class Line:
    """A line of a file that several parts add to, such as /proc/devices or /proc/modules."""

    path: str
    text: str


Entry: TypeAlias = File | Link | Node | Line


class Live(Protocol):
    """The running machine, as a library function sees it."""

    def state(self) -> State:
        """The part's state now; changing the answer changes nothing."""
        ...

    def change(self, step: Callable[[State], State]) -> State:
        """Replace the part's state by what *step* makes of it, then let the tree follow.

        One change at a time, over all processes that share the machine; *step* may be given its
        argument to modify and return.
        """
        ...

    def sleep(self, seconds: float) -> None:
        """Let the calling thread wait."""
        ...


class Machine(ABC):
    """One vendor's simulated hardware: facts as files and C functions, and what can go wrong.

    Holds no state of its own: everything is a function of the part and of the state, so that
    several processes can share one machine.
    """

    vendor: ClassVar[str]
    products: ClassVar[tuple[str, ...]]
    """What ``--product`` may name; the first is the default."""
    verbs: ClassVar[Mapping[str, str]] = {}
    """Verbs that *verb* knows, each with its usage: ``{"lose": "lose UNIT"}``."""

    history: ClassVar[frozenset[str]] = frozenset()
    """Fields of its state that tell how often something has happened, and not how things are."""
    options: ClassVar[Mapping[str, str]] = {}
    """What ``--option`` may name, each with what it says; *part.options* has the values."""

    outputs: ClassVar[tuple[Output, ...]] = ()
    """What its maker's tools print, to make a machine like."""
    looks: ClassVar[Mapping[str, Looks]] = {}
    """How products are recognised in what is told of them."""
    drivers: ClassVar[tuple[str, ...]] = ()
    """Drivers of other makers that publish its devices in ResourceSlices."""

    parted: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Verbs that give a fresh machine partitions, for checks that begin with some:
    ``(("cut", "npu-0", "1"),)``."""
    blocks: ClassVar[tuple[Json, Json] | None] = None
    """Two blocks that a claim may have for this vendor, which set one thing to two values; needed
    by the checks of a vendor that sets hardware up for claims."""
    shows: ClassVar[str] = ""
    """The file of a unit that shows what *blocks* have set."""

    def __init__(self, part: Part) -> None:
        self.part = part

    @classmethod
    def cut(cls, product: str, index: int, cuts: Sequence[Cut]) -> tuple[Verb, ...]:  # noqa: ARG003 - machines that can be cut use it
        """The verbs by which the unit at *index* gets the partitions *cuts*, as far as it can."""
        return ()

    @abstractmethod
    def units(self) -> tuple[str, ...]:
        """Names of the units, ``<kind>-<position>``, positions from *part.first* on."""

    @abstractmethod
    def tree(self, state: State) -> Iterable[Entry]:
        """Everything that must be in the file tree in *state*. Folders are made as needed."""

    def libraries(self, live: Live) -> Mapping[str, Mapping[str, Function]]:  # noqa: ARG002 - machines with a library use it
        """C functions written in Python, by soname and symbol; asked once for each host object.

        A function gets what a caller would hand to ctypes: ctypes numbers and structures, byref()
        objects and pointers (see ``pointee``), None, bytes. It answers like the C function. What
        lives in a process (initialised or not, registered events) lives in its closure; what lives
        in the hardware or the driver lives in *live*. Faults are applied around it by the engine.
        """
        return {}

    def unloaded(self, state: State) -> Mapping[str, str]:  # noqa: ARG002 - machines use it
        """Sonames that cannot be loaded in *state*, each with the reason in words."""
        return {}

    def commands(self) -> Mapping[str, Callable[[Live, tuple[str, ...]], Finished]]:
        """Programs by absolute path; each gets the machine and its whole argument vector."""
        return {}

    def written(self, state: State, path: str, text: str) -> State | None:  # noqa: ARG002 - machines with files that do something use it
        """What *state* becomes when *text* is written to *path*; None: that file is only kept.

        Raises:
            SourceError: The driver refuses it.
        """
        return None

    def verb(self, state: State, verb: str, args: tuple[str, ...]) -> State:
        """What *state* becomes by *verb*, which is one of *verbs*.

        Raises:
            ConfigError: The arguments are wrong (see ``unit`` and ``misused``).
        """
        del args
        raise self.misused(verb, f"is not handled in state {sorted(state)}")

    def says(self, state: State, verb: str, args: tuple[str, ...]) -> Iterable[tuple[str, ...]]:  # noqa: ARG002 - machines whose drivers tell of it use it
        """What the kernel tells when *verb* has led to *state*, as real drivers do.

        Each is written as for ``simulate set``: ``("kernel", TEXT)`` for a line of its log, or
        ``("uevent", ACTION, DEVPATH, "KEY=VALUE", ...)``.
        """
        return ()

    def booted(self, state: State) -> State:  # noqa: ARG002 - machines use it
        """What is left of *state* after a reboot; by default the machine is as new."""
        return {}

    def unit(self, verb: str, args: tuple[str, ...]) -> str:
        """The first of *args*, if it is a unit of this machine.

        Raises:
            ConfigError: It is missing or unknown.
        """
        units = self.units()
        if args and args[0] in units:
            return args[0]
        found = f"there is no {args[0]}" if args else "names no unit"
        raise self.misused(verb, f"{found}; the units are {', '.join(units) or 'none'}")

    def misused(self, verb: str, text: str) -> ConfigError:
        """The error for wrong arguments of *verb*."""
        return ConfigError([(verb, text)], remedy=f"write: {self.verbs.get(verb, verb)}")


def pointee(argument: Any) -> Any:  # type: ignore[explicit-any]  # of any C type
    """The object that a byref() argument or a ctypes pointer stands for.

    Assign to ``.value`` of a simple one, to the fields of a structure, to the items of an array.
    """
    return argument._obj if hasattr(argument, "_obj") else argument.contents  # noqa: SLF001 - ctypes names it so
