"""The agent with one plugin on a simulated machine, started as a process. Not here: checks."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import time
from http import HTTPStatus
from pathlib import Path

from accelkit.conformance.bench import Scope
from accelkit.conformance.footprint import Footprint, footprint_of
from accelkit.conformance.laying import make_machine
from accelkit.conformance.model import Feature, Level, Unanswered
from accelkit.conformance.nursery import Started
from accelkit.conformance.setups import UNITS
from accelkit.conformance.subjects import NEIGHBOUR, Cut, PluginSubject
from accelkit.core.host import ReadOnly
from accelkit.core.kube import Json
from accelkit.core.model import Device
from accelkit.core.reading import read_inventory
from accelkit.testing.hosts import open_host
from accelkit.testing.shared import Shared, machines
from accelkit.testing.simulate import set_state, simulate

STOP_S = 30.0
"""Three times what ending may take."""
PROBE_S = 5.0
UNDAMPED = {"recoverAfter": "0s", "flap": {"changes": 1000}}
"""Checks let devices fall ill and recover as often as they like."""
LOOK_S = 0.02
MOST_STARTS = 5
"""So often a kubelet starts a container that ends at once within two minutes."""
_DEADLY = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"


class AgentDriver:
    """``accelkit agent`` with the subject's plugin alone.

    Args:
        subject: The plugin.
        scope: Ends what is started.
        directory: Machine, policy, run directory and log are made in it.
    """

    def __init__(self, subject: PluginSubject, scope: Scope, directory: Path) -> None:
        self._subject = subject
        self._scope = scope
        self._vendors = [subject.name]
        self._kubelet: Path | None = None
        self._process: Started | None = None
        self._moved: list[tuple[Path, Path]] = []
        self._node = "conformance"
        self._afresh = False
        self._environment: dict[str, str] = {}
        self.home = directory
        self.cdi = directory / "cdi"
        self.machine = str(directory / "machine")
        self.log = directory / "agent.log"
        self._make_machine()

    def _make_machine(self) -> None:
        make_machine(self._subject, Cut(), UNITS, self.machine, self._scope.later)

    @property
    def features(self) -> frozenset[Feature]:
        return self._subject.features(Level.L2)

    def devices(self) -> tuple[Device, ...]:
        """What the plugin itself says that is there."""
        return read_inventory(self._subject.make(), ReadOnly(open_host(self.machine))).devices

    def start(self, kubelet: Path) -> None:
        self._kubelet = kubelet
        self._write(self._policy(kubelet))
        self._begin()
        if self._environment:
            self._outlive()

    def _write(self, policy: dict[str, object]) -> None:
        hidden = self._file.with_suffix(".new")
        hidden.write_text(json.dumps(policy), encoding="utf-8")
        hidden.rename(self._file)

    @property
    def _file(self) -> Path:
        return self.home / "policy.json"

    def _begin(self) -> None:
        words = ["agent", "--policy", str(self._file), "--node", self._node, "--host", self.machine]
        self._process = self._scope.start(
            words, self.log, environment=self._environment, afresh=self._afresh
        )

    def _outlive(self) -> None:
        """Start it again as often as it ends, as long as a kubelet does so without long waits."""
        for _ in range(MOST_STARTS):
            if self._lives():
                return
            self._begin()
        raise Unanswered(f"it has ended {MOST_STARTS} times after it was started{self.said()}")

    def _lives(self) -> bool:
        assert self._process is not None
        until = time.monotonic() + self._scope.patience(STOP_S)
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                self._process.wait(LOOK_S)
                return False
            with contextlib.suppress(OSError):
                if self.probe("/livez")[0] == HTTPStatus.OK:
                    return True
        raise Unanswered(f"it neither ends nor serves{self.said()}")

    def _policy(self, kubelet: Path) -> dict[str, object]:
        options = {self._subject.name: dict(self._subject.options)}
        return {
            "apiVersion": "accelkit.dev/v1",
            "kind": "NodePolicy",
            "paths": {
                "kubelet": str(kubelet),
                "cdi": str(self.cdi),
                "run": str(self.home / "run"),
            },
            "vendors": [{"name": n, "options": options.get(n, {})} for n in self._vendors],
            "read": {"inventory": "200ms", "health": "200ms", "holdings": "200ms"},
            "health": UNDAMPED,
            "http": {"listen": ""},
        }

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        patience_s = self._scope.patience(STOP_S)
        try:
            code = self._process.wait(patience_s)
        except TimeoutError:
            raise Unanswered(f"it has not ended {patience_s:g} s after SIGTERM") from None
        self._process = None
        if code:
            raise Unanswered(f"it ended with code {code} after SIGTERM{self.said()}")

    def ended(self) -> bool:
        return self._process is not None and self._process.ended()

    def said(self) -> str:
        """The end of what it logged."""
        text = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        lines = text.splitlines()[-2:]
        return "".join(f"; {line[:300]}" for line in lines)

    def restart(self) -> None:
        self.stop()
        assert self._kubelet is not None
        self.start(self._kubelet)

    def break_device(self) -> None:
        """By a fault where the machine has one, else by taking its device files away."""
        words = self._subject.words_for(Feature.FAULT)
        if words is not None:
            set_state(self.machine, words[0].format(unit=self._unit()).split())
            return
        device = next(d for d in self.devices() if d.usable and d.nodes)
        for node in device.nodes:
            there = Path(self.machine + node.on_host)
            away = there.with_name(f".{there.name}")
            there.rename(away)
            self._moved.append((there, away))

    def mend_device(self) -> None:
        words = self._subject.words_for(Feature.FAULT)
        if words is not None:
            set_state(self.machine, words[1].format(unit=self._unit()).split())
        while self._moved:
            there, away = self._moved.pop()
            away.rename(there)

    def withdraw_device(self) -> None:
        words = self._subject.words_for(Feature.REMOVE)
        assert words is not None
        set_state(self.machine, words[0].format(unit=self._unit()).split())

    def withdraw_all(self) -> None:
        self._all(0)

    def bring_back(self) -> None:
        self._all(1)

    def _all(self, undo: int) -> None:
        words = self._subject.words_for(Feature.REMOVE)
        assert words is not None
        for unit in machines(Shared(self.machine).record().parts)[0].units():
            set_state(self.machine, words[undo].format(unit=unit).split())

    def renew(self, *, valid: bool) -> None:
        assert self._process is not None
        assert self._kubelet is not None
        before = self._reloads()
        more = {"release": {"giveUpAfter": "11m"}} if valid else {"nonsense": True}
        self._write(self._policy(self._kubelet) | more)
        self._process.send_signal(signal.SIGHUP)
        until = time.monotonic() + self._scope.patience(STOP_S)
        while self._reloads() == before:
            if time.monotonic() > until:
                raise Unanswered(f"it does not read its policy again{self.said()}")
            time.sleep(LOOK_S)

    def _reloads(self) -> float:
        """How often it has read its policy since it began."""
        found = re.findall(
            r"^accelkit_config_reloads_total\S* (\S+)$", self.probe("/metrics")[1], re.MULTILINE
        )
        return sum(map(float, found))

    def afresh(self) -> None:
        self._afresh = True

    def footprint(self) -> Footprint:
        assert self._process is not None
        return footprint_of(self._process.pid)

    def endanger(self) -> None:
        directory = self.home / "plugins"
        about = directory / "conformance_deadly-1.dist-info"
        about.mkdir(parents=True)
        (directory / "conformance_deadly.py").write_text(_DEADLY, encoding="utf-8")
        (about / "METADATA").write_text("Name: conformance_deadly\nVersion: 1\n", encoding="utf-8")
        points = "[accelkit]\na-conformance-deadly = conformance_deadly\n"
        (about / "entry_points.txt").write_text(points, encoding="utf-8")
        known = os.environ.get("PYTHONPATH", "")
        self._environment = {"PYTHONPATH": os.pathsep.join(filter(None, (str(directory), known)))}

    def logged(self) -> list[Json]:
        text = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        found: list[Json] = []
        for line in text.splitlines():
            with contextlib.suppress(ValueError):  # of a library
                tree = json.loads(line)
                found += [tree] if isinstance(tree, dict) else []
        return found

    def hang(self) -> None:
        words = self._subject.words_for(Feature.HANG)
        assert words is not None
        set_state(self.machine, words[0].split())

    def disturb_neighbour(self) -> None:
        simulate(NEIGHBOUR, None, 1, self.machine)
        self._vendors.append(NEIGHBOUR)
        for call in ("discover", "conditions"):
            set_state(self.machine, ("raise", NEIGHBOUR, call))

    def probe(self, path: str) -> tuple[int, str]:
        connection = _UnixConnection(self.home / "run" / "agent.sock")
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def _unit(self) -> str:
        return machines(Shared(self.machine).record().parts)[0].units()[1]


class _UnixConnection(http.client.HTTPConnection):
    """HTTP to a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PROBE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
