"""The plugins that come with accelkit pass every check that applies to them."""

from collections.abc import Iterable, Iterator

import pytest
from _pytest.mark import ParameterSet

from accelkit.conformance.bench import PluginBench
from accelkit.conformance.checks import CHECKS
from accelkit.conformance.checks.partitioning import cuttable
from accelkit.conformance.intree import IN_TREE, subject_of
from accelkit.conformance.kinds import kinds
from accelkit.conformance.model import Arena
from accelkit.conformance.render import as_text
from accelkit.conformance.runner import Options, Select, run
from accelkit.core.vendor import SupportsPartitioning

WITH_CLAIMS = tuple(check.id for check in CHECKS if check.arena is Arena.CLAIMS)
OF_CODE = ("B08", "C", "D10", "I03", "L06")
"""What takes longest, and says of one product what it says of all: threads, processes, leaks, many
devices, rubbish."""


def products(name: str) -> tuple[str, ...]:
    """All that there is of a plugin's own machine."""
    machine = subject_of(name).simulated
    assert machine is not None
    return machine.products


def others() -> Iterator[tuple[str, str]]:
    """Every product but the first of each plugin."""
    return ((name, product) for name in IN_TREE for product in products(name)[1:])


def slow_but_sim(names: Iterable[str]) -> Iterator[ParameterSet]:
    """Without the others the suite itself is tried, too, where there is little time."""
    for name in names:
        yield pytest.param(name, marks=() if name == "sim" else pytest.mark.slow)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [*slow_but_sim(IN_TREE)])
def test_plugin_passes_in_process(name: str) -> None:
    first = subject_of(name, product=products(name)[0])

    report = run(first, select=Select(only=("L1",)))

    assert report.failed == (), as_text([report])
    assert all(report.badges.values())


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name, product", [*others()])
def test_plugin_passes_with_each_product(name: str, product: str) -> None:
    report = run(subject_of(name, product=product), select=Select(only=("L1",), never=OF_CODE))

    assert report.failed == (), as_text([report])
    assert all(report.badges.values())


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", IN_TREE)
def test_what_a_plugin_says_that_it_can_do_some_product_can(name: str) -> None:
    """What no product can do, no check of a product looks at."""
    subject = subject_of(name)
    bench = PluginBench(subject, 0, 1.0)
    try:
        assert list(kinds(bench))
        if issubclass(subject.vendor, SupportsPartitioning):
            assert next(cuttable(bench))
    finally:
        bench.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [*slow_but_sim(IN_TREE)])
def test_plugin_passes_over_sockets(name: str) -> None:
    report = run(
        subject_of(name), select=Select(only=("L2",), never=WITH_CLAIMS), options=Options(jobs=2)
    )

    assert report.failed == (), as_text([report])
    assert all(report.badges.values())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", IN_TREE)
def test_plugin_passes_with_claims(name: str) -> None:
    report = run(subject_of(name), select=Select(only=WITH_CLAIMS), options=Options(jobs=2))

    assert report.failed == (), as_text([report])
    assert all(report.badges.values())
