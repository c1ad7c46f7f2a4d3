"""`accelkit play`: the main job, told live on a simulated node. Not here: the story."""

import asyncio
import signal
from collections.abc import Iterable

import click

from accelkit.cli.play_stage import NotSeen, Stage
from accelkit.cli.play_story import PLAY, Line, Play, S, Step, title
from accelkit.cli.play_table import Show, showing
from accelkit.cli.showing import lively

PAUSE_S = 0.5
"""After each step, for people to read."""
LAST_WORDS = 12
"""Lines of the agent's log that are shown where something was not seen."""
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("play")
@click.option("--dra", is_flag=True, help="Tell it through claims: slices, partitions, shares.")
@click.option("--once", is_flag=True, help="End after the story, on a terminal too.")
def command(*, dra: bool, once: bool) -> int:
    """Tell the main job live: a node, its agent, pods and faults, all simulated but the agent.

    Nothing but Python is needed: no root, no Kubernetes, no hardware. A node with 8 H100 and 2
    accelerators of the vendor sim is simulated, and its kubelet; the agent is the real one, in a
    process of its own. Every line was seen to happen over their sockets. With --dra it is a
    cluster of one node with 4 H100, whose pods come with claims.

    On a terminal there is a table of the devices too, and after the story it goes on until
    Ctrl-C. Elsewhere, or with --once, it ends by itself. All that is made is removed.

    Exit code 0 if every step was seen, 1 if one was not, 130 if the story was interrupted.
    """
    forever, pause_s = lively() and not once, PAUSE_S if lively() else 0.0
    if dra:
        from accelkit.cli.play_dra_story import PLAY as CLAIMS  # noqa: PLC0415 - loads a cluster

        return asyncio.run(_play(CLAIMS, forever=forever, pause_s=pause_s))
    return asyncio.run(_play(PLAY, forever=forever, pause_s=pause_s))


async def _play(play: Play[S], *, forever: bool, pause_s: float) -> int:
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
        async with play.stage() as made, showing(made) as show:
            steps = play.story if forever else (*play.story, *play.ending)
            told = await _tell(made, show, steps, pause_s)
            if told and forever:
                show(Line("play", f"now {play.after}, until Ctrl-C"))
                told = await _go_on(made, show, play.go_on)
    except asyncio.CancelledError:
        if not heard:
            raise
        return 0 if told else 128 + heard[0]
    return 0 if told else 1


async def _tell(made: S, show: Show, steps: Iterable[Step[S]], pause_s: float) -> bool:
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


async def _go_on(made: S, show: Show, step: Step[S]) -> bool:
    """Let things happen until somebody ends it."""
    try:
        async for line in step(made):
            show(line)
    except NotSeen as error:
        await _explain(made, show, "not seen any more", error)
    return False


async def _explain(made: Stage, show: Show, what: str, error: NotSeen) -> None:
    """Say what is missing, what the kubelet has, and what the agent said."""
    problems = [p.reason + (p.remedy and f": {p.remedy}") for p in await made.problems()]
    log = made.log.read_text(errors="replace").splitlines() if made.log.exists() else []
    details = (
        str(error),
        made.has(),
        *(f"problem: {problem}" for problem in dict.fromkeys(problems)),
        *(f"agent's log: {line}" for line in log[-LAST_WORDS:]),
    )
    show(Line("play", what, details, good=False))
