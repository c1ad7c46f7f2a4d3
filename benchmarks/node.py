"""An agent as a process beside a simulated kubelet, to be measured. Not here: any measure."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import attrs

from accelkit.conformance.sims.events import Listed, Registered
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import Timing
from accelkit.testing.simulate import simulate

SIM = "sim.accelkit.dev/accel"
NVIDIA, AMD, TPU = "nvidia.com/gpu", "amd.com/gpu", "google.com/tpu"
PATIENCE_S = 60.0
LOOK_S = 0.001
TIMING = Timing(tick_s=0.05, down_s=0.05, stop_s=0.01, watch_s=0.005, admission_s=0.1)
"""Of a kubelet that finds a socket at once, as the real one's file notices let it."""


def command(*words: str) -> list[str]:
    """How this environment starts `accelkit`."""
    script = shutil.which("accelkit", path=str(Path(sys.executable).parent))
    if script is None:
        raise SystemExit("accelkit is not installed in this environment: run ./dev bench")
    return [script, *words]


def environment() -> dict[str, str]:
    """Of a process that may keep its bytecode, as an image has it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@attrs.frozen(kw_only=True)
class Place:
    """A directory with a machine, a policy and room for a kubelet."""

    root: Path
    port: int
    resources: Mapping[str, int]
    """What the agent will list, by name."""

    @property
    def machine(self) -> Path:
        return self.root / "machine"

    @property
    def agent_socket(self) -> Path:
        return self.root / "run" / "agent.sock"

    @property
    def agent(self) -> list[str]:
        return command(
            *("agent", "--policy", str(self.root / "policy.yaml")),
            *("--node", "bench", "--host", str(self.machine)),
        )


@contextmanager
def place(rest: str = "", *, nodes: bool = False, **units: int) -> Iterator[Place]:
    """Make a machine with so many *units* of each vendor, and a policy that ends with *rest*.

    With *nodes* it has real device nodes, which needs root.
    It is in memory where that can be, as ``/run`` of a node is.
    """
    memory = Path("/dev/shm")
    folder = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="ak-", dir=folder) as name:
        root = Path(name)
        for vendor, count in units.items():
            simulate(vendor, None, count, str(root / "machine"), device_nodes=nodes)
        port = _free_port()
        (root / "policy.yaml").write_text(
            f"paths: {{run: {root}/run, kubelet: {root}/kubelet, cdi: {root}/cdi}}\n"
            f'http: {{listen: "127.0.0.1:{port}"}}\n{rest}\n'
        )
        names = {"sim": SIM, "nvidia": NVIDIA, "amd": AMD, "tpu": TPU}
        resources = {names[vendor]: count for vendor, count in units.items()}
        yield Place(root=root, port=port, resources=resources)


def _free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


@contextmanager
def process(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run *words* with its output in *log*; at the end it is told to end."""
    with log.open("ab") as out:
        running = subprocess.Popen(words, stdout=out, stderr=out, env=environment())
    try:
        yield running
    except TimeoutError:
        sys.stderr.write("".join(log.read_text().splitlines(keepends=True)[-10:]))
        raise
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@asynccontextmanager
async def serving(here: Place) -> AsyncIterator[tuple[KubeletSim, subprocess.Popen[bytes]]]:
    """An agent whose every resource is listed to a simulated kubelet."""
    async with KubeletSim(here.root / "kubelet", timing=TIMING) as kubelet:
        with process(here.agent, here.root / "agent.log") as agent:
            await kubelet.wait_for(lambda: listed(kubelet, here), PATIENCE_S)
            yield kubelet, agent


def listed(kubelet: KubeletSim, here: Place) -> bool:
    """Whether every resource was listed in full."""
    return all(
        first_list(kubelet, name, count) is not None for name, count in here.resources.items()
    )


def first_list(kubelet: KubeletSim, resource: str, count: int) -> float | None:
    """When *count* devices of *resource* were first listed, on the monotonic clock."""
    found = kubelet.seen(Listed, resource=resource)
    return next((event.at for event in found if len(event.devices) == count), None)


def endpoint(kubelet: KubeletSim, resource: str) -> Path:
    """The socket that *resource* is served at."""
    return Path(kubelet.seen(Registered, resource=resource)[-1].endpoint)


async def until(there: Callable[[], object]) -> float:
    """Wait until *there* is true; when it was, on the monotonic clock.

    Raises:
        TimeoutError: It did not come to be.
    """
    async with asyncio.timeout(PATIENCE_S):
        while not there():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(LOOK_S)
    return time.monotonic()
