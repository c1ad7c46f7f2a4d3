"""Who can be checked, and how they are reached."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from accelkit.conformance.command_driver import CommandDriver, Hooks
from accelkit.conformance.intree import subject_of
from accelkit.conformance.model import Feature, Level, Unanswered, Verdict
from accelkit.conformance.runner import Select, run
from accelkit.conformance.subjects import DriverSubject, PluginSubject
from accelkit.core.errors import ConfigError
from accelkit.testing.simulate import simulate
from accelkit.vendors.sim.machine import SimMachine
from accelkit.vendors.sim.vendor import Sim

DISCOVERY = Select(only=("D01", "D03", "D12"))


def driver_of(directory: Path, hooks: Hooks) -> DriverSubject:
    return DriverSubject(
        resource="acme.test/npu", driver=CommandDriver(hooks), directory=directory, cdi=directory
    )


def test_product_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ConfigError, match="product h999: is none of nvidia"):
        subject_of("nvidia", product="h999")


def test_vendor_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ConfigError, match="vendor acme: is not installed"):
        subject_of("acme")


def test_host_is_read_instead_of_fresh_machines(tmp_path: Path) -> None:
    simulate("sim", None, 3, str(tmp_path))

    report = run(subject_of("sim", host=str(tmp_path)), select=DISCOVERY)

    assert [r.verdict for r in report.results] == [
        Verdict.PASS,
        Verdict.NOT_APPLICABLE,
        Verdict.PASS,
    ]
    assert report.failed == ()


def test_host_without_hardware_is_a_no(tmp_path: Path) -> None:
    report = run(subject_of("sim", host=str(tmp_path)), select=Select(only=("I03",)))

    assert report.failed[0].findings == ("no device is found (no problem is reported)",)


@pytest.mark.parametrize(
    "fault, can",
    [
        ("fault UNIT CODE SEVERITY", True),
        ("fault UNIT CODE [SEVERITY]", True),
        ("fault UNIT CODE", False),
        ("fault UNIT CODE SEVERITY WHERE", False),
    ],
)
def test_verb_of_a_machine_that_is_used_otherwise_is_none_of_the_checks(
    monkeypatch: pytest.MonkeyPatch, fault: str, can: bool
) -> None:
    """A machine whose faults had a code alone failed seven checks by "takes no FATAL"."""
    monkeypatch.setattr(SimMachine, "verbs", {"fault": fault, "heal": "heal UNIT"})

    assert (Feature.FAULT in PluginSubject(vendor=Sim).features(Level.L1)) is can


def test_driver_can_what_the_commands_that_are_named_do(tmp_path: Path) -> None:
    word = f"{sys.executable} -c pass"
    made = driver_of(tmp_path, Hooks(restart=word, break_device=word, mend_device=word))

    assert made.features(Level.L1) == frozenset()
    assert made.features(Level.L2) == {
        Feature.SOCKETS,
        Feature.CDI,
        Feature.RESTART,
        Feature.BREAK,
    }


def test_checks_of_plugins_do_not_apply_to_drivers(tmp_path: Path) -> None:
    report = run(driver_of(tmp_path, Hooks()), select=DISCOVERY)

    assert {r.verdict for r in report.results} == {Verdict.NOT_APPLICABLE}


def test_hook_that_fails_says_what_it_said() -> None:
    hook = f"{sys.executable} -c 'raise SystemExit(\"no such device\")'"
    driver = CommandDriver(Hooks(break_device=hook))

    with pytest.raises(Unanswered, match="ended with code 1: no such device"):
        driver.break_device()


def test_hook_that_is_not_there_is_told() -> None:
    with pytest.raises(Unanswered, match="failed"):
        CommandDriver(Hooks(hang="/nonexistent/hook")).hang()


def test_driver_that_is_started_by_command_is_told_where_the_kubelet_is(tmp_path: Path) -> None:
    program = "import os, time; open(os.environ['ACCELKIT_KUBELET'] + '/here', 'w'); time.sleep(60)"
    driver = CommandDriver(Hooks(start=f'{sys.executable} -c "{program}"'))
    driver.start(tmp_path)
    try:
        while not (tmp_path / "here").exists():
            time.sleep(0.01)
        found = driver.footprint()
        driver.restart()
        driver.stop()
    finally:
        driver.kill()

    assert driver.features == {Feature.RESTART, Feature.STOP, Feature.PROCESS}
    assert (found.threads, found.files > 2, found.memory > 1 << 20) == (1, True, True)


def test_vendor_that_nobody_installed_has_no_sockets() -> None:
    class Mine(Sim):
        """Like the installed one, and not it."""

    assert PluginSubject(vendor=Sim).features(Level.L2) >= {Feature.SOCKETS, Feature.TOLD}
    assert not PluginSubject(vendor=Mine).features(Level.L2) & {Feature.SOCKETS}


@pytest.mark.slow
def test_directory_in_which_the_suite_was_loaded_may_go(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = (
        "import os, sys, accelkit.conformance.bench; os.chdir('/'); os.rmdir(sys.argv.pop(1));"
        "from accelkit.cli.main import main; sys.exit(main())"
    )
    words = ["conformance", "run", "sim", "--only", "I03"]

    ran = subprocess.run(
        [sys.executable, "-c", program, gone, *words],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 pass" in ran.stdout
