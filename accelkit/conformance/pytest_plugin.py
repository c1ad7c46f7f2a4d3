"""Lets an author's own tests run the checks: each check is a test of its own.

One line in a test module::

    from accelkit.conformance.pytest_plugin import conforms
    from acme_accelkit import Acme

    test_acme = conforms(Acme)

``pytest -k "acme and H03"`` runs one of them. A check that does not apply is skipped and says why;
one that only should hold is an expected failure when it does not; any other that finds something
fails with what it found. More is said with a subject::

    test_acme = conforms(
        PluginSubject(vendor=Acme, product="a200", cut=Cut(product="a200-halves")),
        select=Select(never=("L2",)),
    )

Loaded by every pytest that finds accelkit installed, so nothing of accelkit is imported here
before a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accelkit.conformance.runner import Options, Select
    from accelkit.conformance.stage import Stages
    from accelkit.conformance.subjects import Subject
    from accelkit.core.vendor import Vendor

MARK = "accelkit"
FIXTURE = "accelkit_check"


def conforms(
    subject: Subject | type[Vendor],
    *,
    select: Select | None = None,
    options: Options | None = None,
) -> Callable[[Callable[[], None]], None]:
    """A test function that is one test for each check.

    Args:
        subject: What to check; a vendor class stands for itself on its simulated machine.
        select: Which checks; None: all.
        options: How to run them.
    """

    def test(accelkit_check: Callable[[], None]) -> None:
        accelkit_check()

    pytest.mark.accelkit(subject, select=select, options=options)(test)
    return test


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", f"{MARK}(subject, select=None, options=None): what {FIXTURE} is run on"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check that is selected."""
    if FIXTURE not in metafunc.fixturenames:
        return
    from accelkit.conformance.runner import ALL, chosen  # noqa: PLC0415 - see the module

    checks = chosen(_mark(metafunc.definition).kwargs.get("select") or ALL)
    metafunc.parametrize(FIXTURE, checks, ids=[check.id for check in checks], indirect=True)


@pytest.fixture(scope="session")
def accelkit_stages() -> Iterator[dict[object, Stages]]:
    """By subject what runs for one check and may serve the next one."""
    stages: dict[object, Stages] = {}
    yield stages
    for one in stages.values():
        one.end()


@pytest.fixture
def accelkit_check(
    request: pytest.FixtureRequest, accelkit_stages: dict[object, Stages]
) -> Callable[[], None]:
    """One check of the subject that the test is marked with; call it."""
    from accelkit.conformance.model import Verdict  # noqa: PLC0415 - see the module
    from accelkit.conformance.runner import DEFAULTS, run_check  # noqa: PLC0415 - see the module
    from accelkit.conformance.stage import Stages  # noqa: PLC0415 - see the module

    mark = _mark(request.node)
    subject = _subject(mark.args[0])
    stages = accelkit_stages.setdefault(id(mark.args[0]), Stages(subject))

    def check() -> None:
        options = mark.kwargs.get("options") or DEFAULTS
        result = run_check(request.param, subject, options, stages)
        text = "\n".join((f"{result.id}: {result.claim}", *(f"  {f}" for f in result.findings)))
        if result.verdict is Verdict.NOT_APPLICABLE:
            pytest.skip(f"not applicable: {'; '.join(result.findings)}")
        if result.verdict is Verdict.WAIVED or (result.findings and not result.must):
            pytest.xfail(text)
        if result.findings:
            pytest.fail(text, pytrace=False)

    return check


def _mark(node: pytest.Item | pytest.Function) -> pytest.Mark:
    mark = node.get_closest_marker(MARK)
    if mark is None or len(mark.args) != 1:
        raise pytest.UsageError(
            f"{node.nodeid}: mark it with @pytest.mark.{MARK}(SUBJECT), or make it by conforms()"
        )
    return mark


def _subject(named: Subject | type[Vendor]) -> Subject:
    from accelkit.conformance.subjects import told  # noqa: PLC0415 - see the module

    return told(named) if isinstance(named, type) else named
