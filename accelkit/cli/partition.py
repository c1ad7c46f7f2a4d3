"""`accelkit partition`: how devices are cut and should be. Not here: how that is found out."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, form_option, node_options
from accelkit.cli.showing import Form, document, show_problems, show_tree
from accelkit.core.foreign import printable

if TYPE_CHECKING:
    from accelkit.agent.cutting import Applied
    from accelkit.cli.partition_plan import Left

_FILE = click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What it says goes before the policy, key by key: another policy, or layouts and"
    " partitioning alone.",
)


@click.group("partition")
def command() -> None:
    """Plan, apply and check how devices are cut into partitions, or print how they are."""


@command.command(
    "plan",
    short_help="Print what is left to do.",
    epilog="Example: accelkit partition plan -f layout.yaml",
)
@_FILE
@node_options
@form_option
def plan(*, file: Path | None, form: Form, **asked: Unpack[Asked]) -> int:
    """Print the steps until devices are cut as the policy says, and who is in the way.

    Nothing is changed.
    """
    left = _left(asked, file)
    _show(left, form)
    return 0


@command.command(
    "assert",
    short_help="The same; ends with 1 if anything is left.",
    epilog="Example: accelkit partition assert && start-training",
)
@_FILE
@node_options
@form_option
def assert_(*, file: Path | None, form: Form, **asked: Unpack[Asked]) -> int:
    """Print the same as plan, and end with 1 if devices are not cut as the policy says.

    Ends with 3 where it is not known what there is.
    """
    left = _left(asked, file, surely=True)
    _show(left, form)
    return 0 if left.nothing else 1


@command.command(
    "apply",
    short_help="Let the agent do it.",
    epilog="Example: accelkit partition apply, once the node is drained.",
)
@click.option(
    "--without-agent",
    is_flag=True,
    help="Do it in this process: for a machine on which no agent runs yet.",
)
@_FILE
@node_options
def apply(*, without_agent: bool, file: Path | None, **asked: Unpack[Asked]) -> int:
    """Let the agent of the node cut devices as its policy says, also what waits to be told.

    Nothing is done to devices that somebody holds. Ends with 1 if something is left to do, with 3
    if no agent runs.
    """
    if without_agent:
        applied = _cut(asked, file)
    elif file is not None:
        raise click.UsageError(
            "the agent cuts as its own policy says: write it there, or use --without-agent"
        )
    else:
        applied = _told(asked)
    for step in applied.done:
        click.echo(f"done: {step}")
    for reason in applied.failed:
        click.echo(f"failed: {printable(reason)}")
    for reason in applied.left:
        click.echo(f"left: {printable(reason)}")
    if not (applied.done or applied.failed or applied.left):
        click.echo("nothing was left to do")
    return int(bool(applied.failed or applied.left))


@command.command(
    "export",
    short_help="Print how devices are cut today.",
    epilog="Example: accelkit partition export > layout.yaml",
)
@node_options
def export(**asked: Unpack[Asked]) -> int:
    """Print how devices are cut today, as a policy that lets others be cut so.

    Ends with 3 where it is not known what there is.
    """
    from accelkit.cli.partition_export import policy_of  # noqa: PLC0415 - help does without
    from accelkit.cli.partition_plan import check_known  # noqa: PLC0415 - see above
    from accelkit.cli.reading import look  # noqa: PLC0415 - see above

    found = look(asked)
    show_problems(found.view.snapshot.problems, err=True)
    check_known(found)
    show_tree(policy_of(found.view.snapshot), Form.YAML)
    return 0


def _left(asked: Asked, file: Path | None, *, surely: bool = False) -> "Left":
    from accelkit.cli.partition_plan import check_known, left_to_do  # noqa: PLC0415 - help does without
    from accelkit.cli.reading import look  # noqa: PLC0415 - see above

    found = look(asked, file)
    show_problems(found.view.snapshot.problems, err=True)
    if surely:
        check_known(found)
    return left_to_do(found)


def _show(left: "Left", form: Form) -> None:
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    if form is not Form.TABLE:
        steps, problems = to_tree(left.steps), to_tree(left.problems)
        show_tree(document("PartitionPlan", steps=steps, problems=problems), form)
        return
    for step in left.steps:
        waits = "  (when told: accelkit partition apply)" if step.when == "drained" else ""
        click.echo(f"{step}{waits}")
    show_problems(left.problems)
    if not left.cuts:
        click.echo("the policy cuts nothing: it has no partitioning")
    elif left.nothing:
        click.echo("nothing is left to do")


def _told(asked: Asked) -> "Applied":
    from accelkit.cli.agent_socket import NoAgent  # noqa: PLC0415 - help does without
    from accelkit.cli.asking import the_agent_of  # noqa: PLC0415 - see above

    try:
        return the_agent_of(asked).apply()
    except NoAgent as error:
        error.remedy += ", or let this process do it: --without-agent"
        raise


def _cut(asked: Asked, file: Path | None) -> "Applied":
    import asyncio  # noqa: PLC0415 - help does without

    from accelkit.cli.composing import at_host  # noqa: PLC0415 - see above
    from accelkit.cli.loading import load_installed  # noqa: PLC0415 - see above
    from accelkit.cli.partition_apply import cut  # noqa: PLC0415 - see above
    from accelkit.cli.policy_files import read_policy  # noqa: PLC0415 - see above
    from accelkit.cli.reading import set_log  # noqa: PLC0415 - see above

    set_log(trace=asked["trace"])
    registry = load_installed()
    policy = at_host(read_policy(asked["policy"], registry, file), asked["host"])
    return asyncio.run(cut(policy, asked["node"], registry, trace=asked["trace"]))
