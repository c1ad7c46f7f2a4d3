"""`accelkit play`: the main job, told live on a simulated node. Not here: the story."""

import asyncio
import signal
from collections.abc import Iterable
from itertools import cycle

import click

from accelkit.cli.play_acts import GPU, gpus, lose, restore
from accelkit.cli.play_stage import NotSeen, Stage, stage
from accelkit.cli.play_story import ENDING, STORY, Line, Step, title
from accelkit.cli.play_table import Show, showing
from accelkit.cli.play_words import short
from accelkit.cli.showing import lively

PAUSE_S = 0.5
"""After each step, for people to read."""
AGAIN_S = 4.0
"""Between a loss and a return, after the story."""
LAST_WORDS = 12
"""Lines of the agent's log that are shown where something was not seen."""
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("play")
@click.option("--once", is_flag=True, help="End after the story, on a terminal too.")
def command(*, once: bool) -> int:
    """Tell the main job live: a node, its agent, pods and faults, all simulated but the agent.

    Nothing but Python is needed: no root, no Kubernetes, no hardware. A node with 8 H100 and 2
    accelerators of the vendor sim is simulated, and its kubelet; the agent is the real one, in a
    process of its own. Every line was seen to happen over their sockets.

    On a terminal there is a table of the devices too, and after the story GPUs come and go until
    Ctrl-C. Elsewhere, or with --once, it ends by itself. All that is made is removed.

    Exit code 0 if every step was seen, 1 if one was not, 130 if the story was interrupted.
    """
    return asyncio.run(_play(forever=lively() and not once, pause_s=PAUSE_S if lively() else 0.0))


async def _play(*, forever: bool, pause_s: float) -> int:
    task = asyncio.current_task()
    assert task is not None
    heard: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if not heard:  # the second one must not end the cleaning up
            task.cancel()
        heard.append(number)

    for number in ENDS:
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    told = False
    try:
        async with stage() as made, showing(made) as show:
            told = await _tell(made, show, STORY if forever else (*STORY, *ENDING), pause_s)
            if told and forever:
                told = await _go_on(made, show)
    except asyncio.CancelledError:
        if not heard:
            raise
        return 0 if told else 128 + heard[0]
    return 0 if told else 1


async def _tell(made: Stage, show: Show, steps: Iterable[Step], pause_s: float) -> bool:
    """Whether every step was seen."""
    number = 0
    for number, step in enumerate(steps, 1):  # noqa: B007 - it is the number of steps at the end
        try:
            async for line in step(made):
                show(line)
        except NotSeen as error:
            await _explain(made, show, f"not seen: {title(step)}", error)
            return False
        await asyncio.sleep(pause_s)
    show(Line("play", f"all {number} steps were seen"))
    return True


async def _go_on(made: Stage, show: Show) -> bool:
    """Let GPUs come and go until somebody ends it."""
    show(Line("play", "now GPUs come and go, until Ctrl-C"))
    assert made.view is not None
    for name in cycle([gpu.id.name for gpu in gpus(made.view)]):
        try:
            for change, what in ((lose, "is lost"), (restore, "is back")):
                await asyncio.sleep(AGAIN_S)
                begun, listed = await change(made, name)
                healthy = sum(device.healthy for device in listed.devices)
                took = f"{(listed.at - begun) * 1000:.0f} ms"
                text = f"{short(name)} {what}: {healthy} {GPU} are healthy after {took}"
                show(Line("fault" if change is lose else "repair", text, good=change is restore))
        except NotSeen as error:
            await _explain(made, show, "not seen any more", error)
            return False
    raise AssertionError("there are GPUs")


async def _explain(made: Stage, show: Show, what: str, error: NotSeen) -> None:
    """Say what is missing, what the kubelet has, and what the agent said."""
    has = (f"{name} {free} of {all_}" for name, (all_, free) in sorted(made.sim.amounts().items()))
    problems = [p.reason + (p.remedy and f": {p.remedy}") for p in await made.problems()]
    log = made.log.read_text(errors="replace").splitlines() if made.log.exists() else []
    details = (
        str(error),
        f"allocatable now: {', '.join(has) or 'nothing'}",
        *(f"problem: {problem}" for problem in dict.fromkeys(problems)),
        *(f"agent's log: {line}" for line in log[-LAST_WORDS:]),
    )
    show(Line("play", what, details, good=False))
