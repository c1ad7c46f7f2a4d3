"""Each check of DRA drivers catches the driver that breaks its rule, and none that does not."""

import re
from pathlib import Path

import pytest

from accelkit.conformance.checks import CHECKS, AnyCheck
from accelkit.conformance.model import Arena, Verdict
from accelkit.conformance.runner import Options, run_check
from accelkit.conformance.subjects import DriverSubject
from tests.conformance import bad_claims, bad_operations, bad_records, bad_slices
from tests.conformance.toy_answers import DRIVER
from tests.conformance.toy_claims import ToyClaims

WITH_CLAIMS = [check for check in CHECKS if check.arena is Arena.CLAIMS]
CRASHED = re.compile(r"^\w+(Error|Exception|Timeout): .* \(at |the check has not ended")
"""What no check is to find: something went wrong on the way to its rule."""

IMPATIENT = Options(deadline_scale=0.2)
"""A driver that breaks a rule by doing nothing is waited for in vain."""
MANY_STARTS = {"SL17"}
"""Checks that start drivers one after another, which takes its time where much else runs."""
BAD = {**bad_claims.BAD, **bad_slices.BAD, **bad_records.BAD, **bad_operations.BAD}
MORE = (("SL18", bad_slices.Absent), *bad_records.MORE)
"""Other ways to break a rule."""

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]


def subject(kind: type[ToyClaims], home: Path) -> DriverSubject:
    driver = kind(home)
    return DriverSubject(dra=DRIVER, driver=driver, cdi=driver.cdi)


def test_every_check_of_claims_has_a_driver_that_it_catches() -> None:
    assert BAD.keys() == {check.id for check in WITH_CLAIMS}


@pytest.mark.parametrize(
    "ident, kind",
    [*BAD.items(), *MORE],
    ids=lambda told: told if isinstance(told, str) else told.__name__,
)
def test_a_driver_that_breaks_the_rule_is_caught(
    ident: str, kind: type[ToyClaims], tmp_path: Path
) -> None:
    check = next(check for check in WITH_CLAIMS if check.id == ident)

    options = Options() if ident in MANY_STARTS else IMPATIENT
    result = run_check(check, subject(kind, tmp_path), options)

    assert result.verdict is Verdict.FAIL
    assert not [f for f in result.findings if CRASHED.search(f)]


@pytest.mark.parametrize("check", WITH_CLAIMS, ids=lambda check: check.id)
def test_a_driver_that_keeps_the_rule_is_not_caught(check: AnyCheck, tmp_path: Path) -> None:
    result = run_check(check, subject(ToyClaims, tmp_path))

    assert (result.verdict, result.findings) == (Verdict.PASS, ())
