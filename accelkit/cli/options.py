"""Options that several commands have. Not here: what commands do with them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click

from accelkit.cli.showing import Form
from accelkit.cli.standing_policy import POLICY, standing_policy

F = TypeVar("F", bound=Callable[..., object])  # type: ignore[explicit-any]  # commands of any options


class Asked(TypedDict):
    """What *node_options* hand to a command."""

    host: str | None
    policy: Path | None
    node: str
    trace: bool


def _default_node() -> str:
    return os.environ.get("NODE_NAME") or socket.gethostname()


policy_option = click.option(
    "--policy",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=standing_policy,
    show_default=f"{POLICY} if it exists",
    help="The policy.",
)
"""Lets a command take a policy."""

_NODE_OPTIONS = (
    click.option(
        "--host",
        metavar="DIR",
        help="The host's root, or a simulated machine.  [default: paths.host of the policy]",
    ),
    policy_option,
    click.option(
        "--node",
        metavar="NAME",
        default=_default_node,
        show_default="$NODE_NAME, else the host name",
        help="Name of the node, which policies may select by.",
    ),
    click.option("--trace", is_flag=True, help="Log each call of a vendor, with what came of it."),
)


def node_options(command: F) -> F:  # type: ignore[explicit-any]  # see F
    """Let *command* take what says which node to read; see Asked."""
    for option in reversed(_NODE_OPTIONS):
        command = option(command)
    return command


def form_option(command: F) -> F:  # type: ignore[explicit-any]  # see F
    """Let *command* take ``-o``."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice([form.value for form in Form]),
        default=Form.TABLE.value,
        show_default=True,
        callback=lambda _context, _parameter, value: Form(value),
        help="How to print it.",
    )(command)
