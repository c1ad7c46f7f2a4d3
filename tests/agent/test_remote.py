"""Vendors in processes of their own, with a library that was compiled."""

import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
import termios
import threading
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from accelkit.agent import calls, remote, remote_process
from accelkit.agent.calls import Isolated
from accelkit.agent.remote import Remote
from accelkit.agent.remote_process import WorkerProcess
from accelkit.agent.sources import Source
from accelkit.core.allocation import Grant, Granted
from accelkit.core.clock import RealClock
from accelkit.core.errors import PluginError, SourceError, StartOver, WorkerDied
from accelkit.core.host import Host
from accelkit.core.model import Device, Placement, Unreadable
from accelkit.core.policy import Offer, Sharing, Timeslice
from accelkit.core.vendor import Signal
from accelkit.testing.hosts import open_host
from accelkit.testing.simulate import simulate
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.agent.acme import AcmeClaim, isolated
from tests.agent.acme_host import order
from tests.agent.remotes import (
    PATIENCE_S,
    asked,
    grant,
    hurried,
    is_alive,
    pid_of,
    pids,
    read_again,
    until,
)
from tests.agent.toys import Cutting, Toy, cut_host
from tests.open_files import open_files
from tests.processes import ROOT

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.usefixtures("soon")]


async def test_vendor_is_asked_in_one_process_that_is_not_this_one(root: Path) -> None:
    async with asked(isolated(root)) as source:
        first, second = await source.read(), await source.read()

        assert [d.id.name for d in first.devices] == ["a0", "a1"]
        assert pids(first) == pids(second) == {pid_of(source)} != {os.getpid()}


async def test_call_that_hangs_in_the_library_costs_its_process_alone(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with asked(isolated(root)) as source, asked(Toy()) as other:
        before = pids(await source.read())
        order(root, discover="hang")
        hanging = asyncio.create_task(hurried(source))
        await asyncio.sleep(0)
        answered = await other.read()
        first_to_answer = not hanging.done()
        report = await hanging
        order(root, discover="")
        after = await read_again(source)

        assert (answered.answered, first_to_answer) == (True, True)
        assert [p.code for p in report.problems] == ["source-timeout"]
        assert not is_alive(next(iter(before)))  # type: ignore[arg-type]  # a number
        assert pids(after).isdisjoint(before)
        assert (source.restarts["deadline"], source.stuck) == (1, 0)
        trace = next(r.trace for r in caplog.records if r.getMessage() == "worker ended")  # type: ignore[attr-defined]  # an extra of ours
        assert "acme.py" in trace
        assert "in discover" in trace


async def test_library_that_crashes_is_told_as_the_signal_that_ended_its_process(
    root: Path,
) -> None:
    async with asked(isolated(root)) as source:
        await source.read()
        order(root, edits="crash")
        with pytest.raises(WorkerDied) as caught:
            await source.work(calls.EDITS, (grant(),), ())
        order(root, edits="")
        again = await read_again(source)

    assert (caught.value.signal, caught.value.operation) == (signal.SIGSEGV, "edits")
    assert "edits got no answer: its process ended by SIGSEGV" in str(caught.value)
    assert caught.value.retryable
    assert again.answered
    assert source.restarts["crash"] == 1


async def test_process_that_ended_before_it_read_a_call_is_told_as_one_that_ended(
    root: Path,
) -> None:
    """Seen: it was taken for one that writes rubbish."""
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        work = asyncio.create_task(source.work(calls.EDITS, (grant(),), ()))
        await until(lambda: unread(source))
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match="its process ended by SIGKILL"):
            await work
        await read_again(source)

    assert (source.restarts["crash"], source.restarts["garbage"]) == (1, 0)


