"""One line in an author's test module runs every check."""

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

GOOD = """
from accelkit.conformance.pytest_plugin import conforms
from accelkit.conformance.runner import Select
from accelkit.vendors.sim.vendor import Sim

test_sim = conforms(Sim, select=Select(only=("I01", "I06", "D12")))
"""
CLAIMS = """
from accelkit.conformance import stage
from accelkit.conformance.pytest_plugin import conforms
from accelkit.conformance.runner import Select
from accelkit.vendors.sim.vendor import Sim

test_sim = conforms(Sim, select=Select(only=("DR04", "DR08", "SL07")))
opened = []
first = stage.Stage.open

def noted(self):
    opened.append(self)
    first(self)

stage.Stage.open = noted

def test_that_all_of_them_shared_what_ran():
    assert len(opened) == 1
"""
BAD = """
import pytest
from accelkit.conformance.subjects import PluginSubject
from accelkit.conformance.runner import Select
from accelkit.vendors.sim.vendor import Sim

class Nameless(Sim):
    def discover(self, host):
        for device in super().discover(host):
            yield __import__("attrs").evolve(device, product="x [1]", attributes={"colour": "red"})

@pytest.mark.accelkit(PluginSubject(vendor=Nameless), select=Select(only=("D11", "D12")))
def test_mine(accelkit_check):
    accelkit_check()
"""


def ran(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:xdist", "-rsx", *words)


def test_each_check_is_a_test_and_what_does_not_apply_is_skipped(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_acme=GOOD)

    result = ran(pytester, "--strict-markers", "-v")

    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        ["*test_sim?D12? PASSED*", "*not applicable: nothing says how a machine with partitions*"]
    )


def test_checks_of_claims_share_an_agent(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_acme=CLAIMS)

    ran(pytester).assert_outcomes(passed=4)


def test_what_must_hold_fails_with_its_findings_and_what_should_is_expected(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_mine=BAD)

    result = ran(pytester)

    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["*D12: Attributes*", "*attribute 'colour' is not declared*"])


def test_fixture_without_a_subject_says_what_is_missing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(accelkit_check):\n    accelkit_check()\n")

    result = ran(pytester)

    result.stdout.fnmatch_lines(["*mark it with @pytest.mark.accelkit(SUBJECT)*"])


def test_loading_the_plugin_loads_nothing_else_of_accelkit(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n"
        "def test_it():\n"
        "    names = {n for n in sys.modules if n.startswith('accelkit.')}\n"
        "    assert names == {'accelkit.conformance', 'accelkit.conformance.pytest_plugin'}\n"
        "    assert 'grpc' not in sys.modules\n"
    )

    ran(pytester).assert_outcomes(passed=1)
