"""`accelkit render`: what a backend would tell Kubernetes. Not here: any backend."""

from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, node_options
from accelkit.cli.showing import Form, document, show_tree

if TYPE_CHECKING:
    from accelkit.core.serde import Tree


@click.command("render", epilog="Example: accelkit render kubelet --host /tmp/node --node n1")
@click.argument("backend")
@node_options
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml")
def command(*, backend: str, output: str, **asked: Unpack[Asked]) -> int:
    """Print what BACKEND would tell Kubernetes of this node now, without telling it.

    For kubelet: of each resource its devices, whether they are to be had, and their NUMA nodes.
    """
    from accelkit.cli.node import render  # noqa: PLC0415 - help does without
    from accelkit.cli.reading import look  # noqa: PLC0415 - see above

    show_tree(_document(backend, render(look(asked), backend)), Form(output))
    return 0


def _document(backend: str, rendered: object) -> "dict[str, Tree]":
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    return document(f"{backend.capitalize()}Document", resources=to_tree(rendered))
