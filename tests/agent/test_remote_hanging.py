"""Processes of vendors that hang in the kernel, where no signal reaches them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accelkit.agent import calls, remote, remote_process
from accelkit.core.clock import RealClock
from accelkit.core.errors import DriverUnresponsive, SourceTimeout
from tests.agent.acme import isolated
from tests.agent.freezer import Freezer, freezer
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
from tests.agent.toys import device

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.usefixtures("soon")]


@pytest.fixture
def ice() -> Iterator[Freezer]:
    with freezer() as found:
        yield found


@pytest.fixture(autouse=True)
def _given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_process, "KILL_S", 0.2)


async def test_process_that_cannot_be_killed_is_abandoned_for_a_new_one(
    root: Path, ice: Freezer
) -> None:
    async with asked(isolated(root)) as source:
        before = pids(await source.read())
        first = pid_of(source)
        assert first is not None
        ice.freeze(first)
        report = await hurried(source)
        after = pids(await read_again(source))
        lives, hanging = is_alive(first), source.stuck
        ice.thaw()
        await until(lambda: not is_alive(first))
        await until(lambda: source.stuck == 0)

    assert [p.code for p in report.problems] == ["source-timeout"]
    assert before.isdisjoint(after)
    assert (lives, hanging) == (True, 1)
    assert source.restarts["deadline"] == 1


async def test_no_more_than_two_processes_hang_in_the_driver(root: Path, ice: Freezer) -> None:
    async with asked(isolated(root)) as source:
        for _ in range(remote.MOST_ABANDONED):
            await read_again(source)
            pid = pid_of(source)
            assert pid is not None
            ice.freeze(pid)
            await hurried(source)
        report = await source.read()
        with pytest.raises(DriverUnresponsive, match="cannot be killed"):
            await source.work(calls.EDITS, (grant(),), ())
        hanging = source.stuck
        await source.inventory.wait(RealClock(), 0.0)
        ice.thaw()
        rung = await source.inventory.wait(RealClock(), PATIENCE_S)
        again = await read_again(source)

    assert [p.code for p in report.problems] == ["driver-unresponsive"]
    assert hanging == remote.MOST_ABANDONED
    assert (rung, again.answered) == (True, True)


async def test_device_that_an_abandoned_process_works_at_is_left_alone(
    root: Path, ice: Freezer
) -> None:
    """What the process still does when it comes back would undo what another one did."""
    ours, other = device("acme", "a0"), device("acme", "a1")
    async with asked(isolated(root)) as source:
        await source.read()
        pid = pid_of(source)
        assert pid is not None
        ice.freeze(pid)
        source.lanes.scale = 0.02
        with pytest.raises(SourceTimeout):
            await source.work(calls.EDITS, (grant(),), {ours})
        source.lanes.scale = 1.0
        await read_again(source)
        with pytest.raises(SourceTimeout, match="an earlier call still hangs in the driver"):
            await source.work(calls.EDITS, (grant(),), {ours})
        with pytest.raises(SourceTimeout, match="an earlier call still hangs in the driver"):
            source.check(calls.FIND, {ours})
        await source.work(calls.EDITS, (grant(),), {other})
        ice.thaw()
        await until(lambda: source.stuck == 0)
        await source.work(calls.EDITS, (grant(),), {ours})

    assert source.restarts["deadline"] == 1
