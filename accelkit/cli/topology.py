"""`accelkit topology`: how devices are connected, and what follows. Not here: how it is drawn."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, form_option, node_options
from accelkit.cli.showing import Form, document, show_tree

if TYPE_CHECKING:
    from accelkit.cli.node import NodeReading
    from accelkit.core.serde import Tree
    from accelkit.core.view import View


@click.command(
    "topology",
    epilog="Examples: accelkit topology --svg node.svg; accelkit topology --pick 4 --taken A,B. "
    "Ends with 1 if a pod could not get what is asked with --pick.",
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw it there.")
@click.option(
    "--pick",
    "size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Say which N devices a pod would get, and why.",
)
@click.option("--taken", multiple=True, metavar="A,B", help="With --pick: devices in use already.")
@click.option("--must", multiple=True, metavar="C", help="With --pick: devices that it must get.")
@click.option("--resource", metavar="NAME", help="With --pick: the resource, if there are several.")
@node_options
@form_option
def command(
    *,
    svg: Path | None,
    size: int | None,
    taken: tuple[str, ...],
    must: tuple[str, ...],
    resource: str | None,
    form: Form,
    **asked: Unpack[Asked],
) -> int:
    """Show how devices are connected, draw it, or try which of them a pod would get."""
    if size is None and (taken or must or resource):
        raise click.UsageError("--taken, --must and --resource mean something only with --pick")
    from accelkit.cli.finding import words_of  # noqa: PLC0415 - help does without
    from accelkit.cli.reading import look  # noqa: PLC0415 - see above

    found = look(asked)
    if svg is not None:
        _draw(found.view, svg)
    if size is not None:
        wish = (size, resource, words_of(taken), words_of(must))
        return _pick(found, wish, form)
    if form is not Form.TABLE:
        show_tree(_tree(found.view), form)
    elif svg is None:
        _show(found.view)
    return 0


def _show(view: "View") -> None:
    from accelkit.cli.matrix import show_matrix  # noqa: PLC0415 - see command

    if view.snapshot.devices:
        show_matrix(view)
    else:
        click.echo("There are no devices here; accelkit devices says what was asked.")


def _tree(view: "View") -> "Tree":
    from accelkit.cli.matrix import whole_devices  # noqa: PLC0415 - see command
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    return document(
        "Topology",
        node=view.snapshot.node,
        devices=[
            {"id": str(device.id), "locality": to_tree(device.locality)}
            for device in whole_devices(view)
        ],
        links=to_tree(view.snapshot.links),
        groups=to_tree(view.snapshot.groups),
    )


def _draw(view: "View", file: Path) -> None:
    from accelkit.cli.drawing import draw  # noqa: PLC0415 - see command
    from accelkit.core.errors import ConfigError  # noqa: PLC0415 - see command

    text = draw(view)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError([(str(file), f"cannot be written: {error.strerror}")]) from error
    click.echo(f"drawn: {file}", err=True)


def _pick(
    found: "NodeReading",
    wish: tuple[int, str | None, tuple[str, ...], tuple[str, ...]],
    form: Form,
) -> int:
    from accelkit.cli.picked import show_pick  # noqa: PLC0415 - see command
    from accelkit.cli.picking import Wish, pick  # noqa: PLC0415 - see command
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    size, resource, taken, must = wish
    wanted = Wish(size=size, resource=resource, taken=taken, must=must)
    answer = pick(found.view, wanted)
    if form is Form.TABLE:
        show_pick(found.view, answer)
    else:
        tree = to_tree(answer)
        assert isinstance(tree, dict)
        show_tree(document("Pick", **tree), form)
    return 0 if answer.legal else 1
