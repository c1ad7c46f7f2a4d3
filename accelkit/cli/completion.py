"""`accelkit completion`: what makes a shell complete words. Not here: the words."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog='Example: eval "$(accelkit completion bash)", for ever in ~/.bashrc.',
)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(*, shell: str) -> int:
    """Print the script that makes SHELL complete accelkit's words."""
    from accelkit.cli.root import cli  # noqa: PLC0415 - a cycle else

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "accelkit", "_ACCELKIT_COMPLETE").source())
    return 0
