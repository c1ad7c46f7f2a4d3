"""What the play needs: a simulated machine, a simulated kubelet, and an agent as a process.

Not here: what happens on it.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from accelkit.cli.agent_socket import ask
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import Timing
from accelkit.core.errors import ConfigError, TransportError
from accelkit.core.model import Problem
from accelkit.core.serde import Tree, from_tree
from accelkit.core.view import View
from accelkit.testing.simulate import simulate

T = TypeVar("T")

NODE = "play"
GPUS = 8
SMALL = 2
"""Devices of the vendor `sim`."""
RELEASE = "1.37"
TIMING = Timing(tick_s=0.05, watch_s=0.05, retry_s=0.1, stop_s=0.05)
"""A kubelet that looks around more often than a real one; its grace and deadlines are real."""
PATIENCE_S = 30.0
"""For anything that is to be seen."""
AGAIN_S = 4.0
"""Between two things that happen after the story."""
STOP_S = 3.0
"""From SIGTERM to SIGKILL."""
_POLL_S = 0.02
_LONGEST_BASE = 32
"""Bytes: sockets are three levels below it, and their paths may have 107 (sun_path of unix(7))."""

_POLICY = """\
apiVersion: accelkit.dev/v1
kind: NodePolicy
offers:
- name: gpus                    # whole GPUs: nvidia.com/gpu
  select: {{vendor: nvidia}}
  through: kubelet
- name: small                   # each may be used twice at once
  select: {{vendor: sim}}
  through: kubelet
  inject: cdi
  sharing: {{shares: 2}}
read: {{health: 1s}}              # what no event tells is seen within a second
health:                         # a device that recovers is healthy at once, however often
  recoverAfter: 0s
  flap: {{changes: 1000}}
paths:
  host: {root}/machine
  kubelet: {root}/kubelet
  cdi: {root}/cdi
  run: {root}/run
http: {{listen: ""}}
logging: {{format: text}}
"""


class NotSeen(Exception):
    """What the play was to show did not happen."""


class Stage:
    """Where it all happens; see `stage`.

    Args:
        root: A directory of its own.
        sim: Runs already.
    """

    def __init__(self, root: Path, sim: KubeletSim) -> None:
        self.root = root
        self.sim = sim
        self.began = time.monotonic()
        self.machine = str(root / "machine")
        self.policy = root / "policy.yaml"
        self.log = root / "agent.log"
        self.patience_s = PATIENCE_S
        self.view: View | None = None
        """The last that the agent told."""
        self._agent: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Of the agent; None: it does not run."""
        agent = self._agent
        return agent.pid if agent is not None and agent.returncode is None else None

    async def start_agent(self) -> None:
        """Start `accelkit agent` with the policy; it is not ready yet."""
        words = ("agent", "--policy", str(self.policy), "--node", NODE)
        with self.log.open("ab") as log:
            self._agent = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", "from accelkit.cli.main import main; raise SystemExit(main())", *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # a terminal's Ctrl-C is for the play, which ends the agent then
            )

    async def kill_agent(self) -> None:
        """End it as a crash does."""
        if self._agent is not None and self._agent.returncode is None:
            self._agent.kill()
            await self._agent.wait()
        self._agent = None

    async def stop_agent(self) -> int:
        """Ask it to end; returns its exit code, which is negative if it had to be killed."""
        assert self._agent is not None
        agent, self._agent = self._agent, None
        if agent.returncode is None:
            agent.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                return await agent.wait()
        except TimeoutError:
            agent.kill()
            return await agent.wait()

    async def ask(self) -> View | None:
        """The agent's view, over its socket; None: it does not answer."""
        tree = await self._get("/view")
        if tree is not None:
            self.view = from_tree(View, tree)
        return None if tree is None else self.view

    async def problems(self) -> tuple[Problem, ...]:
        """What the agent says is wrong; none if it does not answer."""
        tree = await self._get("/problems")
        return () if tree is None else from_tree(tuple[Problem, ...], tree)

    async def _get(self, path: str) -> Tree:
        try:
            body = await asyncio.to_thread(ask, str(self.root / "run"), path)
        except TransportError:
            return None
        tree: Tree = json.loads(body)
        return tree

    def has(self) -> str:
        """What the node has to give, as the kubelet says."""
        amounts = " · ".join(f"{r} {a} of {c}" for r, (c, a) in sorted(self.sim.status.items()))
        return f"allocatable: {amounts or 'nothing yet'}"

    async def seen(self, what: Callable[[], T | None], named: str) -> T:
        """Wait for the first answer of *what* that is not empty.

        Raises:
            NotSeen: There was none in time, or the agent ended.
        """
        until = time.monotonic() + self.patience_s
        while not (found := what()):
            self._check(named, until)
            await asyncio.sleep(0.002)
        return found

    async def told(self, what: Callable[[View], T | None], named: str) -> T:
        """The same of the agent's view."""

        async def ask() -> T | None:
            view = await self.ask()
            return None if view is None else what(view)

        return await self.asked(ask, named)

    async def asked(self, ask: Callable[[], Awaitable[T | None]], named: str) -> T:
        """The same of what has to be asked for."""
        until = time.monotonic() + self.patience_s
        while not (found := await ask()):
            self._check(named, until)
            await asyncio.sleep(_POLL_S)
        return found

    def _check(self, named: str, until: float) -> None:
        code = None if self._agent is None else self._agent.returncode
        if code is not None:
            raise NotSeen(f"{named}: the agent ended with {code}")
        if time.monotonic() > until:
            raise NotSeen(f"{named}: not within {self.patience_s:g} s")


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Make everything but the agent; at the end nothing of it is left, the agent included.

    Raises:
        ConfigError: There is no directory for it.
    """
    with place() as root:
        machine = str(root / "machine")
        simulate("nvidia", "h100", GPUS, machine)
        simulate("sim", "basic", SMALL, machine)
        (root / "policy.yaml").write_text(_POLICY.format(root=root))
        kubelet = root / "kubelet"
        async with KubeletSim(kubelet, release=RELEASE, timing=TIMING, numa_nodes=(0, 1)) as sim:
            made = Stage(root, sim)
            try:
                yield made
            finally:
                if made.pid is not None:
                    await made.stop_agent()


@contextmanager
def place() -> Iterator[Path]:
    """A directory in which sockets can be, gone at the end.

    Raises:
        ConfigError: There is none.
    """
    root = Path(tempfile.mkdtemp(prefix="accelkit-", dir=_base()))
    try:
        yield root
    finally:
        shutil.rmtree(root)


def _base() -> str:
    """A directory for temporary files whose path is short enough for sockets below it."""
    tried = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108 - mkdtemp makes its own below
    for directory in tried:
        if len(os.fsencode(directory)) <= _LONGEST_BASE and os.access(directory, os.W_OK | os.X_OK):
            return directory
    raise ConfigError(
        [("TMPDIR", f"{tried[0]} is too long for sockets below it")],
        remedy=f"set TMPDIR to a directory whose path has at most {_LONGEST_BASE} bytes",
    )
