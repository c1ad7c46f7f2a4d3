"""`accelkit render`: what a backend would tell Kubernetes. Not here: any backend."""

from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, node_options
from accelkit.cli.showing import Form, document, show_objects, show_problems, show_tree

if TYPE_CHECKING:
    from accelkit.cli.rendering import Rendered
    from accelkit.core.serde import Tree

_DRA = "offers: [{name: all, through: dra}]"
_EXTENDED = "offers: [{name: all, through: dra, extendedResource: example.com/device}]"


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
    For extended: the device classes that extendedResource of offers needs, for an administrator
    to apply.

    Of dra and extended YAML is one document for each object, as kubectl reads them, and JSON a
    List. What is missing in them, and why, goes to standard error. Ends with 1 if an API server
    would refuse them.
    """
    from accelkit.cli.reading import look  # noqa: PLC0415 - help does without
    from accelkit.cli.rendering import LATEST, classes, document_of, slices  # noqa: PLC0415 - see above

    if kubernetes is not None and backend != "dra":
        raise click.UsageError(f"--kubernetes is for dra, not for {backend}")
    form = Form(output)
    match backend:
        case "dra":
            return _show(slices(look(asked), kubernetes or LATEST), form, "through: dra", _DRA)
        case "extended":
            wanted = "through: dra and extendedResource"
            return _show(classes(look(asked)), form, wanted, _EXTENDED)
        case _:
            show_tree(_document(backend, document_of(look(asked), backend)), form)
            return 0


def _show(rendered: "Rendered", form: Form, wanted: str, example: str) -> int:
    show_objects(rendered.objects, form)
    if not rendered.objects:  # an empty answer leaves people wondering
        click.echo(f"no device of this node is in an offer with {wanted}", err=True)
        click.echo(f"  remedy: say --policy FILE, with {example}", err=True)
    show_problems(rendered.problems, err=True)
    return int(not rendered.good)


def _document(backend: str, rendered: object) -> "dict[str, Tree]":
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    return document(f"{backend.capitalize()}Document", resources=to_tree(rendered))
