"""Somebody else's DRA driver, a process that the suite reaches by commands and its environment."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accelkit.conformance.command_driver import CommandDriver, Hooks
from accelkit.conformance.model import Badge, Verdict
from accelkit.conformance.report import Report
from accelkit.conformance.runner import Select, run
from accelkit.conformance.subjects import DriverSubject
from tests.conformance.toy_answers import DRIVER

PROGRAM = f"{sys.executable} -m tests.conformance.foreign_driver"


def checked(tmp_path: Path, hooks: Hooks, *only: str) -> Report:
    state = tmp_path / "s"
    state.mkdir(exist_ok=True)
    subject = DriverSubject(
        dra=DRIVER, driver=CommandDriver(hooks), directory=tmp_path / "k", cdi=state / "cdi"
    )
    return run(subject, select=Select(only=only))


def verdicts(report: Report) -> dict[str, Verdict]:
    return {result.id: result.verdict for result in report.results}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_driver_that_is_started_by_a_command_is_checked(tmp_path: Path) -> None:
    """Its record ends with its process, which is what DR14 is about."""
    broken = tmp_path / "s" / "broken"
    hooks = Hooks(
        start=f"{PROGRAM} {tmp_path / 's'}",
        break_device=f"touch {broken}",
        mend_device=f"rm -f {broken}",
    )
    report = checked(tmp_path, hooks, "DR01", "DR04", "DR14", "DR21", "CD04", "SL12", "DR11")

    assert verdicts(report) == {
        **dict.fromkeys(("CD04", "DR01", "DR04", "DR21", "SL12"), Verdict.PASS),
        "DR11": Verdict.NOT_APPLICABLE,
        "DR14": Verdict.FAIL,
    }
    assert report.badges == {Badge.DRA: False}
    assert report.name == DRIVER


@contextmanager
def running(tmp_path: Path) -> Generator[None, None, None]:
    words = [*PROGRAM.split(), str(tmp_path / "s"), str(tmp_path / "k")]
    process = subprocess.Popen(words)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait() == 0


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_driver_that_runs_already_finds_each_kubelet_and_server(tmp_path: Path) -> None:
    """DR21 needs two releases, one after the other at the same address."""
    (tmp_path / "s").mkdir()
    with running(tmp_path):
        report = checked(tmp_path, Hooks(), "DR21", "SL07")

    assert verdicts(report) == {"DR21": Verdict.PASS, "SL07": Verdict.PASS}
