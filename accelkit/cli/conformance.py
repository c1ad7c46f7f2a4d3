"""`accelkit conformance`: list the checks, explain one. Not here: how they are run."""

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


command.add_command(run)
