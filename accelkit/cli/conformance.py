"""`accelkit conformance`: what there is to know of checks and reports. Not here: running checks."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelkit.cli.conformance_run import run
from accelkit.cli.options import form_option
from accelkit.cli.showing import NONE, Form, document, show_table, show_tree

if TYPE_CHECKING:
    from accelkit.core.serde import Tree


@click.group("conformance")
def command() -> None:
    """Check vendors and drivers against the rules."""


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
    """Say what the check ID is about, why it is there, and what to do when it fails."""
    from accelkit.conformance.catalogue import page  # noqa: PLC0415 - help does without

    click.echo(page(check_id.upper()), nl=False)
    return 0


@command.command("serve", epilog="Example: accelkit conformance serve /tmp/kubelet")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--kubernetes", metavar="RELEASE", default="1.37", show_default=True, help="As in 1.34."
)
def serve(*, directory: Path, kubernetes: str) -> int:
    """Keep a simulated node up in DIR, and tell what a driver does.

    A kubelet, an API server and a scheduler wait for a driver whose kubelet's directory is DIR;
    what else it needs is printed. Ends when interrupted.
    """
    import asyncio  # noqa: PLC0415 - help does without

    from accelkit.conformance.serving import serve as keep_up  # noqa: PLC0415 - see above
    from accelkit.conformance.sims.gates import RELEASES  # noqa: PLC0415 - see above

    if kubernetes not in RELEASES:
        raise click.BadParameter(f"{kubernetes} is none of {', '.join(RELEASES)}")
    asyncio.run(keep_up(directory.absolute(), kubernetes, click.echo))
    return 0


@command.command("diff", epilog="Example: accelkit conformance diff last-week.json today.json")
@click.argument("old", metavar="OLD", type=click.Path(path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(path_type=Path))
@form_option
def diff(*, old: Path, new: Path, form: Form) -> int:
    """List the checks that ended otherwise in the report NEW than in OLD.

    Reports are what `run -o json` prints. Ends with 1 if a must fails that did not.
    """
    from accelkit.conformance.comparing import changes, read_report  # noqa: PLC0415 - help does without

    found = list(changes(read_report(old), read_report(new)))
    if form is not Form.TABLE:
        items: list[Tree] = [
            {"subject": c.subject, "id": c.id, "before": c.before, "after": c.after} for c in found
        ]
        show_tree(document("ChangeList", items=items), form)
    elif found:
        rows = ((c.subject, c.id, c.before, c.after) for c in found)
        show_table(("SUBJECT", "ID", "BEFORE", "AFTER"), rows)
    else:
        click.echo("nothing ended otherwise")
    return int(any(change.worse for change in found))


command.add_command(run)
