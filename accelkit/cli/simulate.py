"""`accelkit simulate`: machines to try things on. Not here: how they are made."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelkit.cli.showing import show_table

if TYPE_CHECKING:
    from accelkit.testing.machines import Part


class _Vendors(click.Group):
    """Any word but the few of its own is the name of a vendor."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        return own or (None if cmd_name.startswith("-") else _making(cmd_name))


@click.group(
    "simulate",
    cls=_Vendors,
    subcommand_metavar="VENDOR|set|run [OPTIONS] DIR ...",
    epilog="\b\nExamples:\n"
    "  accelkit simulate nvidia --product h100 --count 8 /tmp/node\n"
    "  accelkit simulate nvidia --from topo.txt /tmp/node\n"
    "  accelkit simulate set /tmp/node lose gpu-2\n"
    "  accelkit simulate run /tmp/node --faults faults.yaml",
)
def command() -> None:
    """Make simulated accelerators, and let things happen to them.

    With a VENDOR that brings a simulated machine: make one in DIR, or add to the one that is
    there. Then: accelkit devices --host DIR.
    """


def _making(vendor: str) -> click.Command:
    options = (
        click.Option(["--product"], help="One of its products.  [default: its first]"),
        click.Option(["--count"], type=int, help="How many devices.  [default: 1]"),
        click.Option(
            ["--from", "text"],
            type=click.Path(path_type=Path, allow_dash=True),
            metavar="FILE",
            help="What the maker's tool or kubectl prints of a machine, to make this one like it.",
        ),
        click.Option(
            ["--seed"], type=int, default=0, help="Serial numbers and UUIDs are made from it."
        ),
        click.Option(
            ["--option", "options"],
            multiple=True,
            metavar="KEY=VALUE",
            help="What else that vendor's machine can be told.",
        ),
        click.Option(
            ["--device-nodes"], is_flag=True, help="Make real device nodes, which needs root."
        ),
    )
    directory = click.Argument(["directory"], metavar="DIR")
    return click.Command(
        vendor,
        params=[*options, directory],
        callback=partial(_make, vendor),
        help=f"Make simulated accelerators of {vendor} in DIR.",
    )


def _make(
    vendor: str,
    *,
    directory: str,
    product: str | None,
    count: int | None,
    text: Path | None,
    seed: int,
    options: tuple[str, ...],
    device_nodes: bool,
) -> int:
    if text is not None:
        if count is not None or options:
            raise click.UsageError("--from says how many there are and what they are like")
        part = _make_like(vendor, text, directory, product, seed, device_nodes=device_nodes)
    else:
        from accelkit.testing.simulate import simulate  # noqa: PLC0415 - help does without

        part = simulate(
            vendor,
            product,
            1 if count is None else count,
            directory,
            seed=seed,
            device_nodes=device_nodes,
            options=_pairs(options),
        )
    _show(part, directory)
    return 0


def _make_like(
    vendor: str,
    file: Path,
    directory: str,
    product: str | None,
    seed: int,
    *,
    device_nodes: bool,
) -> "Part":
    from accelkit.core.errors import ConfigError  # noqa: PLC0415 - help does without
    from accelkit.testing.like import simulate_like  # noqa: PLC0415 - see above
    from accelkit.testing.texts import MOST_BYTES, decoded  # noqa: PLC0415 - see above

    try:
        with click.open_file(str(file), "rb") as opened:
            found: bytes = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError([(str(file), f"cannot be read: {error.strerror}")]) from error
    part, warnings = simulate_like(
        vendor, decoded(found), directory, product=product, seed=seed, device_nodes=device_nodes
    )
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    return part


def _pairs(options: tuple[str, ...]) -> Mapping[str, str]:
    split = [option.partition("=") for option in options]
    for key, sign, _ in split:
        if not (key and sign):
            raise click.UsageError(f"--option {key}: write KEY=VALUE")
    return {key: value for key, _, value in split}


def _show(part: "Part", directory: str) -> None:
    from accelkit.testing.shared import machine_class  # noqa: PLC0415 - help does without

    machine = machine_class(part.vendor)(part)
    click.echo(f"{directory}: {part.vendor}, {part.count} of {part.product}")
    click.echo(f"  units: {' '.join(machine.units())}")
    click.echo(f"  look at them: accelkit devices --host {directory}")
    click.echo(f"  what can happen to them: accelkit simulate set {directory}")


@command.command(
    "set",
    short_help="Let something happen to a machine.",
    context_settings={"ignore_unknown_options": True},  # a verb may take a negative number
)
@click.argument("directory", metavar="DIR")
@click.argument("verb", nargs=-1, metavar="VERB...")
def set_(*, directory: str, verb: tuple[str, ...]) -> int:
    """Let VERB happen to the machine in DIR, as in: lose gpu-2. Without one: list them."""
    from accelkit.testing.record import load  # noqa: PLC0415 - help does without
    from accelkit.testing.shared import machines  # noqa: PLC0415 - see above
    from accelkit.testing.simulate import ENGINE_VERBS, set_state  # noqa: PLC0415 - see above

    if verb:
        set_state(directory, verb)
        return 0
    rows = [("every machine", usage) for usage in ENGINE_VERBS.values()]
    for machine in machines(load(directory).parts):
        rows += [(machine.part.vendor, usage) for usage in sorted(machine.verbs.values())]
    show_table(("OF", "VERB"), rows)
    return 0


@command.command("run", short_help="Play a file of faults.")
@click.argument("directory", metavar="DIR")
@click.option(
    "--faults", type=click.Path(), metavar="FILE", required=True, help="What happens, and when."
)
def run(*, directory: str, faults: str) -> int:
    """Play the faults in FILE on the machine in DIR; ends after the last one with a time.

    FILE is a list, of {at: 3s, do: lose gpu-2} and {call: nvmlInit_v2, from: 2, do: hang 30s}.
    """
    from accelkit.core.clock import RealClock  # noqa: PLC0415 - help does without
    from accelkit.testing.faults import read_faults  # noqa: PLC0415 - see above
    from accelkit.testing.simulate import play  # noqa: PLC0415 - see above

    asyncio.run(play(directory, read_faults(faults), RealClock()))
    return 0
