"""`accelkit render`: what a backend would tell Kubernetes. Not here: any backend."""

from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, node_options
from accelkit.cli.showing import Form, document, show_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accelkit.core.serde import Tree

LATEST = "1.37"


@click.command("render", epilog="Example: accelkit render kubelet --host /tmp/node --node n1")
@click.argument("backend")
@node_options
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml")
@click.option(
    "--kubernetes", metavar="RELEASE", help="For dra: of the API server, as in 1.34; default: 1.37."
)
def command(*, backend: str, output: str, kubernetes: str | None, **asked: Unpack[Asked]) -> int:
    """Print what BACKEND would tell Kubernetes of this node now, without telling it.

    For kubelet: of each resource its devices, whether they are to be had, and their NUMA nodes.
    For dra: the slices, as far as an API server of that release keeps them by default.
    """
    from accelkit.cli.node import render, slices  # noqa: PLC0415 - help does without
    from accelkit.cli.reading import look  # noqa: PLC0415 - see above

    if backend == "dra":
        show_tree(_list(slices(look(asked), kubernetes or LATEST)), Form(output))
    elif kubernetes is not None:
        raise click.UsageError(f"--kubernetes is for dra, not for {backend}")
    else:
        show_tree(_document(backend, render(look(asked), backend)), Form(output))
    return 0


def _list(items: "Iterable[Tree]") -> "dict[str, Tree]":
    """As kubectl prints several objects."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def _document(backend: str, rendered: object) -> "dict[str, Tree]":
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    return document(f"{backend.capitalize()}Document", resources=to_tree(rendered))
