"""Run a program of the host, bounded in time and output. Not here: which program, and why."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO

from accelkit.core.errors import AccessDenied, SourceError, SourceTimeout
from accelkit.core.host import Finished

OUTPUT_LIMIT = 1 << 20
"""Bytes of each of output and errors; the rest is dropped."""
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
"""All that a program sees, whatever the environment of this process."""

_NO_ROOT = 126
_ENTER = f"""
import os, sys
try:
    os.chroot(sys.argv[1])
except PermissionError:
    sys.exit({_NO_ROOT})
os.chdir("/")
os.execv(sys.argv[2], sys.argv[2:])
"""


def run_program(argv: Sequence[str], timeout_s: float, *, root: str = "") -> Finished:
    """Run *argv* and wait for it.

    Args:
        argv: The program by its absolute path, and its arguments; no shell is involved.
        timeout_s: The program and all that it started are killed then.
        root: The program sees this directory as ``/``; empty: the root of this process.

    Raises:
        SourceTimeout: It did not end in time.
        AccessDenied: It may not be started, or *root* may not be entered.
        SourceError: It cannot be started for another reason.
    """
    command = [sys.executable, "-I", "-S", "-c", _ENTER, root, *argv] if root else list(argv)
    deadline = time.monotonic() + timeout_s
    try:
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    except PermissionError as error:
        raise AccessDenied(f"{argv[0]}: this process may not run it", operation="run") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"{argv[0]} cannot be started: {error}", operation="run") from error
    with program:
        try:
            out, err = _outputs(program, deadline)
            code = program.wait(max(0.0, deadline - time.monotonic()))
        except BaseException as error:
            _kill_all(program)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise SourceTimeout(
                f"{argv[0]} did not end within {timeout_s:g} s", operation="run"
            ) from error
    if root and code == _NO_ROOT:
        raise AccessDenied(
            f"{argv[0]}: this process may not enter {root} as its root",
            operation="run",
            remedy="grant the capability SYS_CHROOT",
        )
    return Finished(code=code, out=out, err=err)


def _outputs(program: subprocess.Popen[bytes], deadline: float) -> tuple[str, str]:
    """Output and errors until the program closed both or ended."""
    assert program.stdout is not None
    assert program.stderr is not None
    kept: dict[IO[bytes], bytearray] = {program.stdout: bytearray(), program.stderr: bytearray()}
    with selectors.DefaultSelector() as ready:
        for pipe in kept:
            ready.register(pipe, selectors.EVENT_READ, pipe)
        while ready.get_map():
            # What the program left running may keep a pipe open, or fill it, for ever.
            ended = program.poll() is not None
            found = ready.select(0 if ended else min(0.05, max(0.0, deadline - time.monotonic())))
            if ended and all(len(kept[key.data]) >= OUTPUT_LIMIT for key, _ in found):
                break
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(program.args, 0)
            for key, _ in found:
                if not _take(key.fd, kept[key.data]):
                    ready.unregister(key.fd)
    out, err = (bytes(part).decode(errors="replace") for part in kept.values())
    return out, err


def _take(fd: int, kept: bytearray) -> bool:
    part = os.read(fd, 1 << 16)
    kept += part[: OUTPUT_LIMIT - len(kept)]
    return bool(part)


def _kill_all(program: subprocess.Popen[bytes]) -> None:
    # Once it has been waited for, its number may belong to somebody else.
    if program.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
