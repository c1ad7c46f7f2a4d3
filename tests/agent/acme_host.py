"""Hosts that have the library of the vendor in acme.py, compiled."""

import atexit
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NoReturn

import pytest

from tests.agent.acme import SONAME

SOURCE = Path(__file__).with_name("acme.c")


def acme_host(tmp_path: Path) -> Path:
    """The root of a host that has the library."""
    root = tmp_path / "host"
    (root / "usr/lib").mkdir(parents=True, exist_ok=True)
    (root / "acme").mkdir(exist_ok=True)
    shutil.copy(built_library(), root / "usr/lib" / SONAME)
    return root


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
