"""What a library can do to its process, compiled: it costs that process, and nothing else."""

import asyncio
import os
import resource
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from accelkit.agent import calls, remote, remote_process
from accelkit.agent.remote import Remote
from accelkit.agent.sources import Source
from accelkit.core.clock import RealClock
from accelkit.core.errors import PluginError, SourceError, SourceTimeout, WorkerDied
from tests.agent.acme import isolated
from tests.agent.acme_host import order
from tests.agent.remotes import (
    HURRY,
    PATIENCE_S,
    asked,
    grant,
    hurried,
    is_alive,
    pid_of,
    read_again,
    until,
)
from tests.agent.toys import Toy
from tests.open_files import open_files

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.usefixtures("soon")]
MIB = 1 << 20


async def why(source: Source, root: Path, word: str) -> str:
    """What is told of a process whose library does *word*; the next one answers."""
    await read_again(source)
    order(root, discover=word)
    report = await source.read()
    order(root, discover="")
    await read_again(source)
    (problem,) = report.problems
    assert problem.code == "worker-died"
    return problem.reason.rpartition(": its process ")[2]


async def test_ways_of_libraries_to_end_their_process_are_told_apart(root: Path) -> None:
    words = ("abort", "exit", "signal", "overflow", "close", "half", "scribble", "nested")
    async with asked(isolated(root)) as source, asked(Toy()) as other:
        told = {word: await why(source, root, word) for word in words}
        answered = (await other.read()).answered

    garbage = "was killed, for it wrote what is no answer: "
    assert told == {
        "abort": "ended by SIGABRT",
        "exit": "ended with code 0",
        "signal": "ended by signal 40",
        "overflow": "ended by SIGSEGV",
        "close": "ended with code 0",
        "half": "ended by SIGKILL",
        "scribble": f"{garbage}ValueError: a frame of 1952999795 bytes",
        "nested": f"{garbage}RecursionError: {told['nested'].rpartition('RecursionError: ')[2]}",
    }
    assert answered


async def test_library_that_eats_memory_is_the_first_that_the_kernel_ends(root: Path) -> None:
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        assert pid is not None
        score = of_process(pid, "oom_score_adj")
        most = int(of_process(pid, "statm").split()[0]) * resource.getpagesize() + 64 * MIB
        resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
        order(root, discover="eat")
        report = await source.read()
        order(root, discover="")
        await read_again(source)

    assert score == "1000\n"
    assert "its process ended by SIGABRT" in report.problems[0].reason


def of_process(pid: int, file: str) -> str:
    return Path(f"/proc/{pid}/{file}").read_text()


async def test_child_that_a_library_forked_keeps_no_end_from_being_told(root: Path) -> None:
    """Seen: it held the connection, so the process was taken for one that cannot be killed."""
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        order(root, edits="fork crash")
        with pytest.raises(WorkerDied, match="its process ended by SIGSEGV"):
            await source.work(calls.EDITS, (grant(),), ())
        await read_again(source)
        await until(lambda: not members(pid))

    assert (source.restarts["crash"], source.stuck) == (1, 0)


async def test_child_that_a_library_forked_ends_with_the_agent(root: Path) -> None:
    """Seen: it outlived the agent, and held its standard error."""
    order(root, edits="fork hang")
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        hanging = asyncio.create_task(source.work(calls.EDITS, (grant(),), ()))
        await until(lambda: len(members(pid)) == 2)

    await until(lambda: not members(pid))
    await asyncio.gather(hanging, return_exceptions=True)


async def test_process_that_is_stopped_is_ended_and_replaced(root: Path) -> None:
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        late = await hurried(source)
        again = await read_again(source)
        stuck = source.stuck

    assert [p.code for p in late.problems] == ["source-timeout"]
    assert again.answered
    assert not is_alive(pid)
    assert (source.restarts["deadline"], stuck) == (1, 0)


def members(group: int | None) -> list[str]:
    """Processes of a group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ends
            continue
        if int(its_group) == group and state not in "XZ":
            found.append(stat.parent.name)
    return found


async def test_process_that_a_library_has_changed_answers_and_can_still_be_ended(
    root: Path,
) -> None:
    order(root, conditions="threads mask leave", edits="threads mask leave drop")
    async with asked(isolated(root)) as source:
        devices = (await source.read()).devices
        health = await source.assess(devices, ())
        changed = pid_of(source)
    async with asked(isolated(root)) as source:
        await source.read()
        hanging = pid_of(source)
        source.lanes.scale = HURRY
        with pytest.raises(SourceTimeout):
            await source.work(calls.EDITS, (grant(),), ())
        stuck = source.stuck

    assert devices
    assert not health.failed
    assert not is_alive(changed)  # it left when nobody needed it any more
    assert not is_alive(hanging)
    assert stuck == 0


async def test_answer_that_is_too_long_is_a_bug_of_the_vendor(root: Path) -> None:
    order(root, length=str(20 * MIB))
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        with pytest.raises(PluginError, match="bytes are told at once, of at most"):
            await source.work(calls.EDITS, (grant(),), ())
        report = await source.read()

        assert report.answered
        assert pid_of(source) == pid


@contextmanager
def room_for(files: int) -> Iterator[None]:
    """Let this process open so many *files* more."""
    for thread in threading.enumerate():  # of processes from before: theirs are closed soon
        if thread.name.startswith("worker-"):
            thread.join(PATIENCE_S)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(open_files("self")) + 1 + files
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    opened = []
    try:
        with suppress(OSError):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(files):
            os.close(opened.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in opened:
            os.close(file)


async def test_lack_of_files_is_told_and_leaves_nothing_open(root: Path) -> None:
    before = open_files("self").keys()
    told = []
    for files in range(5):
        asks = Remote(isolated(root), RealClock())
        with room_for(files), pytest.raises(SourceError) as caught:
            asks.ask(calls.SIGNALS, (), PATIENCE_S)
        told.append(str(caught.value).partition(": [Errno")[0])
        asks.close()

    await until(lambda: open_files("self").keys() <= before)
    assert told == [
        *["acme cannot be asked: no process can be started for it"] * 3,
        *["acme: signals got no answer: its process cannot be started"] * 2,
    ]


async def test_process_is_started_when_there_are_files_again(root: Path) -> None:
    async with asked(isolated(root)) as source:
        with room_for(2):
            report = await source.read()
        again = await source.read()

    assert [p.code for p in report.problems] == ["source-failed"]
    assert again.answered
    assert sum(source.restarts.values()) == 0


async def test_nothing_is_left_of_many_processes_that_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(remote_process, "COMMAND", (shutil.which("false"),))
    asks = Remote(isolated(root), RealClock())

    def end() -> None:
        with pytest.raises(WorkerDied):
            asks.ask(calls.SIGNALS, (), PATIENCE_S)

    threads, files = threading.active_count(), len(open_files("self"))
    for _ in range(201):
        end()

    await until(lambda: threading.active_count() <= threads)
    await until(lambda: len(open_files("self")) <= files)
    assert asks.restarts["exit"] == 200
    assert not [pid for pid in children() if not is_alive(pid)]


def children() -> list[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]
