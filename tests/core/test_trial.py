"""Work that is tried in a process of its own first."""

import os
import signal
import threading
from collections.abc import Callable

import pytest

from accelkit.core.trial import begin


@pytest.mark.parametrize("raised", [ValueError("odd"), KeyboardInterrupt(), SystemExit(3)])
def test_what_the_work_raises_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)

    def work() -> None:
        raise raised

    trial = begin(work)

    assert trial is not None
    assert trial.ended() == ""


def kill(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    "end,told",
    [
        (lambda: os._exit(5), "with code 5"),
        (kill(signal.SIGKILL), "by SIGKILL"),
        (kill(signal.SIGRTMIN + 6), "by signal 40"),
    ],
)
def test_how_the_process_ended_is_told(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[], None], told: str
) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)

    trial = begin(end)

    assert trial is not None
    assert trial.ended() == told


def test_work_that_hangs_ends_though_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr("accelkit.core.trial.LONGEST_S", 1)

    trial = begin(signal.pause)

    assert trial is not None
    assert trial.ended() == "by SIGALRM"


def test_nothing_is_tried_beside_other_threads() -> None:
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()

    trial = begin(list)

    stop.set()
    other.join()
    assert trial is None
