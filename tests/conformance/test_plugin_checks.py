"""Each check of a plugin catches the plugin that breaks its rule, and none that does not."""

import re
from collections.abc import Iterator

import pytest

from accelkit.conformance.checks import CHECKS, AnyCheck
from accelkit.conformance.model import Level, Verdict
from accelkit.conformance.runner import run_check
from accelkit.conformance.subjects import PluginSubject
from accelkit.vendors.sim.vendor import Sim
from tests.conformance import bad_calls, bad_partitions, bad_vendors

CRASHED = re.compile(
    r"^\w+(Error|Exception): .* \(at \w+\.py:\d+ \w+, \w+\.py:\d+ |the check has not"
)
IN_PROCESS = [check for check in CHECKS if check.level is Level.L1]

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    bad_calls.Leaky.drain()
    bad_partitions.Early.late.clear()


def test_every_check_of_a_plugin_has_a_plugin_that_it_catches() -> None:
    assert bad_vendors.BAD.keys() == {check.id for check in IN_PROCESS}


@pytest.mark.parametrize("check", IN_PROCESS, ids=lambda check: check.id)
def test_a_plugin_that_breaks_the_rule_is_caught(check: AnyCheck) -> None:
    result = run_check(check, bad_vendors.subject(bad_vendors.BAD[check.id], check.id))

    assert result.verdict is Verdict.FAIL
    assert not [f for f in result.findings if CRASHED.search(f)]


@pytest.mark.parametrize(
    "ident, vendor",
    bad_vendors.MORE,
    ids=lambda told: told if isinstance(told, str) else told.__name__,
)
def test_a_plugin_that_breaks_it_in_another_way_is_caught(ident: str, vendor: type[Sim]) -> None:
    check = next(check for check in IN_PROCESS if check.id == ident)

    result = run_check(check, bad_vendors.subject(vendor, ident))

    assert result.verdict is Verdict.FAIL
    assert not [f for f in result.findings if CRASHED.search(f)]


@pytest.mark.parametrize("check", IN_PROCESS, ids=lambda check: check.id)
def test_a_plugin_that_keeps_the_rule_is_not(check: AnyCheck) -> None:
    result = run_check(check, bad_vendors.subject(Sim, check.id))

    assert (result.verdict, result.findings) == (Verdict.PASS, ())


@pytest.mark.parametrize(
    "ident, vendor, verdict",
    [
        ("P02", Sim, Verdict.NOT_APPLICABLE),
        ("P05", Sim, Verdict.PASS),
        ("P05", bad_partitions.OneWay, Verdict.FAIL),
        ("P10", Sim, Verdict.PASS),
        ("P10", bad_partitions.Nodding, Verdict.FAIL),
    ],
)
def test_modes_are_looked_at_where_they_alone_cut_devices(
    ident: str, vendor: type[Sim], verdict: Verdict
) -> None:
    check = next(check for check in IN_PROCESS if check.id == ident)

    result = run_check(check, PluginSubject(vendor=vendor, product="modal"))

    assert result.verdict is verdict
