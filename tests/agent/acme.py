# ruff: noqa: ARG002 - toys need little of what they are told
"""A vendor of native code, for tests of processes of vendors. It loads no more than it needs.

What its calls do stands in files of the host, ``/acme/<call>``, a word or a few each.
"""

import ctypes
import logging
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import attrs

from accelkit.agent.calls import Isolated
from accelkit.core.allocation import ContainerEdits, Edits, Grant
from accelkit.core.errors import StartOver
from accelkit.core.host import Host
from accelkit.core.model import Condition, Device, Event, Evidence, Unreadable
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import SupportsEvents, SupportsHealth, Vendor
from tests.open_files import open_files

SONAME = "libacme.so.1"
OF_LIBRARY = {
    *("hang", "crash", "abort", "exit", "signal", "overflow", "eat"),
    *("scribble", "close", "fork", "threads", "mask", "leave", "drop"),
}
"""Functions of the library that do what they should not."""
log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class AcmeOptions:
    bad: str = ""
    """What making it does."""


@attrs.frozen(kw_only=True)
class AcmeClaim:
    level: int = 0


class Acme(Vendor, SupportsHealth, SupportsEvents):
    """Has as many devices as its library counts."""

    name = "acme"
    domain = "acme.example.com"
    native = True
    options = AcmeOptions
    claim_config = AcmeClaim
    attributes = {"pid": int}  # noqa: RUF012 - a declaration

    def __init__(self, options: AcmeOptions) -> None:
        super().__init__(options)
        act(options.bad, None)

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self._do(host, "discover")
        for number in range(host.library(SONAME).acme_count()):
            yield self.device(f"a{number}", kind="toy", attributes={"pid": os.getpid()})

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        self._do(host, "conditions")
        return ()

    def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
        yield Event(subject="a0", code="heard", source="acme")
        self._do(host, "listen")

    def edits(self, host: Host, grant: Grant) -> Edits:
        self._do(host, "edits")
        length = int(host.read("/acme/length")) if host.exists("/acme/length") else 0
        env = FrozenMap({"ACME": repr(grant.config) + "x" * length})
        return Edits(each=FrozenMap({g.device.id: ContainerEdits(env=env) for g in grant.granted}))

    @staticmethod
    def _do(host: Host, call: str) -> None:
        if host.exists(f"/acme/{call}"):
            act(host.read(f"/acme/{call}"), host)


def act(word: str, host: Host | None) -> None:
    """Do what *word* says."""
    match word.split():
        case []:
            return
        case ["mark", path, *rest]:
            Path(path).touch()
            act(" ".join(rest), host)
        case [*functions] if set(functions) <= OF_LIBRARY:
            assert host is not None
            for function in functions:
                getattr(host.library(SONAME), f"acme_{function}")()
        case _:
            _act(word)


def _act(word: str) -> None:
    match word.split():
        case ["hang-alone"]:  # nobody else in the process has the interpreter meanwhile
            ctypes.PyDLL(None).sleep(1000)
        case ["exit", code]:
            os._exit(int(code))
        case ["raise"]:
            raise ZeroDivisionError("a bug")
        case ["sleep", seconds]:
            time.sleep(float(seconds))
        case ["start-over"]:
            raise StartOver("library and driver differ", vendor="acme", remedy="reload the driver")
        case ["log"]:
            log.warning("acme speaks", extra={"device": "a0"})
        case ["garbage"]:
            os.write(_connection(), b"\xff" * 64)
        case ["nested"]:
            os.write(_connection(), (1 << 20).to_bytes(4, "big") + b"[" * (1 << 20))
        case ["half"]:
            os.write(_connection(), (100).to_bytes(4, "big") + b'{"id":')
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            raise AssertionError(word)


def _connection() -> int:
    """The socket that leads to the agent."""
    return next(fd for fd, name in open_files("self").items() if name.startswith("socket:"))


def isolated(root: Path, **options: str) -> Isolated:
    return Isolated(kind=Acme, options=options, host=str(root))
