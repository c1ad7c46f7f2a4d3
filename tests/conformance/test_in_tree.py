"""The plugins that come with accelkit pass every check that applies to them."""

import pytest

from accelkit.conformance.intree import IN_TREE, subject_of
from accelkit.conformance.model import Badge
from accelkit.conformance.render import as_text
from accelkit.conformance.runner import Options, Select, run

IN_PROCESS = Select(only=("L1",))
WITH_CLAIMS = ("dra", "extended", "AG24")
OVER_SOCKETS = Select(only=("L2",), never=WITH_CLAIMS)


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "simset" else n for n in IN_TREE]
)
def test_plugin_passes_in_process(name: str) -> None:
    report = run(subject_of(name), select=IN_PROCESS)

    assert report.failed == (), as_text([report])
    assert report.badges[Badge.CORE]


@pytest.mark.timeout(180)
def test_simulated_plugin_passes_over_sockets() -> None:
    report = run(subject_of("sim"), select=OVER_SOCKETS, options=Options(jobs=2))

    assert report.failed == (), as_text([report])
    assert report.badges[Badge.DEVICE_PLUGIN]
    assert report.badges[Badge.AGENT]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_simulated_plugin_passes_with_claims() -> None:
    report = run(subject_of("sim"), select=Select(only=WITH_CLAIMS), options=Options(jobs=4))

    assert report.failed == (), as_text([report])
    assert report.badges[Badge.DRA]
    assert report.badges[Badge.EXTENDED]
