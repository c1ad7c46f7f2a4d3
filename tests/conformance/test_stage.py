"""What runs for one check serves the next one, unless something was found."""

import threading
from pathlib import Path

import pytest

from accelkit.conformance.checks import CHECKS
from accelkit.conformance.model import Verdict
from accelkit.conformance.report import Report
from accelkit.conformance.runner import Options, Select, run, run_check
from tests.conformance.bad_claims import Literal
from tests.conformance.test_claim_checks import subject
from tests.conformance.toy_claims import ToyClaims

pytestmark = pytest.mark.timeout(60)


def checked(kind: type[ToyClaims], home: Path, *only: str) -> tuple[Report, int]:
    """The report, and how often the driver was started."""
    found = subject(kind, home)
    report = run(found, select=Select(only=only), options=Options(deadline_scale=0.3))
    driver = found.driver
    assert isinstance(driver, ToyClaims)
    return report, driver.starts


def test_checks_that_want_the_same_share_a_driver(tmp_path: Path) -> None:
    report, starts = checked(ToyClaims, tmp_path, "DR04", "DR05", "DR06", "CD01")

    assert [result.verdict for result in report.results] == [Verdict.PASS] * 4
    assert starts == 1


def test_check_that_wants_something_else_starts_it_anew_after_all_that_want_the_same(
    tmp_path: Path,
) -> None:
    report, starts = checked(ToyClaims, tmp_path, "DR04", "DR17", "DR18")

    assert [result.id for result in report.results] == ["DR04", "DR17", "DR18"]
    assert [result.verdict for result in report.results] == [Verdict.PASS] * 3
    assert starts == 2


def test_check_that_finds_something_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    report, starts = checked(Literal, tmp_path, "DR10", "DR12")

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.PASS]
    assert starts == 2


@pytest.mark.slow
def test_driver_that_leaves_files_behind_is_started_anew(tmp_path: Path) -> None:
    class Untidy(ToyClaims):
        def start(self, kubelet: Path) -> None:
            super().start(kubelet)
            self.cdi.mkdir(exist_ok=True)
            (self.cdi / "left").touch()

    report, starts = checked(Untidy, tmp_path, "DR07", "DR08")

    assert [result.verdict for result in report.results] == [Verdict.PASS] * 2
    assert starts == 2


def test_check_that_takes_too_long_to_begin_leaves_no_driver(tmp_path: Path) -> None:
    go_on, ends = threading.Event(), list[str]()

    class Stuck(ToyClaims):
        def start(self, kubelet: Path) -> None:
            go_on.wait()
            super().start(kubelet)

        def kill(self) -> None:
            ends.append("killed")
            super().kill()

    check = next(check for check in CHECKS if check.id == "DR05")
    result = run_check(check, subject(Stuck, tmp_path), Options(deadline_scale=0.02))

    assert "the check has not ended after 1.2 s" in result.findings[0]
    assert ends == ["killed"]
    go_on.set()
