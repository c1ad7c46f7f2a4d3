"""What a check in process works with: a plugin, fresh machines, a place to clean up. Not L2."""

import atexit
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import attrs

from accelkit.conformance import nursery
from accelkit.conformance.laying import make_machine
from accelkit.conformance.model import Feature, Unanswered
from accelkit.conformance.setups import UNITS
from accelkit.conformance.subjects import Cut, PluginSubject
from accelkit.core.allocation import Grant, Granted
from accelkit.core.health import judge
from accelkit.core.host import Host, ReadOnly
from accelkit.core.model import Device, DeviceId, Evidence, VendorReport
from accelkit.core.policy import HealthPolicy
from accelkit.core.reading import HealthReading, read_conditions, read_inventory
from accelkit.core.real_host import RealHost
from accelkit.core.snapshot import assemble
from accelkit.core.vendor import Vendor
from accelkit.core.view import Verdict
from accelkit.testing.hosts import open_host
from accelkit.testing.shared import Shared, machines
from accelkit.testing.simulate import set_state

T = TypeVar("T")
TAKEN_AWAY = "what the check made is taken away"
_LEAVE_S = 2.0
_LOOK_S = 0.02
_ELSEWHERE_S = 30.0
_MEMORY = "/dev/shm"  # noqa: S108 - directories in it are made like others
# As it was before any plugin was asked.
_ENVIRONMENT = dict(os.environ)


class Scope:
    """Everything that a check made, so that it can be taken away again.

    Args:
        seed: Decides whatever a check leaves to chance.
        scale: Multiplies every patience.
    """

    def __init__(self, seed: int, scale: float) -> None:
        self.seed = seed
        self.scale = scale
        self.rng = random.Random(seed)  # noqa: S311 - a check repeats with its seed
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._closed = False

    def directory(self) -> Path:
        """A new directory, with a short path so that sockets fit into it."""
        return self._directory(None)

    def memory(self) -> Path:
        """A new directory in memory, as a run directory is; elsewhere if this host has none."""
        return self._directory(_MEMORY if os.access(_MEMORY, os.W_OK) else None)

    def _directory(self, above: str | None) -> Path:
        made = tempfile.mkdtemp(prefix="ak-", dir=above)
        _directories.append(made)
        self.later(lambda: shutil.rmtree(made, ignore_errors=True))
        return Path(made)

    def start(
        self,
        words: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        afresh: bool = False,
    ) -> nursery.Started:
        """Start ``accelkit`` as `nursery.start` does, to be killed at the end.

        Raises:
            Unanswered: The end has come.
        """
        started = nursery.start(words, log, environment=environment, afresh=afresh)
        self.later(lambda: _ended(started))
        return started

    def later(self, undo: Callable[[], object]) -> None:
        """Call *undo* at the end, the latest first.

        Raises:
            Unanswered: The end has come, and *undo* is called: a check that took too long goes on.
        """
        with self._lock:
            if not self._closed:
                self._stack.callback(undo)
                return
        undo()
        raise Unanswered(TAKEN_AWAY)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._stack.close()

    def comes(self, predicate: Callable[[], object], patience_s: float = 10.0) -> bool:
        """Whether *predicate* comes to hold, which may take its time: simulations go on."""
        until = time.monotonic() + self.patience(patience_s)
        while not predicate():
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def patience(self, seconds: float) -> float:
        return seconds * self.scale


_directories: list[str] = []


@atexit.register
def _remove_all() -> None:
    """Remove what a check made anew that was still going on when it was taken away."""
    for made in _directories:
        shutil.rmtree(made, ignore_errors=True)


def _ended(started: nursery.Started) -> None:
    started.kill()
    started.wait()


class PluginBench(Scope):
    """A plugin and as many fresh machines as a check wants."""

    def __init__(self, subject: PluginSubject, seed: int, scale: float) -> None:
        super().__init__(seed, scale)
        self.subject = subject

    def rig(self, *, count: int = UNITS, cut: bool = False, seed: int | None = None) -> "Rig":
        """The plugin on a fresh machine, or on the subject's host.

        Args:
            count: Units of the machine.
            cut: With partitions.
            seed: Of its serial numbers; the same gives the same machine.
        """
        subject = self.subject
        if subject.host is not None:
            return Rig(self, None, open_host(subject.host))
        how = (subject.cut if cut else None) or Cut()
        return self.rigged(self.machine(how, count=count, seed=seed))

    def machine(self, how: Cut, *, count: int = UNITS, seed: int | None = None) -> str:
        """The directory of a fresh machine that is made as *how* says."""
        subject = self.subject
        if subject.simulated is None:
            raise Unanswered(f"{subject.name} has no simulated machine: name a host")
        directory = str(self.memory())
        numbers = self.seed if seed is None else seed
        make_machine(subject, how, count, directory, self.later, seed=numbers)
        return directory

    def rigged(self, directory: str) -> "Rig":
        """The plugin on the machine in *directory*."""
        return Rig(self, directory, open_host(directory))

    def nothing(self) -> Host:
        """A host without any hardware."""
        return RealHost(str(self.directory()))

    def plugin(self) -> Vendor:
        """The plugin, built anew."""
        made = self.subject.make()
        self.later(lambda: aside(made.close, _LEAVE_S))
        return made


