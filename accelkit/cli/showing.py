"""How answers are printed: as a table, as JSON or as YAML. Not here: what they say."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, cast

import click

from accelkit.core.foreign import printable
from accelkit.core.policy import API_VERSION
from accelkit.core.units import Bytes, format_quantity

if TYPE_CHECKING:
    from accelkit.core.kube import Json
    from accelkit.core.model import Problem
    from accelkit.core.serde import Tree

NONE = "-"
"""In a table: nothing, or not known."""

_STYLES: Mapping[str, str] = {
    "HEALTHY": "green",
    "UNHEALTHY": "bold red",
    "UNKNOWN": "yellow",
    "FATAL": "bold red",
    "DEGRADED": "yellow",
    "yes": "green",
    "no": "yellow",
    "pass": "green",
    "fail": "bold red",
    "unstable": "bold red",
    "waived": "yellow",
}
"""Words that a terminal shows in colour."""
_MOMENTS = frozenset({"since", "sinceS", "takenAt", "tookS"})
"""Keys that say when a value was made: for one read they say nothing, and differ each time."""


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def document(kind: str, **fields: "Tree") -> "dict[str, Tree]":
    """A tree that says what it is, without the moments at which its values were made."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        **{key: timeless(value) for key, value in fields.items()},
    }


def timeless(tree: "Tree") -> "Tree":
    """*tree* without when: equal facts are printed the same, whenever they were read."""
    if isinstance(tree, dict):
        return {key: timeless(value) for key, value in tree.items() if key not in _MOMENTS}
    return [timeless(item) for item in tree] if isinstance(tree, list) else tree


def show_tree(tree: "Tree", form: Form) -> None:
    """Print *tree* as JSON or YAML."""
    click.echo(json.dumps(tree, indent=2) if form is Form.JSON else yaml_text(tree), nl=False)
    if form is Form.JSON:
        click.echo()


def yaml_text(tree: "Tree") -> str:
    """*tree* as YAML, keys in their order, long texts on one line."""
    import yaml  # noqa: PLC0415 - JSON and tables do without

    class Dumper(yaml.SafeDumper):
        """Writes members of enumerations as JSON does: as their text."""

    Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str.__str__(text)))
    return yaml.dump(tree, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=sys.maxsize)


def show_objects(objects: "Iterable[Json]", form: Form) -> None:
    """Print objects of Kubernetes for kubectl: as YAML one document each, as JSON a List."""
    items = cast("list[Tree]", list(objects))  # said in the API server's words, they are trees
    if form is Form.JSON:
        show_tree({"apiVersion": "v1", "kind": "List", "items": items}, form)
    else:
        click.echo("---\n".join(map(yaml_text, items)), nl=False)


def show_problems(problems: "Iterable[Problem]", *, err: bool = False) -> None:
    """Print what is wrong, each once, with what to do; *err*: to standard error."""
    told: dict[tuple[str, str, str], None] = {}
    for problem in problems:
        where = "/".join(filter(None, (problem.vendor, problem.subject)))
        # An error that also reaches people elsewhere names its device itself.
        reason = problem.reason.removeprefix(f"{where}: ")
        told[f"{where}: {reason}", problem.code, problem.remedy] = None
    for what, code, remedy in told:
        click.echo(f"problem: {printable(what)} [{code}]", err=err)
        if remedy:
            click.echo(f"  remedy: {printable(remedy)}", err=err)


def lively() -> bool:
    """Whether there is a terminal that can do more than print line after line."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}


def coloured() -> bool:
    """Whether output may have colours: https://no-color.org."""
    return lively() and not os.environ.get("NO_COLOR")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print *rows* below the names of their *columns*: nothing is cut off, however narrow it is.

    Known words are in colour on a terminal that has any; elsewhere it is plain text.
    """
    cells = [tuple(columns), *(tuple(map(printable, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if not coloured():
        for row in cells:
            click.echo(aligned(row, widths))
        return
    from rich.console import Console  # noqa: PLC0415 - only terminals need it
    from rich.table import Table  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415 - see above

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        table.add_column(name, no_wrap=True)
    for row in cells[1:]:
        table.add_row(*(Text(cell, style=_style(cell)) for cell in row))
    needed = sum(widths) + 2 * len(widths)
    console = Console(highlight=False)
    console.width = max(console.width, needed)
    console.print(table, crop=False, soft_wrap=True)


def aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """*row* as text, each cell as wide as *widths* says, without blanks at the end."""
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def styled(word: str) -> str:
    """*word* in its colour, where output goes to a terminal."""
    if not coloured():
        return word
    colour = _style(word)
    return (
        click.style(word, fg=colour.split()[-1] or None, bold="bold" in colour) if colour else word
    )


def _style(cell: str) -> str:
    return _STYLES.get(cell.partition(" ")[0], "")


def amount(value: int | None) -> str:
    """Bytes for people: exact where that is short, else one digit after the point."""
    if value is None:
        return NONE
    exact = format_quantity(Bytes(value))
    if len(exact.rstrip("KMGTPEi")) <= 3:
        return exact
    for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if value >= 1024**power:
            return f"{value / 1024**power:.1f}{letter}i"
    return exact


def counted(number: int, noun: str) -> str:
    """``1 device``, ``2 devices``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
