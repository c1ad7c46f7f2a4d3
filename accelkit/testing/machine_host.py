"""The door to a simulated machine: files from its directory, libraries from its parts."""

import fnmatch
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from typing import Any

import attrs

from accelkit.core.errors import LibraryMissing, NotThere, SourceError
from accelkit.core.host import READ_LIMIT, Finished, Stat
from accelkit.core.real_host import RealHost
from accelkit.core.tables import FunctionTable
from accelkit.testing.faults import Fault, duration
from accelkit.testing.machines import Function, Machine, Part, State
from accelkit.testing.record import Record
from accelkit.testing.shared import Shared, machines, own_state, with_own
from accelkit.testing.simulate import apply_verb

_COUNTS: Counter[tuple[str, Fault]] = Counter()
_COUNTING = threading.Lock()


class RunningPart:
    """One part of a running machine: what its functions see (see Live)."""

    def __init__(self, shared: Shared, machine: Machine) -> None:
        self._shared = shared
        self._machine = machine

    def state(self) -> State:
        return own_state(self._machine, self._shared.record().state)

    def change(self, step: Callable[[State], State]) -> State:
        def whole(record: Record) -> Record:
            own = step(own_state(self._machine, record.state))
            return attrs.evolve(record, state=with_own(self._machine, record.state, own))

        return own_state(self._machine, self._shared.change(whole).state)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Table:
    """A library whose functions are written in Python."""

    def __init__(self, soname: str, functions: Mapping[str, Function]) -> None:
        self.__dict__.update(functions)
        self._name = soname

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-any]  # of any signature
        raise AttributeError(f"{self._name}: undefined symbol: {name}")


class MachineHost:
    """The host that a simulated machine is; see Host for what each method promises.

    May be opened by several processes, and by several threads.
    """

    def __init__(self, directory: str) -> None:
        """Open the machine in *directory*.

        Raises:
            ConfigError: There is none, or it is malformed.
        """
        self._shared = Shared(directory)
        machines(self._shared.record().parts)
        self._files = RealHost(self._shared.directory, seen_as=self._shared.directory)
        self._prefix = ""
        self._tables: dict[Part, Mapping[str, Table]] = {}
        self._loading = threading.Lock()

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        self._strike_read(path)
        return self._files.read(path, limit)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        self._strike_read(path)
        return self._files.read_bytes(path, limit)

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def names(self, path: str) -> tuple[str, ...]:
        return self._files.names(path)

    def resolve(self, path: str) -> str:
        return self._files.resolve(path)

    def stat(self, path: str) -> Stat | None:
        found = self._files.stat(path)
        if found is None:
            return None
        node = self._shared.record().nodes.get(self._prefix + self._files.resolve(path))
        if node is None:
            return found
        return Stat(kind=node.kind, major=node.major, minor=node.minor, mode=found.mode)

    def write(self, path: str, text: str) -> None:
        whole = self._prefix + self._files.resolve(path)
        if not any(self._obeyed(m, whole, text) for m in machines(self._shared.record().parts)):
            self._files.write(path, text)

    def _obeyed(self, machine: Machine, path: str, text: str) -> bool:
        """Whether *path* is a file of *machine* that does something; it did."""
        obeyed = False

        def step(own: State) -> State:
            nonlocal obeyed
            after = machine.written(deepcopy(own), path, text)
            obeyed = after is not None
            return own if after is None else after

        RunningPart(self._shared, machine).change(step)
        return obeyed

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:  # noqa: ARG002 - they answer at once
        for machine in machines(self._shared.record().parts):
            if argv and (program := machine.commands().get(self._prefix + argv[0])):
                return program(RunningPart(self._shared, machine), tuple(argv))
        raise NotThere(f"{' '.join(argv[:1])}: the simulated machine has no such program")

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes:
        raise SourceError(
            f"{path}: the simulated machine does not know request {request:#x} ({len(payload)} B)"
        )

    def library(self, soname: str) -> FunctionTable:
        for machine in machines(self._shared.record().parts):
            part = RunningPart(self._shared, machine)
            if (reason := machine.unloaded(part.state()).get(soname)) is not None:
                raise LibraryMissing(f"{soname} cannot be loaded: {reason}", operation="library")
            if (table := self._tables_of(machine, part).get(soname)) is not None:
                return table
        raise LibraryMissing(
            f"{soname}: no part of the simulated machine brings it", operation="library"
        )

    def module(self, name: str) -> FunctionTable:
        raise LibraryMissing(
            f"{name}: the simulated machine brings no Python modules", operation="module"
        )

    def under(self, root: str) -> "MachineHost":
        below = object.__new__(MachineHost)
        below._shared = self._shared
        below._files = self._files.under(root)
        below._prefix = self._prefix + self._files.resolve(root)
        below._tables = self._tables
        below._loading = self._loading
        return below

    def outside(self, path: str) -> str:
        return self._files.outside(path)

    @property
    def live(self) -> bool:
        return False

    def _tables_of(self, machine: Machine, part: RunningPart) -> Mapping[str, Table]:
        # Once: what a process has done with a library lives in its functions.
        with self._loading:
            if machine.part not in self._tables:
                self._tables[machine.part] = {
                    soname: Table(soname, {n: self._struck(n, f) for n, f in functions.items()})
                    for soname, functions in machine.libraries(part).items()
                }
            return self._tables[machine.part]

    def _struck(self, symbol: str, function: Function) -> Function:
        @wraps(function)
        def call(*args: object) -> object:
            code = self._strike(lambda fault: fault.call == symbol)
            return function(*args) if code is None else int(code)

        return call

    def _strike_read(self, path: str) -> None:
        whole = self._prefix + path
        code = self._strike(
            lambda fault: fault.read is not None and fnmatch.fnmatchcase(whole, fault.read)
        )
        if code is not None:
            raise SourceError(f"{path}: cannot read it: {code or 'error'} (made to fail)")

    def _strike(self, is_meant: Callable[[Fault], bool]) -> str | None:
        """Let the faults of this call happen; the code that it must fail with, if any."""
        code: str | None = None
        for fault in self._shared.record().faults:
            if is_meant(fault) and self._is_due(fault):
                answer = self._happen(fault.words)
                code = answer if code is None else code
        return code

    def _is_due(self, fault: Fault) -> bool:
        with _COUNTING:
            _COUNTS[self._shared.directory, fault] += 1
            count = _COUNTS[self._shared.directory, fault]
        return fault.first <= count < fault.first + fault.times

    def _happen(self, words: tuple[str, ...]) -> str | None:
        match words:
            case ("error", *code):
                return " ".join(code)
            case ("hang", time_text):
                time.sleep(duration(time_text))
            case ("crash",):
                signal.raise_signal(signal.SIGSEGV)  # not os.kill: it has another thread die, later
            case _:
                apply_verb(self._shared, words)
        return None
