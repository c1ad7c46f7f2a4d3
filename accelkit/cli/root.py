"""The command line for people: which words there are. Not here: any command's body.

A command's module is imported when it is the one that is called: help and completion are quick.
"""

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

import click

COMMANDS: Mapping[str, tuple[str, str]] = {
    "agent": ("agent_word", "Offer this node's accelerators to Kubernetes, until SIGTERM."),
    "capture": ("capture", "Keep what vendors read of a host, to look at it elsewhere."),
    "completion": ("completion", "Print what makes a shell complete accelkit's words."),
    "config": ("config", "Check a policy file, show it with all defaults, or print its schema."),
    "conformance": ("conformance", "Check vendors and drivers against the rules."),
    "devices": ("devices", "List the accelerators of a host, how they are, and who has them."),
    "doctor": ("doctor", "Say what keeps devices from being served, and what to do."),
    "explain": ("explain", "Say why a claim or a pod has its devices, or none."),
    "health": ("health", "Say why devices are as they are, or that a fault is gone."),
    "holders": ("holders", "List who holds devices of a node, or wait until nobody does."),
    "metrics": ("metrics", "List the metrics that the agent writes."),
    "partition": ("partition", "Plan, apply or check how devices are cut, or print how they are."),
    "play": ("play", "Tell the main job live on a simulated node."),
    "render": ("render", "Print what a backend would tell Kubernetes."),
    "simulate": ("simulate", "Make simulated accelerators, and let things happen to them."),
    "topology": ("topology", "Show how devices are connected, draw it, or try a choice."),
    "vendor": ("vendor", "List what is installed, and why something is not used."),
    "version": ("version", "Print versions of accelkit and of what it speaks."),
}
"""Word to the module in this package, which has it as *command*, and what help says of it."""

_CLOSED_PIPE = 0


class Lazy(click.Group):
    """A group that imports the command that is called, and no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the table is the same for all
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - see above
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"accelkit.cli.{COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in COMMANDS and not word.startswith("-") and not ctx.resilient_parsing:
            close = get_close_matches(word, COMMANDS, n=1)
            hint = f", did you mean {close[0]!r}?" if close else "."
            ctx.fail(f"there is no command {word!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(word, text) for word, (_, text) in sorted(COMMANDS.items())])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a reader that has seen enough, such as head, is no fault."""
        if isinstance(sys.stdout, TextIOWrapper):
            # A terminal that cannot show a letter gets a question mark, not an error.
            sys.stdout.reconfigure(errors="replace")
        try:
            answer: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The interpreter flushes again when it ends, and nobody must hear of that.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _CLOSED_PIPE
        return answer


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"accelkit {version('accelkit')}")
        ctx.exit()


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="accelkit COMMAND --help says more of each.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version and end.",
)
def cli() -> None:
    """Accelerators for Kubernetes: look at them, try them, offer them."""