def unread(source: Source) -> int:
    """Bytes that its process has not read yet."""
    assert isinstance(source._asked, Remote)
    assert source._asked._worker is not None
    answer = fcntl.ioctl(source._asked._worker._connection, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


async def test_calls_of_a_process_overlap_and_end_with_it(root: Path, tmp_path: Path) -> None:
    marks = [tmp_path / "conditions", tmp_path / "listen"]
    order(root, edits="crash", **{mark.name: f"mark {mark} sleep 600" for mark in marks})
    async with asked(isolated(root)) as source:
        devices = (await source.read()).devices
        assess = asyncio.create_task(source.assess(devices, ()))
        listen = asyncio.create_task(source.listen())
        await until(lambda: all(mark.exists() for mark in marks))
        with pytest.raises(WorkerDied):
            await source.work(calls.EDITS, (grant(),), ())
        health, heard = await assess, await listen

    assert {p.code for p in health.failed.values()} == {"worker-died"}
    assert [event.code for event in heard] == ["heard"]


async def test_event_that_was_heard_before_the_process_ended_is_told_first(root: Path) -> None:
    order(root, listen="crash")
    async with asked(isolated(root)) as source:
        heard = await source.listen()
        with pytest.raises(WorkerDied):
            await source.listen()

    assert [(event.subject, event.code) for event in heard] == [("a0", "heard")]


async def test_process_that_ends_by_itself_is_told_with_its_code(root: Path) -> None:
    order(root, discover="exit 3")
    async with asked(isolated(root)) as source:
        report = await source.read()
        order(root, discover="")
        await read_again(source)

    assert [p.reason for p in report.problems] == [
        "acme: inventory got no answer: its process ended with code 3"
    ]
    assert source.restarts["exit"] == 1


async def test_process_that_ended_while_nobody_asked_is_replaced_without_a_word(
    root: Path,
) -> None:
    async with asked(isolated(root)) as source:
        before = pid_of(source)
        await source.read()
        before = pid_of(source)
        assert before is not None
        os.kill(before, signal.SIGKILL)
        await until(lambda: pid_of(source) is None)
        rung = await source.inventory.wait(RealClock(), PATIENCE_S)
        report = await source.read()

    assert (rung, report.answered) == (True, True)
    assert pids(report).isdisjoint({before})


async def test_between_two_processes_calls_fail_at_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PAUSES_S", (600.0, 600.0))
    order(root, discover="crash")
    async with asked(isolated(root)) as source:
        first, second = await source.read(), await source.read()

    assert [p.code for p in (*first.problems, *second.problems)] == ["worker-died"] * 2
    assert first.problems[0].reason == second.problems[0].reason
    assert source.restarts["crash"] == 0


class StillClock(RealClock):
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


async def test_pauses_between_processes_grow_until_one_lived_long(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PAUSES_S", (1.0, 60.0))
    clock = StillClock()
    pauses: list[float] = []
    asks = Remote(isolated(root), clock, pauses.append)
    order(root, discover="exit 0")

    def fail() -> None:
        with pytest.raises(WorkerDied):
            asks.ask(calls.INVENTORY, (), PATIENCE_S)
        clock.now_s += pauses[-1]

    for _ in range(8):
        await asyncio.to_thread(fail)
    order(root, discover="")
    await asyncio.to_thread(asks.ask, calls.INVENTORY, (), PATIENCE_S)
    clock.now_s += remote.CLEAN_S
    order(root, discover="exit 0")
    await asyncio.to_thread(fail)

    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 1.0]


async def test_vendor_that_asks_to_start_over_gets_a_new_process(root: Path) -> None:
    async with asked(isolated(root)) as source:
        before = pids(await source.read())
        order(root, discover="start-over")
        report = await source.read()
        while_waiting = await source.read()
        order(root, discover="")
        after = pids(await read_again(source))

    assert [p.code for p in report.problems] == ["start-over"]
    assert [p.code for p in while_waiting.problems] == ["start-over"]
    assert before.isdisjoint(after)
    assert source.restarts["start-over"] == 1


async def test_work_call_that_asks_to_start_over_fails_with_the_words_of_the_vendor(
    root: Path,
) -> None:
    order(root, edits="start-over", conditions="start-over")
    async with asked(isolated(root)) as source:
        with pytest.raises(StartOver, match="library and driver differ") as caught:
            await source.work(calls.EDITS, (grant(),), ())
        devices = (await read_again(source)).devices
        health = await source.assess(devices, ())
        await read_again(source)

    assert caught.value.remedy == "reload the driver"
    assert {p.code for p in health.failed.values()} == {"start-over"}
    assert source.restarts["start-over"] == 2


async def test_bug_of_the_vendor_is_told_as_in_a_thread(root: Path) -> None:
    order(root, discover="raise", edits="raise")
    async with asked(isolated(root)) as source:
        report = await source.read()
        with pytest.raises(PluginError, match=r"edits of acme: ZeroDivisionError: a bug \(at "):
            await source.work(calls.EDITS, (grant(),), ())
        pid = pid_of(source)

    assert [(p.code, p.vendor) for p in report.problems] == [("plugin-bug", "acme")]
    assert pid is not None


async def test_vendor_that_cannot_be_made_says_so_at_every_call(root: Path) -> None:
    async with asked(isolated(root, bad="raise")) as source:
        reports = [await source.read(), await source.read()]

    assert [[p.reason for p in report.problems] for report in reports] == [
        ["acme cannot be made: ZeroDivisionError: a bug"]
    ] * 2
    assert sum(source.restarts.values()) == 0


async def test_vendor_that_ends_its_process_when_it_is_made_is_tried_again(root: Path) -> None:
    async with asked(isolated(root, bad="exit 9")) as source:
        report = await source.read()
        assert await source.inventory.wait(RealClock(), PATIENCE_S)
        again = await source.read()

    assert [p.code for p in (*report.problems, *again.problems)] == ["worker-died"] * 2
    assert source.restarts["exit"] == 1


async def test_vendor_that_hangs_when_it_is_made_is_given_up(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_process, "START_S", 0.5)
    async with asked(isolated(root, bad="sleep 600")) as source:
        report = await source.read()

    assert [p.code for p in report.problems] == ["source-timeout"]


async def test_process_that_cannot_be_started_is_told_as_one_that_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_process, "COMMAND", (str(root / "no-python"),))
    async with asked(isolated(root)) as source:
        report = await source.read()

    assert [p.code for p in report.problems] == ["worker-died"]
    assert "its process cannot be started: " in report.problems[0].reason


