"""A driver that somebody else wrote, reached by commands. Not here: what it must do."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import attrs

from accelkit.conformance.model import Feature, Unanswered
from accelkit.core.model import Device

KUBELET = "ACCELKIT_KUBELET"
"""Set for every command: the directory that stands for /var/lib/kubelet."""
COMMAND_S = 60.0
STOP_S = 30.0


@attrs.frozen(kw_only=True)
class Hooks:
    """Commands, as one would type them; each unlocks more checks."""

    start: str = ""
    """Runs the driver in the foreground; empty: it runs, and comes to a kubelet by itself."""
    restart: str = ""
    """Lets the driver end and start again; needless with *start*."""
    break_device: str = ""
    """Lets one device, the same each time, become unhealthy."""
    mend_device: str = ""
    withdraw_device: str = ""
    """Lets one device vanish."""
    hang: str = ""
    """Lets whatever stands behind the driver not answer any more."""


class CommandDriver:
    """A process of any kind.

    Args:
        hooks: How to reach it.
        scale: Multiplies patience.
    """

    def __init__(self, hooks: Hooks, scale: float = 1.0) -> None:
        self._hooks = hooks
        self._scale = scale
        self._kubelet: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def features(self) -> frozenset[Feature]:
        hooks = self._hooks
        found = {
            Feature.RESTART: hooks.start or hooks.restart,
            Feature.STOP: hooks.start,
            Feature.BREAK: hooks.break_device and hooks.mend_device,
            Feature.WITHDRAW: hooks.withdraw_device,
            Feature.HANG: hooks.hang,
        }
        return frozenset(feature for feature, command in found.items() if command)

    def start(self, kubelet: Path) -> None:
        self._kubelet = kubelet
        if self._hooks.start:
            self._process = subprocess.Popen(
                shlex.split(self._hooks.start),
                env=self._environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S * self._scale)
        except subprocess.TimeoutExpired:
            raise Unanswered(f"it has not ended {STOP_S * self._scale:g} s after SIGTERM") from None
        self._process = None

    def restart(self) -> None:
        if self._process is None:
            self._run(self._hooks.restart)
        else:
            self.stop()
            assert self._kubelet is not None
            self.start(self._kubelet)

    def break_device(self) -> None:
        self._run(self._hooks.break_device)

    def mend_device(self) -> None:
        self._run(self._hooks.mend_device)

    def withdraw_device(self) -> None:
        self._run(self._hooks.withdraw_device)

    def hang(self) -> None:
        self._run(self._hooks.hang)

    def disturb_neighbour(self) -> None:
        raise Unanswered("there is no neighbour")

    def devices(self) -> tuple[Device, ...]:
        return ()

    def probe(self, path: str) -> tuple[int, str]:
        raise ConnectionError(f"nobody says where {path} is")

    def _environment(self) -> dict[str, str]:
        return {**os.environ, KUBELET: str(self._kubelet)}

    def _run(self, command: str) -> None:
        try:
            ran = subprocess.run(
                shlex.split(command),
                env=self._environment(),
                capture_output=True,
                text=True,
                timeout=COMMAND_S * self._scale,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unanswered(f"the hook {command!r} failed: {error}") from error
        if ran.returncode:
            last = (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise Unanswered(f"the hook {command!r} ended with code {ran.returncode}: {last}")
