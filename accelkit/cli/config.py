"""`accelkit config`: what a policy file may say and what it says. Not here: what that does."""

from pathlib import Path

import click

from accelkit.cli.showing import Form, show_tree

_FILE = click.Path(path_type=Path)


@click.group(
    "config",
    epilog="Example: accelkit config check /etc/accelkit/policy.yaml. "
    "Ends with 2 if something is wrong with the file.",
)
def command() -> None:
    """Check a policy file, show it with all defaults, or print its schema."""


@command.command("check")
@click.argument("file", type=_FILE)
def check(*, file: Path) -> int:
    """Look for everything that is wrong with FILE, with the plugins that are installed here."""
    from accelkit.cli.loading import load_installed  # noqa: PLC0415 - see above
    from accelkit.cli.policy_files import read_policy  # noqa: PLC0415 - help does without

    read_policy(file, load_installed())
    click.echo(f"{file}: nothing is wrong")
    return 0


@command.command("show")
@click.argument("file", type=_FILE, required=False)
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml")
def show(*, file: Path | None, output: str) -> int:
    """Print the policy in FILE with every default filled in; without FILE the built-in one.

    What is wrong with it, whichever plugins are installed, is told then; it ends with 2.
    """
    from accelkit.agent.reload import read_policy_file  # noqa: PLC0415 - help does without
    from accelkit.core.errors import ConfigError  # noqa: PLC0415 - see above
    from accelkit.core.policy import Policy  # noqa: PLC0415 - see above
    from accelkit.core.policy_check import policy_problems  # noqa: PLC0415 - see above
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    policy = Policy() if file is None else read_policy_file(file)
    show_tree(to_tree(policy), Form(output))
    if problems := policy_problems(policy):
        raise ConfigError(problems)
    return 0


@command.command("schema")
def schema() -> int:
    """Print the JSON Schema of policy files, for editors."""
    from accelkit.core.policy import Policy  # noqa: PLC0415 - help does without
    from accelkit.core.serde import schema_of  # noqa: PLC0415 - loads cattrs

    show_tree(schema_of(Policy), Form.JSON)
    return 0
