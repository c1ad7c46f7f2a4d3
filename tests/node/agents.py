"""Agents on a node: their policy, their process, what they say. Not here: what Kubernetes sees."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.node.cluster import Cluster
from tests.node.containers import wait_allocatable
from tests.node.kubelet_log import LISTED, KubeletLog
from tests.node.objects import Document
from tests.node.processes import NodeError

REGISTRY = "plugins_registry"
PLUGINS = "device-plugins"
KUBELET = "kubelet.sock"
UNDAMPED = {"recoverAfter": "0s", "flap": {"changes": 1000}}
"""Devices are healthy as soon as they are well, however often they fall ill."""


def offer(**terms: object) -> Document:
    """The offer of everything through the kubelet, on these *terms*."""
    return {"name": "all", "select": {}, "through": "kubelet", **terms}


class NodeAgent:
    """One process ``accelkit agent`` on the node.

    Args:
        program: The words before its flags; None: those of the agent.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        policy: Document,
        host: Path,
        program: Sequence[str] | None = None,
    ) -> None:
        self.log = cluster.root / f"{name}.log"
        self.run = Path(policy["paths"]["run"])
        self._cluster = cluster
        self._kubelet = KubeletLog(cluster)
        self.policy = cluster.root / f"{name}.json"
        self.policy.write_text(json.dumps(policy))
        accelkit = (str(Path(sys.executable).with_name("accelkit")), "agent")
        flags = (f"--policy={self.policy}", f"--node={cluster.name}", f"--host={host}")
        self._argv = (*(program or accelkit), *flags)
        self._process = cluster.run_in_namespace(self._argv, log=name)

    def start_again(self) -> None:
        """Start it as it was started before; its log is another one."""
        self.log = self.log.with_stem(f"{self.log.stem}-again")
        self._process = self._cluster.run_in_namespace(self._argv, log=self.log.stem)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        self.tell(number)
        try:
            return self._process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.tell(signal.SIGUSR1)  # its log says then what it waits for
            time.sleep(1)
            self._process.kill()
            self._process.wait(timeout=20)
            raise

    def tell(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self.runs:
            self._process.send_signal(number)

    @property
    def registered(self) -> bool:
        """Whether the kubelet has taken its first driver."""
        return "driver registered" in self.log.read_text()

    def adopt(self, **terms: object) -> None:
        """Give it another policy: these keys in place of its own."""
        fresh = self.policy.with_suffix(".new")
        fresh.write_text(json.dumps({**json.loads(self.policy.read_text()), **terms}))
        fresh.replace(self.policy)

    def ask(self, path: str) -> tuple[int, str]:
        """Status and body of what the agent answers on its own socket.

        Raises:
            OSError: It does not answer.
        """
        with socket.socket(socket.AF_UNIX) as plug:
            plug.settimeout(10)
            plug.connect(str(self.run / "agent.sock"))
            plug.sendall(f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
            answer = http.client.HTTPResponse(plug)
            answer.begin()
            return answer.status, answer.read().decode()

    def problems(self) -> frozenset[str]:
        """Codes of the problems that it has."""
        return frozenset(problem["code"] for problem in json.loads(self.ask("/problems")[1]))

    def wait_offered(self, resource: str, amount: int) -> None:
        """Wait until the kubelet has its list, and the node so much of *resource*.

        The node's status alone may still be that of another agent before.
        """
        self._kubelet.wait_for(LISTED, f'"{resource}"', f"resourceCapacity={amount}")
        wait_allocatable(self._cluster, resource, amount)

    def wait_until_ready(self) -> None:
        """Wait until it says so.

        Raises:
            NodeError: It does not, or it has ended.
        """

        def ready() -> bool:
            if not self.runs:
                raise NodeError(f"the agent has ended; see {self.log}")
            status, body = self.ask("/readyz")
            if status != http.client.OK:
                raise NodeError(body)
            return True

        self._cluster.wait_for("agent ready", ready)


class Agents:
    """Starts agents for one test and ends all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._started: list[NodeAgent] = []

    def start(
        self,
        host: Path,
        *offers: Mapping[str, object],
        register: str = "auto",
        run: str = "run",
        vendors: Sequence[Mapping[str, object]] = (),
        dra: Mapping[str, object] | None = None,
        program: Sequence[str] | None = None,
        **terms: object,
    ) -> NodeAgent:
        """Start an agent; it is not ready yet.

        Args:
            host: The machine, or the root of the real host.
            offers: None: everything by its usual name.
            register: How the kubelet is to know it.
            run: Which run directory; agents with the same one know of each other.
            vendors: As in a policy.
            dra: Of backends, as in a policy; None: the API server is not used.
            program: What runs in place of the agent, see `NodeAgent`.
            terms: Further keys of the policy.
        """
        policy = {
            "apiVersion": "accelkit.dev/v1",
            "kind": "NodePolicy",
            "paths": {"run": str(self._cluster.root / run)},
            "http": {"listen": ""},
            "logging": {"format": "text"},
            "read": {"health": "2s", "holdings": "2s"},  # a fifth of what is usual
            "health": UNDAMPED,
            "backends": {"kubelet": {"register": register}, "dra": dict(dra or {})},
            "kube": {"config": "none" if dra is None else str(self._cluster.kubeconfig)},
            "vendors": list(vendors),
            "offers": list(offers) or [offer()],
            **terms,
        }
        before = len(list(self._cluster.root.glob("agent-*.json")))
        name = f"agent-{before}"  # none that an agent of another test has: logs are appended to
        agent = NodeAgent(self._cluster, name, policy, host, program)
        self._started.append(agent)
        return agent

    def end(self) -> None:
        for agent in self._started:
            agent.end()


def sockets(cluster: Cluster) -> set[Path]:
    """The sockets of plugins, hidden ones too; those of processes that were killed stay."""
    folders = (cluster.kubelet_root / name for name in (REGISTRY, PLUGINS))
    found = {path for folder in folders for path in folder.iterdir() if path.is_socket()}
    return {path for path in found if path.name != KUBELET}


@contextmanager
def rival(cluster: Cluster, resource: str, *ids: str) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody else's device plugin that offers *resource*, until the end."""
    argv = [sys.executable, "-m", "tests.node.rival", resource, *ids]
    process = cluster.run_in_namespace(argv, log="rival")
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=20)