async def test_process_that_writes_what_is_no_answer_is_replaced(root: Path) -> None:
    order(root, discover="garbage")
    async with asked(isolated(root)) as source:
        report = await source.read()
        order(root, discover="")
        again = await read_again(source)

    assert "was killed, for it wrote what is no answer" in report.problems[0].reason
    assert again.answered
    assert source.restarts["garbage"] == 1


async def test_lines_of_its_log_go_where_those_of_the_agent_go(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    order(root, discover="log")
    async with asked(isolated(root)) as source:
        await source.read()

    (line,) = [r for r in caplog.records if r.getMessage() == "acme speaks"]
    assert (line.name, line.levelno) == ("tests.agent.acme", logging.WARNING)
    assert (vars(line)["vendor"], vars(line)["device"]) == ("acme", "a0")


async def test_block_of_a_claim_arrives_as_the_class_of_the_vendor(root: Path) -> None:
    async with asked(isolated(root)) as source:
        edits = await source.work(calls.EDITS, (grant(AcmeClaim(level=3)),), ())
        bare = await source.work(calls.EDITS, (grant(),), ())

    assert [e.env for e in edits.each.values()] == [{"ACME": "AcmeClaim(level=3)"}]
    assert [e.env for e in bare.each.values()] == [{"ACME": "None"}]


async def test_every_call_answers_as_in_a_thread(tmp_path: Path) -> None:
    cut = cut_host(tmp_path)
    far = Isolated(kind=Cutting, host=str(tmp_path / "host"))
    half = Placement(profile="half", start=0, size=1)
    long = Sharing(timeslice=Timeslice.LONG)

    async def everything(source: Source) -> list[object]:
        report = await source.read()
        whole = report.devices[0]
        made = await source.work(calls.CREATE, (whole, half), {whole.id})
        found = await source.look(calls.FIND, frozenset({made.id}), frozenset({"a"}))
        grant = Grant(owner="claim", granted=(Granted(device=whole),), sharing=long)
        (setting,) = await source.work(calls.NEEDS, (grant,), ())
        await source.work(calls.APPLY, (setting,), ())
        applied = cut.read("/cut/switch")
        await source.work(calls.REVERT, (setting,), ())
        edits = await source.work(calls.EDITS, (grant,), ())
        lone = await source.work(calls.LONE_EDITS, (whole, Offer(name="all")), ())
        await source.work(calls.DESTROY, (made,), {whole.id})
        gone = await source.look(calls.FIND, frozenset({made.id}), frozenset())
        await source.work(calls.SET_MODE, (whole, "whole"), {whole.id})
        mode = cut.read("/cut/mode")
        await source.work(calls.SET_MODE, (whole, "cut"), {whole.id})
        health = await source.assess(report.devices, ())
        signals = await source.look(calls.SIGNALS)
        return [
            *(attrs.evolve(report, took_s=0.0), made, found, setting, applied, edits, lone),
            *(gone, mode, health, signals),
        ]

    async with asked(far) as source:
        apart = await everything(source)
    source = Source(Cutting(), cut, 1.0, RealClock())
    here = await everything(source)
    source.close()

    assert apart == here


async def test_vendor_with_every_ability_says_the_same_in_a_process(tmp_path: Path) -> None:
    simulate("nvidia", "h100", 2, str(tmp_path / "gpus"))
    host = open_host(str(tmp_path / "gpus"))
    far = Isolated(kind=Nvidia, options={"ignoreXids": [13]}, host=str(tmp_path / "gpus"))
    near = Nvidia(NvidiaOptions(ignore_xids=(13,)))

    async def everything(source: Source) -> list[object]:
        report = await source.read()
        devices = report.devices
        xid = f"NVRM: Xid (PCI:{devices[0].locality.pci_address}): 79, GPU has fallen off the bus."
        grant = Grant(owner="claim", granted=tuple(Granted(device=d) for d in devices))
        return [
            attrs.evolve(report, took_s=0.0),
            await source.assess(devices, ()),
            await source.look(calls.HOLDERS, devices),
            await source.look(calls.INTERPRET, Signal(source="kernel", text=xid)),
            await source.look(calls.DIAGNOSE),
            {(s.device, s.metric) for s in await source.look(calls.SAMPLES, devices)},
            await source.work(calls.NEEDED, (grant,), ()),
            await source.work(calls.SET_EDITS, (grant,), ()),
        ]

    async with asked(far) as source:
        source.lanes.scale = 10.0  # of 0.1 s for a signal
        apart = await everything(source)
    source = Source(near, host, 1.0, RealClock())
    here = await everything(source)
    source.close()

    assert apart == here


async def test_call_that_may_not_write_cannot_in_a_process_either(tmp_path: Path) -> None:
    cut_host(tmp_path)
    far = Isolated(kind=Writing, host=str(tmp_path / "host"))
    async with asked(far) as source:
        report = await source.read()

    assert [p.code for p in report.problems] == ["access-denied"]


async def test_process_ends_when_its_vendor_is_closed_whatever_hangs_there(root: Path) -> None:
    order(root, edits="sleep 600")
    async with asked(isolated(root)) as source:
        await source.read()
        work = asyncio.create_task(source.work(calls.EDITS, (grant(),), ()))
        await until(lambda: any(lane.running for lane in source.lanes.all))
        pid = pid_of(source)
        source.close()
        await until(lambda: not is_alive(pid))
        with pytest.raises(WorkerDied):
            await work
        assert isinstance(source._asked, Remote)
        with pytest.raises(SourceError):
            source._asked.ask(calls.INVENTORY, (), PATIENCE_S)


AGENT = """
import sys
import termios
from accelkit.agent import calls
from accelkit.agent.remote import Remote
from accelkit.core.clock import RealClock
from accelkit.core.vendor import Signal
from accelkit.testing.hosts import open_host
from accelkit.testing.simulate import simulate
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.agent.acme import isolated
from pathlib import Path
asks = Remote(isolated(Path(sys.argv[1])), RealClock())
asks.ask(calls.SIGNALS, (), 60.0)
print(asks.pid, flush=True)
asks.ask(calls.INVENTORY, (), 600.0)
"""


async def test_process_ends_with_its_agent_even_if_a_library_keeps_the_interpreter(
    root: Path,
) -> None:
    mark = root / "mark"
    order(root, discover=f"mark {mark} hang-alone")
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", AGENT, str(root)), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert agent.stdout is not None
    pid = int(await agent.stdout.readline())
    await until(mark.exists)

    agent.kill()
    await agent.wait()

    await until(lambda: not is_alive(pid))


async def test_process_has_nothing_of_the_agent_open(root: Path, tmp_path: Path) -> None:
    lock = (tmp_path / "leader.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    with socket.socket(socket.AF_UNIX) as served, lock:
        served.bind(str(tmp_path / "served.sock"))
        served.listen()
        lock_fd, served_fd = lock.fileno(), served.fileno()
        async with asked(isolated(root)) as source:
            await source.read()
            own, theirs = open_files("self"), open_files(pid_of(source)).values()

    assert {own[lock_fd], own[served_fd]}.isdisjoint(theirs)
    assert len([name for name in theirs if name.startswith("socket:")]) == 1


async def test_process_hears_no_signal_that_is_meant_for_the_agent(root: Path) -> None:
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        assert pid is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
        report = await source.read()

        assert pids(report) == {pid}
        assert os.getsid(pid) == pid


class Writing(Toy):
    """Tries to change the host while it is read."""

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        host.write("/cut/mode", "changed")
        return ()


def test_process_for_which_there_is_no_thread_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    before = open_files("self").values()

    with pytest.raises(SourceError, match="toy cannot be asked: no thread can be started"):
        WorkerProcess("toy", {}, lambda _worker, _end: None)

    assert set(open_files("self").values()) <= set(before)
