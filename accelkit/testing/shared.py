"""One machine in one directory, shared by processes: read it, change it. Not here: verbs."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isabstract
from pathlib import Path

import attrs

from accelkit.core.errors import ConfigError, PluginContractError, PluginError
from accelkit.core.hooks import GROUP
from accelkit.core.host import BOOT_ID, KMSG, UEVENTS
from accelkit.core.registry import load_plugins
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import Vendor
from accelkit.testing.hosts import LOCK
from accelkit.testing.machines import Entry, File, Machine, Node, Part, State
from accelkit.testing.pasted import LIKE
from accelkit.testing.record import NAME, Numbers, Record, dump, load
from accelkit.testing.sysfs import NUMA_NODES, common_tree
from accelkit.testing.trees import Tree, gather, lay_out


def vendor_class(name: str) -> type[Vendor]:
    """The vendor *name* of any installed plugin.

    Raises:
        ConfigError: There is none that can be used.
    """
    # The plugin of that name first, then our own, so that others need not be imported.
    points = entry_points(group=GROUP)
    own = [point for point in points if point.value.startswith(f"{__package__.split('.')[0]}.")]
    for near in ([point for point in points if point.name == name], own):
        if (found := load_plugins(points=near).vendors.get(name)) is not None:
            return found
    registry = load_plugins(points=points)
    if name in registry.vendors:
        return registry.vendors[name]
    raise ConfigError([(f"vendor {name}", registry.lack(name))], remedy="see: accelkit vendor list")


@lru_cache
def machine_class(name: str) -> type[Machine]:
    """The simulated machine that the vendor *name* brings.

    Raises:
        ConfigError: There is no such vendor, or it brings none.
        PluginError: What it names is no machine.
    """
    vendor = vendor_class(name)
    if vendor.machine is None:
        raise ConfigError([(f"vendor {name}", "has no simulated machine")])
    module, _, attribute = vendor.machine.partition(":")
    remedy = f"correct `machine` of the vendor {name}: 'module:Class', of accelkit.testing.Machine"
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        reason = f"{vendor.machine} cannot be loaded: {error}"
        raise PluginError(reason, plugin=name, remedy=remedy) from error
    if not (isinstance(found, type) and issubclass(found, Machine)) or isabstract(found):
        lack = "is no class of Machine that has all its methods"
        raise PluginContractError(f"{vendor.machine} {lack}", plugin=name, remedy=remedy)
    if not getattr(found, "products", ()):
        raise PluginContractError(f"{vendor.machine} has no products", plugin=name)
    return found


@lru_cache
def machines(parts: tuple[Part, ...]) -> tuple[Machine, ...]:
    """The machines of *parts*, in their order.

    Raises:
        ConfigError: A vendor, product or option is unknown.
    """
    made: list[Machine] = []
    for part in parts:
        kind = machine_class(part.vendor)
        if part.product not in kind.products:
            raise ConfigError(
                [(f"product {part.product}", f"{part.vendor} has none of that name")],
                remedy=f"take one of {', '.join(kind.products)}",
            )
        if unknown := sorted(part.options.keys() - kind.options.keys() - {LIKE}):
            known = "; ".join(f"{key}: {text}" for key, text in sorted(kind.options.items()))
            raise ConfigError(
                [(f"option {unknown[0]}", f"{part.vendor} has none of that name")],
                remedy=f"take one of {known}" if known else "it has no options",
            )
        assert part.told.units  # read here, so that what is wrong with it is said at once
        made.append(kind(part))
    return tuple(made)


def own_state(machine: Machine, state: State) -> State:
    """What of *state* belongs to *machine*: a copy."""
    keys = {*machine.units(), machine.part.vendor}
    return {key: deepcopy(value) for key, value in state.items() if key in keys}


def with_own(machine: Machine, state: State, own: State) -> State:
    """*state* with *own* in place of what belonged to *machine*."""
    keys = {*machine.units(), machine.part.vendor}
    rest = {key: value for key, value in state.items() if key not in keys}
    return {**rest, **{key: value for key, value in own.items() if value}}


def planned(record: Record) -> Tree:
    """Everything that must be in the tree of *record*."""
    return gather(_entries(record))


def _entries(record: Record) -> Iterator[Entry]:
    if not record.parts:
        return
    told = [unit.numa or 0 for part in record.parts for unit in part.told.units]
    yield from common_tree(max(NUMA_NODES, *(node + 1 for node in told)))
    yield File(path=BOOT_ID, content=record.boot + "\n", mode=0o444)
    if record.kernel:
        lines = (f"6,{n},{n},-;{text}\n" for n, text in enumerate(record.kernel))
        yield File(path=KMSG, content="".join(lines))
    if record.uevents:
        sent = (f"{message.replace(' ', chr(0))}\0\n" for message in record.uevents)
        yield File(path=UEVENTS, content="".join(sent))
    for machine in machines(record.parts):
        yield from machine.tree(own_state(machine, record.state))


class Shared:
    """The machine in *directory*, as one process sees it."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.realpath(directory)
        self._seen: tuple[tuple[int, int, int], Record] | None = None

    def record(self) -> Record:
        """The record now; read again only when the file is another one.

        Raises:
            ConfigError: It is not there, or not a machine's.
        """
        try:
            found = os.stat(f"{self.directory}/{NAME}")  # noqa: PTH116 - asked on every call
        except OSError:
            return load(self.directory)
        print_ = (found.st_ino, found.st_ctime_ns, found.st_size)
        seen = self._seen
        if seen is None or seen[0] != print_:
            self._seen = seen = (print_, load(self.directory))
        return seen[1]

    def change(self, step: Callable[[Record], Record]) -> Record:
        """Replace the record by what *step* makes of it, then let the tree follow.

        One change at a time, over all processes. What *step* raises leaves everything as it was.
        """
        self.record()  # so that no lock file is left where there is no machine
        with self._locked():
            return self._follow(load(self.directory), step)

    def begin(self, first: Record, step: Callable[[Record], Record]) -> Record:
        """Like *change*, from *first* if there is no record yet."""
        with self._locked():
            used = Path(self.directory, NAME).exists()
            return self._follow(load(self.directory) if used else first, step)

    def _follow(self, before: Record, step: Callable[[Record], Record]) -> Record:
        after = step(before)
        tree = planned(after)
        nodes = {
            entry.path: Numbers(kind=entry.kind, major=entry.major, minor=entry.minor)
            for entry in tree.values()
            if isinstance(entry, Node)
        }
        after = attrs.evolve(after, nodes=FrozenMap(nodes))
        if after == before:
            return before
        lay_out(self.directory, planned(before), tree, device_nodes=after.device_nodes)
        made = Path(self.directory, f".{NAME}")
        try:
            made.write_text(dump(after), encoding="utf-8")
            made.replace(Path(self.directory, NAME))
        except OSError as error:
            text = f"cannot be written: {error.strerror}"
            raise ConfigError([(f"{self.directory}/{NAME}", text)]) from error
        return after

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            fd = os.open(f"{self.directory}/{LOCK}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ConfigError(
                [(self.directory, f"is no machine that can be changed: {error.strerror}")]
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