@attrs.frozen(kw_only=True)
class Elsewhere:
    """What a plugin does in a process of its own."""

    ids: list[str]
    left: list[str]
    """What it changed of the process, which is not its own in an agent."""


class Rig:
    """A plugin on one machine, asked as the agent asks it."""

    def __init__(self, bench: PluginBench, directory: str | None, host: Host) -> None:
        self.bench = bench
        self.directory = directory
        self.host = host
        self.door: Host = ReadOnly(host)
        self.vendor = bench.plugin()

    def report(self, *, vendor: Vendor | None = None, door: Host | None = None) -> VendorReport:
        """What the plugin says is there.

        Raises:
            Unanswered: It says nothing that could be believed.
        """
        report = read_inventory(vendor or self.vendor, door or self.door)
        if not report.answered:
            raise Unanswered(f"discovery: {report.problems[0].reason}")
        return report

    def devices(self) -> tuple[Device, ...]:
        """The devices, at least one.

        Raises:
            Unanswered: There is none.
        """
        report = self.report()
        if not report.devices:
            why = "; ".join(p.reason for p in report.problems) or "no problem is reported"
            raise Unanswered(f"no device is found ({why})")
        return report.devices

    def raw(self) -> tuple[Device, ...]:
        """Devices as the plugin yields them, before anyone sorts, corrects or refuses them."""
        return tuple(d for d in self.vendor.discover(self.door) if isinstance(d, Device))

    def ids(self) -> tuple[DeviceId, ...]:
        return tuple(d.id for d in self.devices())

    def reading(
        self,
        devices: Iterable[Device],
        evidence: Iterable[Evidence] = (),
        *,
        vendor: Vendor | None = None,
        door: Host | None = None,
    ) -> HealthReading:
        """What the plugin says of the health of *devices*."""
        return read_conditions(vendor or self.vendor, door or self.door, devices, evidence)

    def verdicts(
        self,
        devices: tuple[Device, ...],
        reading: HealthReading,
        previous: Mapping[DeviceId, Verdict] = MappingProxyType({}),
        now_s: float = 0.0,
    ) -> dict[DeviceId, Verdict]:
        """How *devices* are judged by the default policy, *now_s* seconds after the first time."""
        now = datetime.now(UTC)
        report = VendorReport(vendor=self.vendor.name, answered=True, devices=devices)
        snapshot = assemble("node", (report,), (reading,), previous=None, held=(), now=now)
        return dict(judge(snapshot, previous, now_s, HealthPolicy(), now))

    def do(self, feature: Feature, unit: str = "", *, undo: bool = False) -> None:
        """Let the machine do what *feature* means, or undo it."""
        words = self.bench.subject.words_for(feature)
        assert words is not None
        assert self.directory is not None
        set_state(self.directory, words[undo].format(unit=unit).split())

    def reboot(self) -> None:
        assert self.directory is not None
        set_state(self.directory, ("reboot",))

    def units(self) -> tuple[str, ...]:
        """The units of the machine."""
        assert self.directory is not None
        (machine,) = machines(Shared(self.directory).record().parts)
        return machine.units()

    def elsewhere(self, hash_seed: str = "0") -> "Elsewhere":
        """What comes of asking the plugin once in another process.

        Raises:
            RuntimeError: It ended there, or did not come to its end.
        """
        subject = self.bench.subject
        kind = subject.vendor
        asked = {
            "vendor": f"{kind.__module__}:{kind.__qualname__}",
            "options": dict(subject.options),
            "host": self.directory or subject.host or "/",
        }
        environment = {
            **_ENVIRONMENT,
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "PYTHONHASHSEED": hash_seed,
        }
        ran = subprocess.run(
            [sys.executable, "-m", "accelkit.conformance.elsewhere"],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=self.bench.patience(_ELSEWHERE_S),
            env=environment,
            cwd="/",  # that of this process may be gone
            check=False,
        )
        if ran.returncode:
            last = (ran.stderr.strip().splitlines() or [f"it ended with code {ran.returncode}"])[-1]
            raise RuntimeError(f"another process cannot tell: {last}")
        return Elsewhere(**json.loads(ran.stdout))

    def tree(self) -> dict[str, tuple[int, int, int]]:
        """What tells whether anything below the machine's directory was changed, by path."""
        found = {}
        for path in Path(self.directory or "/nonexistent").rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                status = path.lstat()
                found[str(path)] = (status.st_ino, status.st_mtime_ns, status.st_size)
        return found


def grant(devices: Iterable[Device], owner: str = "conformance") -> Grant:
    return Grant(owner=owner, granted=tuple(Granted(device=d) for d in devices))


def aside(call: Callable[[], T], patience_s: float) -> tuple[bool, T | BaseException | None]:
    """Run *call* in a thread of its own that nobody waits for longer than *patience_s*.

    Returns:
        Whether it ended, and what it returned or raised.
    """
    outcome: list[T | BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            outcome.append(error)

    thread = threading.Thread(target=run, name="conformance-aside", daemon=True)
    thread.start()
    thread.join(patience_s)
    return bool(outcome), outcome[0] if outcome else None


def told(what: str, sentences: Iterable[str]) -> Iterator[str]:
    """*sentences*, each after *what* it is about."""
    return (f"{what}: {sentence}" for sentence in sentences)
