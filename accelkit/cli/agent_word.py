"""The word `agent` for help and completion. Not here: the agent's command, which needs no click."""

import click

from accelkit.cli import agent


@click.command(
    "agent",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> int:
    """Offer this node's accelerators to Kubernetes, until SIGTERM."""
    return agent.main(words)
