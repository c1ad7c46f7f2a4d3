"""Each check over sockets catches the driver that breaks its rule, and none that does not."""

import re
from pathlib import Path

import pytest

from accelkit.conformance.checks import CHECKS, AnyCheck
from accelkit.conformance.model import Arena, Verdict
from accelkit.conformance.runner import Options, run_check
from tests.conformance import bad_drivers
from tests.conformance.toy_driver import Toy

OVER_SOCKETS = [check for check in CHECKS if check.arena is Arena.SOCKETS]
CRASHED = re.compile(r"^\w+(Error|Exception|Timeout): .* \(at |the check has not ended")
"""What no check is to find: something went wrong on the way to its rule."""
IMPATIENT = Options(deadline_scale=0.2)
"""A driver that breaks a rule by doing nothing is waited for in vain."""

pytestmark = [pytest.mark.timeout(60), pytest.mark.slow]


def test_every_check_over_sockets_has_a_driver_that_it_catches() -> None:
    assert bad_drivers.BAD.keys() == {check.id for check in OVER_SOCKETS}


@pytest.mark.parametrize("check", OVER_SOCKETS, ids=lambda check: check.id)
def test_a_driver_that_breaks_the_rule_is_caught(check: AnyCheck, tmp_path: Path) -> None:
    result = run_check(check, bad_drivers.subject(bad_drivers.BAD[check.id], tmp_path), IMPATIENT)

    assert result.verdict is Verdict.FAIL
    assert not [f for f in result.findings if CRASHED.search(f)]


@pytest.mark.parametrize("check", OVER_SOCKETS, ids=lambda check: check.id)
def test_a_driver_that_keeps_the_rule_is_not(check: AnyCheck, tmp_path: Path) -> None:
    result = run_check(check, bad_drivers.subject(Toy, tmp_path))

    assert (result.verdict, result.findings) == (Verdict.PASS, ())
