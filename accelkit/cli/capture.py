"""`accelkit capture`: what vendors read of a host, to be given away. Not here: what is kept."""

from pathlib import Path

import click

from accelkit.cli.options import policy_option
from accelkit.cli.showing import counted


@click.command("capture", epilog="Example: accelkit capture --mask /tmp/my-node")
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--host", metavar="DIR", help="A host's root or a machine; default: this machine.")
@click.option("--mask", is_flag=True, help="Replace what names cards, the host and its owner.")
@policy_option
def command(*, out: Path, host: str | None, mask: bool, policy: Path | None) -> int:
    """Keep in OUT what vendors read: files, calls of libraries, programs.

    A capture is a host: `accelkit devices --host OUT` shows what is seen here, on any machine.
    Nothing is changed, and nothing is in it that a plugin has not read.
    """
    from accelkit.agent.calls import Isolated  # noqa: PLC0415 - help does without
    from accelkit.cli.composing import at_host, choose_vendors  # noqa: PLC0415 - the same
    from accelkit.cli.loading import load_installed  # noqa: PLC0415 - the same
    from accelkit.cli.policy_files import read_policy  # noqa: PLC0415 - the same
    from accelkit.core.clock import RealClock  # noqa: PLC0415 - the same
    from accelkit.core.policy_check import options_of  # noqa: PLC0415 - the same
    from accelkit.testing.captures.capturing import capture  # noqa: PLC0415 - the same
    from accelkit.testing.hosts import open_host  # noqa: PLC0415 - the same

    registry = load_installed()
    wanted = at_host(read_policy(policy, registry), host)
    door = open_host(wanted.paths.host)
    vendors = [
        # a library is recorded in this process, whatever becomes of it
        one.kind(options_of(one.kind, one.options)) if isinstance(one, Isolated) else one
        for one in choose_vendors(wanted, registry, door).vendors
    ]
    found = capture(door, vendors, out, RealClock().now(), mask=mask)
    for problem in found.problems:
        click.echo(problem, err=True)
    asked = ", ".join(vendor.name for vendor in vendors) or "nobody"
    click.echo(f"{out}: {counted(found.devices, 'device')}, as told by {asked}")
    click.echo(f"look at it: accelkit devices --host {out}")
    return 0
