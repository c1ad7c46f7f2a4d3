import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from accelkit.agent import lanes
from accelkit.agent.lanes import DEADLINES_S, Lane, Lanes
from accelkit.core.clock import RealClock
from accelkit.core.errors import DriverNotReady, PluginError, SourceError, SourceTimeout
from tests.agent.toys import PATIENCE_S, until


def lane(freed: Callable[[], None] = lambda: None) -> Lane:
    return Lane("toy", RealClock(), freed=freed)


async def test_call_runs_in_a_daemon_thread_and_its_answer_comes_back() -> None:
    thread = await lane().call("discover", threading.current_thread, deadline_s=PATIENCE_S)

    assert thread is not threading.current_thread()
    assert thread.daemon


async def test_lane_for_which_there_was_no_thread_has_one_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen: it was taken for a bug of the plugin, and every later call for one that hangs."""
    one = lane()
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(SourceError, match="toy cannot be asked: no thread can be started"):
            await one.call("discover", lambda: 1, deadline_s=PATIENCE_S)
        assert (one.running, one.busy) == (None, False)

    assert await one.call("discover", lambda: 2, deadline_s=PATIENCE_S) == 2


async def test_lane_whose_thread_died_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lack of memory ends a thread anywhere."""
    freed: list[int] = []
    one = lane(lambda: freed.append(1))

    with monkeypatch.context() as short:
        short.setattr(lanes, "_work_off", lambda _jobs: None)
        with pytest.raises(SourceTimeout):
            await one.call("discover", lambda: 1, deadline_s=0.2)
    assert one._thread is not None
    one._thread.join()

    assert await one.call("discover", lambda: 2, deadline_s=PATIENCE_S) == 2
    assert (one.busy, freed) == (False, [1])


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_calls_of_a_lane_never_overlap() -> None:
    one = lane()
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()

    await asyncio.gather(*(one.call("x", work, deadline_s=PATIENCE_S) for _ in range(5)))

    assert most == [1] * 5


async def test_error_of_the_vendor_reaches_the_caller() -> None:
    def work() -> None:
        raise DriverNotReady("not loaded")

    with pytest.raises(DriverNotReady, match="not loaded"):
        await lane().call("discover", work, deadline_s=PATIENCE_S)


