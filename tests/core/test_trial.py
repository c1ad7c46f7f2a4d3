"""Work that is tried in a process of its own first."""

import os
import threading

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


def test_how_the_process_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)

    trial = begin(lambda: os._exit(5))

    assert trial is not None
    assert trial.ended() == "with status 5"


def test_nothing_is_tried_beside_other_threads() -> None:
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()

    trial = begin(list)

    stop.set()
    other.join()
    assert trial is None
