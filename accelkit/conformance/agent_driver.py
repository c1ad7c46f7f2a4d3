"""The agent with one plugin on a simulated machine, started as a process. Not here: checks."""

import http.client
import json
import signal
import socket
from pathlib import Path

from accelkit.conformance.bench import Scope
from accelkit.conformance.model import Feature, Level, Unanswered
from accelkit.conformance.nursery import Started
from accelkit.conformance.subjects import NEIGHBOUR, PluginSubject
from accelkit.core.host import ReadOnly
from accelkit.core.model import Device
from accelkit.core.reading import read_inventory
from accelkit.testing.hosts import open_host
from accelkit.testing.shared import Shared, machines
from accelkit.testing.simulate import set_state, simulate

UNITS = 4
STOP_S = 30.0
"""Three times what ending may take."""
PROBE_S = 5.0
UNDAMPED = {"recoverAfter": "0s", "flap": {"changes": 1000}}
"""Checks let devices fall ill and recover as often as they like."""


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
        self.home = directory
        self.cdi = directory / "cdi"
        self.machine = str(directory / "machine")
        self.log = directory / "agent.log"
        self._make_machine()

    def _make_machine(self) -> None:
        subject = self._subject
        simulate(subject.machine or subject.name, subject.product, UNITS, self.machine)

    @property
    def features(self) -> frozenset[Feature]:
        return self._subject.features(Level.L2)

    def devices(self) -> tuple[Device, ...]:
        """What the plugin itself says that is there."""
        return read_inventory(self._subject.make(), ReadOnly(open_host(self.machine))).devices

    def start(self, kubelet: Path) -> None:
        self._kubelet = kubelet
        policy = self.home / "policy.json"
        policy.write_text(json.dumps(self._policy(kubelet)), encoding="utf-8")
        words = ["agent", "--policy", str(policy), "--node", self._node, "--host", self.machine]
        self._process = self._scope.start(words, self.log)

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