async def test_timeout_error_of_the_vendor_is_not_taken_for_the_deadline() -> None:
    one = lane()

    def work() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await one.call("discover", work, deadline_s=PATIENCE_S)
    assert not one.stuck


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration(), KeyboardInterrupt()])
async def test_what_no_caller_may_see_becomes_a_bug_of_the_plugin(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(PluginError, match=type(error).__name__):
        await lane().call("discover", work, deadline_s=PATIENCE_S)


async def test_overrun_call_leaves_the_lane_stuck_until_its_thread_returns() -> None:
    go = threading.Event()
    freed: list[bool] = []
    one = lane(freed=lambda: freed.append(True))

    with pytest.raises(SourceTimeout, match="discover got no answer"):
        await one.call("discover", go.wait, deadline_s=0.01)
    with pytest.raises(SourceTimeout, match="an earlier call, discover, still hangs"):
        await one.call("links", lambda: "never asked", deadline_s=PATIENCE_S)
    assert one.stuck
    go.set()
    await until(lambda: not one.stuck)

    assert freed == [True]
    assert await one.call("links", lambda: "asked", deadline_s=PATIENCE_S) == "asked"


async def test_call_that_waited_for_its_turn_fails_when_the_lane_gets_stuck() -> None:
    go = threading.Event()
    one = lane()
    first = asyncio.create_task(one.call("discover", go.wait, deadline_s=0.05))
    await asyncio.sleep(0)
    second = asyncio.create_task(one.call("links", lambda: None, deadline_s=PATIENCE_S))

    with pytest.raises(SourceTimeout):
        await first
    with pytest.raises(SourceTimeout, match="still hangs"):
        await second
    go.set()
    await until(lambda: not one.stuck)


async def test_call_that_ends_by_itself_soon_after_its_deadline_is_heard() -> None:
    one = Lane("toy", RealClock(), margin_s=PATIENCE_S)

    def late() -> str:
        time.sleep(0.05)
        return "told"

    assert await one.call("discover", late, deadline_s=0.01) == "told"
    assert not one.stuck


async def test_late_answer_is_not_given_to_the_next_caller() -> None:
    go = threading.Event()
    one = lane()
    with pytest.raises(SourceTimeout):
        await one.call("discover", lambda: (go.wait(), "late")[1], deadline_s=0.01)
    go.set()
    await until(lambda: not one.stuck)

    assert await one.call("discover", lambda: "fresh", deadline_s=PATIENCE_S) == "fresh"


async def test_call_whose_caller_was_cancelled_holds_its_lane_until_it_returns() -> None:
    go = threading.Event()
    one = lane()
    task = asyncio.create_task(one.call("edits", go.wait, deadline_s=PATIENCE_S))
    await until(lambda: one.running)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert one.stuck
    go.set()
    await until(lambda: not one.stuck)


async def test_calls_are_observed_with_their_outcome() -> None:
    seen: list[tuple[str, str]] = []
    one = Lane(
        "toy", RealClock(), observe=lambda call, outcome, _seconds: seen.append((call, outcome))
    )

    def not_ready() -> None:
        raise DriverNotReady("x")

    def broken() -> None:
        raise ZeroDivisionError

    await one.call("a", lambda: None, deadline_s=PATIENCE_S)
    for name, work in (("b", not_ready), ("c", broken)):
        with pytest.raises((DriverNotReady, ZeroDivisionError)):
            await one.call(name, work, deadline_s=PATIENCE_S)

    assert seen == [("a", "ok"), ("b", "driver-not-ready"), ("c", "plugin-bug")]


async def test_thread_ends_after_close() -> None:
    one = lane()
    thread = await one.call("x", threading.current_thread, deadline_s=PATIENCE_S)

    one.close()

    await until(lambda: not thread.is_alive())


async def test_last_call_is_made_in_the_thread_and_may_fail() -> None:
    one = lane()
    thread = await one.call("x", threading.current_thread, deadline_s=PATIENCE_S)
    seen: list[threading.Thread] = []

    def last() -> None:
        seen.append(threading.current_thread())
        raise SystemExit

    one.close(last)
    await until(lambda: not thread.is_alive())

    assert seen == [thread]


async def test_lane_that_was_never_used_ends_without_a_last_call() -> None:
    seen: list[bool] = []

    lane().close(lambda: seen.append(True))

    assert seen == []


async def test_read_work_and_listen_calls_overlap() -> None:
    lanes = Lanes("toy", 1, 1.0, RealClock())
    together = threading.Barrier(3, timeout=PATIENCE_S)

    await asyncio.gather(
        lanes.read("inventory", together.wait),
        lanes.work("edits", together.wait),
        lanes.listen(together.wait),
    )


async def test_work_calls_overlap_as_far_as_the_vendor_allows() -> None:
    lanes = Lanes("toy", 2, 1.0, RealClock())
    together = threading.Barrier(2, timeout=PATIENCE_S)

    await asyncio.gather(*(lanes.work("edits", together.wait) for _ in range(2)))


async def test_work_call_avoids_a_stuck_lane() -> None:
    lanes = Lanes("toy", 2, 0.1, RealClock())  # calls that end get half a second
    go = threading.Event()
    with pytest.raises(SourceTimeout):
        await lanes.work("edits", go.wait)
    assert lanes.stuck == 1

    answers = [await Lanes.work(lanes, "edits", lambda: 1) for _ in range(3)]

    assert answers == [1, 1, 1]
    go.set()
    await until(lambda: lanes.stuck == 0)


async def test_scale_multiplies_deadlines() -> None:
    lanes = Lanes("toy", 1, 0.001, RealClock())
    go = threading.Event()

    with pytest.raises(SourceTimeout, match=f"no answer in {DEADLINES_S['inventory'] / 1000:g} s"):
        await lanes.read("inventory", go.wait)
    go.set()
    await until(lambda: lanes.stuck == 0)
