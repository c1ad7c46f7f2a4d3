"""The processes of one node, and the file that remembers them from one command to the next."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
MARK = "ACCELKIT_TEST_NODE"
"""Environment variable that every process of a node carries; its value is the node's folder."""


class NodeError(Exception):
    """The node cannot do what was asked; the message says where to look."""


def run(*argv: str, stdin: str | None = None, patience: float = 120) -> str:
    """Run a program to its end and return what it printed.

    Raises:
        NodeError: It failed or took longer than *patience* seconds; the message has its last words.
    """
    try:
        done = subprocess.run(
            argv, check=False, text=True, capture_output=True, input=stdin, timeout=patience
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NodeError(f"{' '.join(argv)}: {error}") from error
    if done.returncode:
        raise NodeError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def wait_for(what: str, ready: Callable[[], T], patience: float = 90) -> T:
    """Ask again and again until the answer is true, and return it.

    A `NodeError` or `OSError` counts as "not yet": the other side may be starting.

    Raises:
        NodeError: *patience* seconds went by; the message has the last answer.
    """
    end, last = time.monotonic() + patience, "never asked"
    while time.monotonic() < end:
        try:
            answer = ready()
        except (NodeError, OSError) as error:
            last = str(error)
        else:
            if answer:
                return answer
            last = repr(answer)
        time.sleep(0.1)
    raise NodeError(f"{what}: not within {patience:g} s; last seen: {last}")


def free_port() -> int:
    """A port that nobody has, of those that connections do not get by themselves.

    From another one a server might be kept when it is started again: whoever tries to reach it
    meanwhile may be given its port.

    Raises:
        NodeError: All are taken.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = range(first // 2, first)
    for port in random.sample(ports, len(ports)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise NodeError("no port is free on this host")


def alive(pid: int) -> bool:
    """Say whether *pid* runs; a zombie does not, and is reaped if it is ours."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass  # started by another command
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def end(pid: int, number: signal.Signals, patience: float) -> None:
    """Send a signal, wait, and kill what is still there after *patience* seconds."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    limit = time.monotonic() + patience
    while alive(pid):
        if time.monotonic() > limit:
            os.kill(pid, signal.SIGKILL)
            limit = time.monotonic() + 10
        time.sleep(0.05)


class Processes:
    """Programs of the node in *root*: started, remembered in ``state.json``, ended."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._file = root / "state.json"

    def started(self) -> Mapping[str, tuple[int, tuple[str, ...]]]:
        """Process id and command of each program, in order of first start; some may be dead."""
        if not self._file.exists():
            return {}
        loaded = json.loads(self._file.read_text())
        return {name: (pid, tuple(argv)) for name, (pid, argv) in loaded.items()}

    def _remember(self, name: str, pid: int, argv: Sequence[str]) -> None:
        whole = {**self.started(), name: (pid, argv)}
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(whole, indent=1))
        fresh.replace(self._file)

    def start(self, name: str, *argv: str) -> None:
        """Start a program in the node's mount namespace; what it prints goes to ``NAME.log``."""
        log = str(self.root / f"{name}.log")
        command = [*self.entrance(), *argv]
        pid = os.posix_spawnp(
            command[0],
            command,
            self.environment(),
            setsid=True,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        self._remember(name, pid, argv)

    def restart(self, name: str) -> None:
        """Stop a program, if it runs, and start it as it was started before.

        Raises:
            NodeError: It never ran here.
        """
        if name not in self.started():
            known = ", ".join(self.started()) or "none"
            raise NodeError(f"no program {name!r} in {self.root}; there are: {known}")
        self.stop(name)
        self.start(name, *self.started()[name][1])

    def running(self, name: str) -> bool:
        return name in self.started() and self._ours(self.started()[name][0])

    def stop(
        self, name: str, number: signal.Signals = signal.SIGTERM, patience: float = 10
    ) -> None:
        """End a program; does nothing if it does not run."""
        if self.running(name):
            end(self.started()[name][0], number, patience)

    def environment(self) -> dict[str, str]:
        return {**os.environ, MARK: str(self.root)}

    def entrance(self) -> list[str]:
        """The words before a command that bring it into the node's mount namespace.

        Raises:
            NodeError: No process of the node is alive, so the namespace is gone.
        """
        if os.environ.get(MARK) == str(self.root):
            return []
        for pid, _ in self.started().values():
            if self._ours(pid):
                return ["nsenter", f"--target={pid}", "--mount", f"--wd={Path.cwd()}", "--"]
        raise NodeError(f"no process of the node in {self.root} is alive")

    def _ours(self, pid: int) -> bool:
        """Process ids are used again, marks are not."""
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        return f"{MARK}={self.root}".encode() in environment.split(b"\0") and alive(pid)

    def left(self) -> list[int]:
        """Every process of the node but this one, started by us or not."""
        found = (int(p.name) for p in Path("/proc").glob("[0-9]*"))
        return [pid for pid in found if pid != os.getpid() and self._ours(pid)]

    def kill_left(self) -> None:
        for pid in self.left():
            end(pid, signal.SIGKILL, 10)
