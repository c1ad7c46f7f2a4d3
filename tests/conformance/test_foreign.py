"""Somebody else's device plugin, a process that the suite reaches by commands alone."""

import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accelkit.conformance.command_driver import CommandDriver, Hooks
from accelkit.conformance.model import Unanswered, Verdict
from accelkit.conformance.report import Report
from accelkit.conformance.runner import Options, Select, run
from accelkit.conformance.socket_bench import sweep
from accelkit.conformance.subjects import DriverSubject
from tests.conformance.foreign_plugin import RESOURCE

PASS, FAIL = Verdict.PASS, Verdict.FAIL
IMPATIENT = 0.3


def checked(tmp_path: Path, how: str, *only: str, scale: float = 1.0) -> Report:
    kubelet, state = tmp_path / "k", tmp_path / "s"
    state.mkdir()
    program = f"{sys.executable} -m tests.conformance.foreign_plugin"
    hooks = Hooks(
        start=f"{program} {how} {kubelet} {state}",
        break_device=f"touch {state / 'broken'}",
        mend_device=f"rm {state / 'broken'}",
    )
    driver = CommandDriver(hooks, scale)
    subject = DriverSubject(resource=RESOURCE, driver=driver, directory=kubelet)
    options = Options(deadline_scale=scale)
    report = run(subject, select=Select(only=only), options=options)
    assert not (state / "broken").exists()
    return report


@contextmanager
def listening(path: Path) -> Generator[None, None, None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


def verdicts(report: Report) -> dict[str, Verdict]:
    return {result.id: result.verdict for result in report.results}


@pytest.mark.slow
def test_plugin_that_keeps_the_rules_passes_though_checks_before_broke_its_devices(
    tmp_path: Path,
) -> None:
    report = checked(tmp_path, "plain", "DP02", "DP08", "DP09", "DP10", "DP11", "DP18", "T10")

    assert verdicts(report) == {
        **dict.fromkeys(("DP02", "DP08", "DP09", "DP10", "DP11", "DP18"), PASS),
        "T10": Verdict.NOT_APPLICABLE,
    }
    assert not report.badges  # the one of device plugins takes more than these


@pytest.mark.slow
def test_plugin_that_registers_once_is_caught(tmp_path: Path) -> None:
    report = checked(tmp_path, "careless", "DP04", "DP05", "DP21", scale=IMPATIENT)

    assert verdicts(report) == {"DP04": FAIL, "DP05": PASS, "DP21": FAIL}


@pytest.mark.slow
def test_report_says_how_the_driver_ended_and_what_it_said_last(tmp_path: Path) -> None:
    report = checked(tmp_path, "", "DP07")  # a driver that has ended is not waited for

    (finding,) = report.results[0].findings
    assert finding.startswith("no list of devices came (not refused); ")
    assert "has ended with code 1" in finding
    assert "TypeError: main() missing 1 required positional argument" in finding


def test_command_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        Unanswered, match=r"'/nonexistent/driver' cannot be started: .*No such file"
    ):
        CommandDriver(Hooks(start="/nonexistent/driver")).start(tmp_path)


def test_what_the_command_started_ends_with_it(tmp_path: Path) -> None:
    there = tmp_path / "there"
    child = f"import time, pathlib; pathlib.Path({str(there)!r}).touch(); time.sleep(60)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    script = tmp_path / "driver.py"
    script.write_text(program)
    driver = CommandDriver(Hooks(start=f"{sys.executable} {script}"))
    driver.start(tmp_path)
    while not there.exists():
        time.sleep(0.01)
    group = driver.pid
    driver.kill()

    assert group is not None
    while living(group):
        time.sleep(0.01)


def living(group: int) -> bool:
    """Whether a process of *group* runs."""
    for found in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = found.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state != "Z":
            return True
    return False


def test_sockets_of_killed_drivers_are_removed_and_living_ones_stay(tmp_path: Path) -> None:
    for name in ("device-plugins", "plugins_registry"):
        (tmp_path / name).mkdir()
    dead, living_one = tmp_path / "plugins_registry" / "d", tmp_path / "device-plugins" / "l"
    with listening(dead):
        pass
    with listening(living_one):
        sweep(tmp_path)

        assert not dead.exists()
        assert living_one.exists()
