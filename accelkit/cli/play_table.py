"""How the play is shown: as plain lines, or above a live table of the devices on a terminal.

Not here: what is shown.
"""

import asyncio
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import click

from accelkit.cli.finding import in_order
from accelkit.cli.play_stage import NODE, RELEASE, Stage
from accelkit.cli.play_story import Line
from accelkit.cli.play_words import short
from accelkit.cli.showing import lively
from accelkit.core.model import DeviceId
from accelkit.core.values import Health
from accelkit.core.view import View

if TYPE_CHECKING:
    from rich.console import RenderableType

Show = Callable[[Line], None]

_REFRESH_S = 0.25
_INDENT = 22
"""Width of the time and the topic of a line."""
_HEALTH = {Health.HEALTHY: "green", Health.UNHEALTHY: "bold red", Health.UNKNOWN: "bold"}


def _head(stage: Stage, line: Line) -> tuple[str, str]:
    return f"{(line.at - stage.began) * 1000:6.0f} ms", f"{line.topic:<10}"


@asynccontextmanager
async def showing(stage: Stage) -> AsyncIterator[Show]:
    """What shows a line; meanwhile the table is redrawn, if there is a terminal."""
    if not lively():
        yield lambda line: _print(stage, line)
        return
    async with _live(stage) as show:
        yield show


def _print(stage: Stage, line: Line) -> None:
    time, topic = _head(stage, line)
    click.echo(f"{time}  {topic} {line.text}")
    for detail in line.details:
        click.echo(f"{'':{_INDENT}}{detail}")


@asynccontextmanager
async def _live(stage: Stage) -> AsyncIterator[Show]:
    from rich.console import Console  # noqa: PLC0415 - only terminals need it
    from rich.live import Live  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415 - see above

    console = Console(highlight=False)

    def show(line: Line) -> None:
        time, topic = _head(stage, line)
        color = "cyan" if line.good else "bold red"
        width = max(20, console.width - _INDENT - 1)
        first, *more = textwrap.wrap(line.text, width)
        text = Text.assemble((f"{time}  ", "dim"), (f"{topic} ", color), first)
        for part in more:
            text.append(f"\n{'':{_INDENT}}{part}")
        for detail in _folded(line.details, width):
            text.append(f"\n{'':{_INDENT}}{detail}", "dim")
        console.print(text, soft_wrap=True)

    with Live(get_renderable=lambda: _table(stage), console=console, refresh_per_second=8):
        asking = asyncio.create_task(_ask(stage))
        try:
            yield show
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking


def _folded(details: tuple[str, ...], width: int) -> Iterator[str]:
    for detail in details:
        if len(detail) <= width:
            yield detail  # with all blanks: it may be YAML
        else:
            yield from textwrap.wrap(detail, width, subsequent_indent="  ", break_on_hyphens=False)


async def _ask(stage: Stage) -> None:
    """Keep the stage's view fresh."""
    while True:
        await stage.ask()
        await asyncio.sleep(_REFRESH_S)


def _table(stage: Stage) -> "RenderableType":
    from rich.console import Group  # noqa: PLC0415 - only terminals need it
    from rich.table import Table  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415 - see above

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("DEVICE", "PRODUCT", "NUMA", "HEALTH", "HELD BY"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row, style in _rows(stage.view or View()):
        table.add_row(*row[:3], Text(row[3], style), row[4])
    pid = f"agent {stage.pid}" if stage.pid is not None else "no agent"
    return Group(
        Text(
            f"── node {NODE} · kubelet {RELEASE} · {pid} ".ljust(78, "─"), "bold", overflow="crop"
        ),
        table,
        Text(stage.has(), "bold", no_wrap=True, overflow="ellipsis"),
    )


def _rows(view: View) -> Iterator[tuple[tuple[str, ...], str]]:
    """Cells of each device, and the style of its health."""
    devices = view.snapshot.devices
    for device in in_order(devices):
        verdict = view.verdicts.get(device.id)
        numa = device.locality.numa_node
        yield (
            (
                short(device.id.name),
                device.profile or device.product or device.kind,
                "-" if numa is None else str(numa),
                "" if verdict is None else verdict.health.name,
                _held(view, device.id),
            ),
            "" if verdict is None else _HEALTH[verdict.health],
        )


def _held(view: View, device: DeviceId) -> str:
    holders = (h.holder for h in view.holdings if h.device == device)
    names = {holder.pod or holder.claim or holder.uid or "" for holder in holders}
    return ", ".join(sorted(names)) or "-"
