"""What runs for one check serves the next one, unless something was found."""

import asyncio
import gc
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from accelkit.conformance.checks import CHECKS
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.model import Unanswered, Verdict
from accelkit.conformance.report import Report
from accelkit.conformance.runner import Interrupted, Options, Select, run, run_check
from accelkit.conformance.sims.tasks import shared_loop
from accelkit.conformance.stage import Stages
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
            self.kubelet = kubelet
            go_on.wait()

        def kill(self) -> None:
            ends.append("killed")
            super().kill()

    check = next(check for check in CHECKS if check.id == "DR05")
    result = run_check(check, subject(Stuck, tmp_path), Options(deadline_scale=0.02))

    assert "the check has not ended after " in result.findings[0]
    assert ends == ["killed"]
    go_on.set()


class Ending(ToyClaims):
    """Writes down when it is killed."""

    ends: list[str]

    def kill(self) -> None:
        self.ends = [*getattr(self, "ends", ()), "killed"]
        super().kill()


def running(home: Path) -> tuple[ClaimsBench, Stages, Ending]:
    found = subject(Ending, home)
    stages = Stages(found)
    bench = ClaimsBench(found, 0, 1.0, stages)
    bench.up()
    assert isinstance(found.driver, Ending)
    return bench, stages, found.driver


def test_what_is_given_back_when_all_is_over_is_ended(tmp_path: Path) -> None:
    """The check of a run that was interrupted goes on for a while, and gave its driver back."""
    bench, stages, driver = running(tmp_path)

    stages.end()
    bench.leave()

    assert driver.ends == ["killed"]


def is_watched() -> bool:
    tasks = asyncio.all_tasks(shared_loop())
    return any("Staged.watch" in repr(task.get_coro()) for task in tasks)


def test_check_that_goes_on_is_told_that_all_was_taken_away(tmp_path: Path) -> None:
    """It was an AssertionError, which was printed where something was watched all the time."""
    bench, _, _ = running(tmp_path)
    looks, broken = list[bool](), list[str]()
    shared_loop().set_exception_handler(lambda _, context: broken.append(repr(context)))
    bench.spoil()

    def look() -> bool:
        looks.append(True)
        return bench.stage.setup.rich

    bench.watch(look)
    while not looks:
        time.sleep(0.01)

    bench.close()
    while is_watched():
        time.sleep(0.01)
    gc.collect()
    shared_loop().set_exception_handler(None)

    assert [one for one in broken if "Staged.watch" in one] == []
    with pytest.raises(Unanswered, match="what the check made is taken away"):
        bench.devices()


def test_interrupt_does_not_stop_a_check_that_tidies_up(tmp_path: Path) -> None:
    """It came in the midst of it, and directories and processes stayed."""

    class Interrupting(Ending):
        def kill(self) -> None:
            if not hasattr(self, "ends"):
                os.kill(os.getpid(), signal.SIGINT)
            super().kill()

    found = subject(Interrupting, tmp_path)

    with pytest.raises(Interrupted):
        run(found, select=Select(only=("DR10", "DR12")), options=Options(deadline_scale=0.3))

    assert isinstance(found.driver, Ending)
    assert found.driver.ends == ["killed"]
