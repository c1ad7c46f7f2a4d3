"""`accelkit conformance`: run the checks, list them, explain one. Not here: any check."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelkit.cli.options import form_option
from accelkit.cli.showing import NONE, Form, counted, document, show_table, show_tree, styled

if TYPE_CHECKING:
    from accelkit.conformance.report import Report, Result
    from accelkit.conformance.runner import Options
    from accelkit.conformance.waivers import Waiver
    from accelkit.core.serde import Tree

_WIDTHS = (5, 14)
"""Of ids and verdicts: results are printed as they come."""


@click.group("conformance")
def command() -> None:
    """Check vendors and drivers against the rules."""


@command.command("run", epilog="Example: accelkit conformance run sim --only health --only D01")
@click.argument("vendors", nargs=-1, metavar="[VENDOR]...")
@click.option("--product", help="Of the simulated machine.  [default: its first]")
@click.option("--host", metavar="DIR", help="Read this instead of machines made for the run.")
@click.option(
    "--only", multiple=True, metavar="WORD", help="An id, family, level or badge to run; repeat."
)
@click.option("--skip", multiple=True, metavar="WORD", help="The same, not to run; repeat.")
@click.option("--seed", type=int, default=0, help="Decides what checks leave to chance.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Runs of each check.")
@click.option(
    "--deadline-scale",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    help="Multiplies every patience.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first must that fails.")
@click.option(
    "--waivers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Failures that are answered for.  [default: conformance.toml, if it is here]",
)
@form_option
def run(
    *,
    vendors: Sequence[str],
    product: str | None,
    host: str | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    seed: int,
    repeat: int,
    deadline_scale: float,
    fail_fast: bool,
    waivers: Path | None,
    form: Form,
) -> int:
    """Run the checks on each VENDOR; without one, on all that come with accelkit.

    Ends with 1 if a must failed.
    """
    if (product or host) and len(vendors) != 1:
        raise click.UsageError("--product and --host go with one VENDOR")
    from accelkit.conformance.intree import IN_TREE, subject_of  # noqa: PLC0415 - help does without
    from accelkit.conformance.runner import Options, Select  # noqa: PLC0415 - see above
    from accelkit.conformance.runner import run as run_all  # noqa: PLC0415 - see above

    options = Options(
        seed=seed,
        repeat=repeat,
        deadline_scale=deadline_scale,
        fail_fast=fail_fast,
        waivers=_waivers(waivers),
    )
    subjects = [subject_of(name, product=product, host=host) for name in vendors or IN_TREE]
    reports = []
    for subject in subjects:
        if form is Form.TABLE:
            click.echo(f"{subject.name}:")
        heard = _show_result if form is Form.TABLE else _nothing
        select = Select(only=only, never=skip)
        reports.append(run_all(subject, select=select, options=options, heard=heard))
        if form is Form.TABLE:
            _show_end(reports[-1])
    if form is not Form.TABLE:
        trees = [_tree(report, options) for report in reports]
        one = len(trees) == 1
        show_tree(trees[0] if one else document("ConformanceReportList", items=[*trees]), form)
    return int(any(report.failed for report in reports))


@command.command("list")
@click.option("--only", multiple=True, metavar="WORD", help="An id, family, level or badge.")
@form_option
def list_(*, only: tuple[str, ...], form: Form) -> int:
    """List the checks."""
    from accelkit.conformance.runner import Select, chosen  # noqa: PLC0415 - help does without

    checks = chosen(Select(only=only))
    if form is Form.TABLE:
        show_table(
            ("ID", "LEVEL", "MUST", "BADGES", "CLAIM"),
            (
                (
                    c.id,
                    c.level.value,
                    "must" if c.must else "should",
                    " ".join(sorted(c.badges)) or NONE,
                    c.claim,
                )
                for c in checks
            ),
        )
        return 0
    items: list[Tree] = [
        {
            "id": c.id,
            "level": c.level.value,
            "must": c.must,
            "badges": [*sorted(c.badges)],
            "claim": c.claim,
        }
        for c in checks
    ]
    show_tree(document("CheckList", items=items), form)
    return 0


@command.command("show")
@click.argument("check_id", metavar="ID")
def show(*, check_id: str) -> int:
    """Say what the check ID is about, and what it needs."""
    from accelkit.conformance.checks import CHECKS  # noqa: PLC0415 - help does without
    from accelkit.core.errors import ConfigError  # noqa: PLC0415 - see above

    check = next((c for c in CHECKS if c.id == check_id.upper()), None)
    if check is None:
        raise ConfigError([(check_id, "is no check")], remedy="see: accelkit conformance list")
    needs = (n.value if not isinstance(n, type) else n.__name__ for n in check.needs)
    lines = (
        f"{check.id}: {check.claim}",
        f"level:  {check.level}, a {'must' if check.must else 'should'}",
        f"badges: {', '.join(sorted(check.badges)) or 'none'}",
        f"needs:  {', '.join(needs) or 'nothing'}",
        f"page:   docs/conformance/{check.id}.md",
    )
    click.echo("\n".join(lines))
    return 0


def _waivers(file: Path | None) -> "tuple[Waiver, ...]":
    from accelkit.conformance.checks import CHECKS  # noqa: PLC0415 - help does without
    from accelkit.conformance.waivers import FILE, read_waivers  # noqa: PLC0415 - see above

    path = file or Path(FILE)
    if file is None and not path.exists():
        return ()
    return read_waivers(path, [check.id for check in CHECKS])


def _nothing(_result: "Result") -> None:
    pass


def _show_result(result: "Result") -> None:
    verdict = result.verdict.value
    word = styled(verdict) + " " * (_WIDTHS[1] - len(verdict))
    click.echo(f"{result.id:{_WIDTHS[0]}} {word} {result.claim}")
    if verdict not in {"pass", "not-applicable"}:
        for finding in result.findings:
            click.echo(f"{'':{_WIDTHS[0]}} - {finding}")


def _show_end(report: "Report") -> None:
    counts = ", ".join(f"{n} {verdict}" for verdict, n in report.summary.items() if n)
    click.echo(f"{counted(len(report.results), 'check')}: {counts or 'nothing to run'}")
    for badge, granted in report.badges.items():
        click.echo(f"badge {badge}: {'granted' if granted else 'refused'}")
    click.echo()


def _tree(report: "Report", options: "Options") -> "dict[str, Tree]":
    """The report as people and programs keep it."""
    import platform  # noqa: PLC0415 - help does without
    from importlib.metadata import version  # noqa: PLC0415 - see above

    subject: dict[str, Tree] = {
        "kind": report.kind,
        "name": report.name,
        "abilities": [*report.abilities],
    }
    if report.product:
        subject["product"] = report.product
    return document(
        "ConformanceReport",
        suite=version("accelkit"),
        seed=options.seed,
        subject=subject,
        host={"kernel": platform.release(), "python": platform.python_version()},
        badges={b.value: "granted" if g else "refused" for b, g in report.badges.items()},
        checks=[_check(result) for result in report.results],
        summary={verdict.value: n for verdict, n in report.summary.items()},
    )


def _check(result: "Result") -> "Tree":
    return {
        "id": result.id,
        "level": result.level.value,
        "must": result.must,
        "verdict": result.verdict.value,
        "findings": [*result.findings],
    }
