"""The programs of Go that ours are measured beside, built once. Not here: measuring them."""

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache as once
from pathlib import Path

from tests.node.golang import cache, find_go
from tests.node.processes import NodeError

MODULE = Path(__file__).parent / "go"
NAMES = ("driver", "plugin")
BUILD_S = 900
"""The first time all of client-go is compiled: minutes on two cores."""


@once
def programs() -> Path | None:
    """The folder that has them all; None: Go is not to be had, which is said once."""
    folder = cache() / f"beside-{_digest()}"
    if folder.is_dir():
        return folder
    try:
        return _built(folder)
    except NodeError as error:
        _say(f"no Go, nothing is measured beside it: {error}")
        return None


def _digest() -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in MODULE.rglob("*") if path.is_file()):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _built(folder: Path) -> Path:
    """Build into *folder*, which gets its name when the last program is in it.

    Raises:
        NodeError: Go could not be installed, or failed.
    """
    go = find_go(_say)
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    environment = {
        "GOPATH": str(cache() / "go"),
        "GOCACHE": str(cache() / "go-build"),
        "GOTOOLCHAIN": "local",
        **os.environ,
        "GOBIN": str(partial),
    }
    _say("building a driver and a plugin in Go: minutes the first time")
    command = (str(go), "install", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "./...")
    try:
        done = subprocess.run(
            command,
            cwd=MODULE,
            env=environment,
            check=False,
            text=True,
            capture_output=True,
            timeout=BUILD_S,
        )
        if done.returncode:
            raise NodeError(f"go install in {MODULE} failed:\n{done.stderr[-1000:].strip()}")
        missing = [name for name in NAMES if not (partial / name).is_file()]
        if missing:
            raise NodeError(f"go install in {MODULE} made no {' '.join(missing)}")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NodeError(f"go install in {MODULE}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
