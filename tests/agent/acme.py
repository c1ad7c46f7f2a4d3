# ruff: noqa: ARG002 - toys need little of what they are told
"""A vendor of native code, and hosts that have its library; for tests of processes of vendors.

What its calls do stands in files of the host, ``/acme/<call>``, one word each.
"""

import atexit
import contextlib
import ctypes
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NoReturn

import attrs
import pytest

from accelkit.agent.calls import Isolated
from accelkit.core.allocation import ContainerEdits, Edits, Grant
from accelkit.core.errors import StartOver
from accelkit.core.host import Host
from accelkit.core.model import Condition, Device, Event, Evidence, Unreadable
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import SupportsEvents, SupportsHealth, Vendor

SONAME = "libacme.so.1"
SOURCE = Path(__file__).with_name("acme.c")
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
        env = FrozenMap({"ACME": repr(grant.config)})
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
        case ["hang" | "crash" as function]:
            assert host is not None
            getattr(host.library(SONAME), f"acme_{function}")()
        case _:
            _act(word)


def _act(word: str) -> None:
    match word.split():
        case ["hang-alone", mark]:  # nobody else in the process has the interpreter meanwhile
            Path(mark).touch()
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
        case _:
            raise AssertionError(word)


def _connection() -> int:
    """The socket that leads to the agent."""
    return next(fd for fd, name in open_files("self").items() if name.startswith("socket:"))


def open_files(pid: int | str | None) -> dict[int, str]:
    """What a process has open."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # that of listing them
            found[int(fd.name)] = str(fd.readlink())
    return found


def acme_host(tmp_path: Path) -> Path:
    """The root of a host that has the library."""
    root = tmp_path / "host"
    (root / "usr/lib").mkdir(parents=True, exist_ok=True)
    (root / "acme").mkdir(exist_ok=True)
    shutil.copy(built_library(), root / "usr/lib" / SONAME)
    return root


def isolated(root: Path, **options: str) -> Isolated:
    return Isolated(kind=Acme, options=options, host=str(root))


def order(root: Path, **words: str) -> None:
    """What calls do from now on, by their names; an empty word: nothing strange."""
    for call, word in words.items():
        (root / "acme" / call).write_text(word)


@cache
def built_library() -> Path:
    """The library, compiled once in this process."""
    compiler = shutil.which("gcc") or no_compiler()
    folder = Path(mkdtemp(prefix="ak-acme-"))
    atexit.register(shutil.rmtree, folder)
    target = folder / SONAME
    flags = ("-shared", "-fPIC", "-nostdlib", "-O0")
    subprocess.run([compiler, *flags, "-o", str(target), str(SOURCE)], check=True)
    return target


def no_compiler() -> NoReturn:
    """End the test: where ./dev installs gcc, its absence is a failure."""
    if os.geteuid() == 0 and shutil.which("apt-get") is not None:
        pytest.fail("there is no gcc: run ./dev unit, which installs it")
    pytest.skip("there is no gcc to compile a native library with")
