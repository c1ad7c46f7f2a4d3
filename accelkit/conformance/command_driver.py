"""A driver that somebody else wrote, reached by commands. Not here: what it must do."""

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO

import attrs

from accelkit.conformance.footprint import Footprint, footprint_of
from accelkit.conformance.model import Feature, Unanswered
from accelkit.conformance.setups import Setup, Site
from accelkit.conformance.subjects import Blocks
from accelkit.core.kube import Json
from accelkit.core.model import Device

KUBELET = "ACCELKIT_KUBELET"
"""Set for every command: the directory that stands for /var/lib/kubelet."""
KUBECONFIG = "ACCELKIT_KUBECONFIG"
"""Set for drivers of claims: how the API server is reached."""
NODE = "ACCELKIT_NODE"
"""Set for drivers of claims: the name of their node."""
COMMAND_S = 60.0
STOP_S = 30.0
_TAIL = 4096


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
    """Lets one device vanish, until the driver starts again."""
    hang: str = ""
    """Lets whatever stands behind the driver not answer any more, until it starts again."""


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
        self._site: Site | None = None
        self._broken = False
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of what *start* began, and of its group of processes; None: nothing runs."""
        return self._process.pid if self._process is not None else None

    @property
    def features(self) -> frozenset[Feature]:
        hooks = self._hooks
        found = {
            Feature.RESTART: hooks.start or hooks.restart,
            Feature.STOP: hooks.start,
            Feature.PROCESS: hooks.start,
            Feature.BREAK: hooks.break_device and hooks.mend_device,
            Feature.WITHDRAW: hooks.withdraw_device,
            Feature.HANG: hooks.hang,
        }
        return frozenset(feature for feature, command in found.items() if command)

    def furnish(self, site: Site, setup: Setup) -> None:  # noqa: ARG002 - nobody could tell it
        self._site = site

    def start(self, kubelet: Path) -> None:
        self._kubelet = kubelet
        if not self._hooks.start:
            return
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the driver runs
        try:
            self._process = subprocess.Popen(
                shlex.split(self._hooks.start),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,  # what the command starts ends with it
            )
        except OSError as error:
            self._log.close()
            raise Unanswered(f"{self._hooks.start!r} cannot be started: {error}") from error

    def kill(self) -> None:
        if self._process is not None:
            self._end(self._process)
        if self._broken:
            self.mend_device()

    def said(self) -> str:
        if self._process is None or self._log is None:
            return ""
        code = self._process.poll()
        ended = "" if code is None else f"; {self._hooks.start!r} has ended with code {code}"
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _TAIL))
        lines = self._log.read().decode("utf-8", "replace").splitlines()[-2:]
        return "".join((ended, *(f"; {line[:300]}" for line in lines)))

    def ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S * self._scale)
        except subprocess.TimeoutExpired:
            raise Unanswered(f"it has not ended {STOP_S * self._scale:g} s after SIGTERM") from None
        self._end(self._process)

    def restart(self) -> None:
        if self._process is None:
            self._run(self._hooks.restart)
        else:
            self.stop()
            assert self._kubelet is not None
            self.start(self._kubelet)

    def break_device(self) -> None:
        self._broken = True
        self._run(self._hooks.break_device)

    def mend_device(self) -> None:
        self._broken = False
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

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        """End it, and whatever it has started and left behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._process = None
        if self._log is not None:
            self._log.close()

    # What it offers no feature for.

    def withdraw_all(self) -> None:
        raise Unanswered("not all devices can be taken away")

    def bring_back(self) -> None:
        raise Unanswered("no device was taken away")

    def renew(self, *, valid: bool) -> None:  # noqa: ARG002 - neither
        raise Unanswered("its configuration cannot be changed")

    def afresh(self) -> None:
        """It is started in no other way."""

    def footprint(self) -> Footprint:
        if self._process is None:
            raise ConnectionError("nobody says which process it is")
        return footprint_of(self._process.pid)

    def endanger(self) -> None:
        raise Unanswered("it has no plugins")

    def logged(self) -> list[Json]:
        raise Unanswered("nobody says what it logs")

    @property
    def cdi(self) -> Path | None:
        return None  # the subject knows

    def twin(self) -> "CommandDriver":
        raise Unanswered("there is no second instance")

    def blocks(self) -> Blocks:
        raise Unanswered("nobody says what can be configured")

    def set_to(self) -> str:
        return ""

    def stick(self) -> None:
        raise Unanswered("no release can be made to fail")

    def loosen(self) -> None:
        raise Unanswered("no release can be made to fail")

    def records(self) -> Path:
        raise Unanswered("nobody says where claims are written down")

    def earlier(self, record: Json) -> Json:  # noqa: ARG002 - there is none
        raise Unanswered("nobody says what earlier versions wrote")

    def classes(self) -> tuple[Json, ...]:
        return ()

    def _environment(self) -> dict[str, str]:
        there = (
            {}
            if self._site is None
            else {
                KUBECONFIG: str(self._site.kubeconfig),
                NODE: self._site.node,
            }
        )
        return {**os.environ, KUBELET: str(self._kubelet), **there}

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
