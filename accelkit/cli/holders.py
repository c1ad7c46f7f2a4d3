"""`accelkit holders`: who has to go before a node can be touched. Not here: how that is known."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, form_option, node_options
from accelkit.cli.showing import NONE, Form, counted, show_table, show_tree
from accelkit.core.policy import API_VERSION

if TYPE_CHECKING:
    from accelkit.cli.holding import Held

COLUMNS = ("DEVICE", "SHARE", "POD", "CONTAINER", "CLAIM", "THROUGH", "SINCE")
AGAIN_S = 1.0
"""Between two looks while it waits."""
UUID_LENGTH = 36
SHORT = 8


def _duration(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float:
    from accelkit.core.units import parse_duration  # noqa: PLC0415 - help does without

    try:
        return 0.0 if text is None else float(parse_duration(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(
    "holders", epilog="Example: accelkit holders --wait 10m, before a driver is updated."
)
@click.option(
    "--wait",
    "wait_s",
    metavar="TIME",
    callback=_duration,
    help="Wait until there are none, so long at most: 30s, 10m.",
)
@node_options
@form_option
def command(*, wait_s: float, form: Form, **asked: Unpack[Asked]) -> int:
    """List who holds devices of the node: containers, claims, and processes that nobody gave them.

    The agent of the node is asked; without one the kubelet, vendors and what agents of this boot
    wrote down are.

    Ends with 0 if nobody holds any device, with 1 while somebody does, and with 3 if it cannot be
    known: so it is a gate for what needs an idle node.
    """
    from accelkit.cli.holding import holders  # noqa: PLC0415 - help does without

    held = holders(asked)
    until, left = time.monotonic() + wait_s, 0
    while held and (remaining := until - time.monotonic()) > 0:
        if len(held) != left:
            left = len(held)
            click.echo(f"waiting for {counted(left, 'holder')}", err=True)
        time.sleep(min(AGAIN_S, remaining))
        held = holders(asked)
    _show(held, form)
    return int(bool(held))


def _show(held: "Iterable[Held]", form: Form) -> None:
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    several = tuple(held)
    if form is not Form.TABLE:
        # When somebody came to have it is what this is about: it is not left out.
        items = to_tree(several)
        show_tree({"apiVersion": API_VERSION, "kind": "HolderList", "items": items}, form)
    elif several:
        show_table(COLUMNS, (_row(one) for one in several))
    else:
        click.echo("nobody holds a device")


def _row(one: "Held") -> tuple[str, ...]:
    claim = "/".join(filter(None, (one.namespace, one.claim))) if one.claim else NONE
    return (
        one.device,
        NONE if one.share is None else _short(one.share),
        _who(one),
        one.container or NONE,
        claim if one.state in {None, "ready"} else f"{claim} ({one.state})",
        one.through,
        NONE if one.since is None else one.since.strftime("%Y-%m-%d %H:%M:%SZ"),
    )


def _who(one: "Held") -> str:
    if one.process is not None:
        return f"process {one.process}"
    return NONE if one.pod is None else f"{one.namespace}/{one.pod}"


def _short(share: str) -> str:
    """Of a share that is a UUID only the beginning."""
    return share[:SHORT] if len(share) == UUID_LENGTH else share
