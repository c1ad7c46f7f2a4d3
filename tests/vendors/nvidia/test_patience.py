import threading

import pytest

from accelkit import Device, NotThere, SourceError, SourceTimeout
from accelkit.vendors.nvidia.patience import Patience
from tests.vendors.nvidia.bench import Bench, Make


def test_answers_and_errors_come_by_key() -> None:
    def fail() -> int:
        raise NotThere("gone")

    answers = Patience(10).gather({0: lambda: 7, 1: fail})

    assert answers[0] == 7
    assert isinstance(answers[1], NotThere)


def test_stuck_job_is_a_timeout_and_gets_no_second_thread() -> None:
    end = threading.Event()
    calls: list[int] = []

    def stuck() -> int:
        calls.append(1)
        end.wait()
        return 1

    patience = Patience(0.2)
    first = patience.gather({0: stuck, 1: lambda: 2})
    second = patience.gather({0: stuck, 1: lambda: 3})
    end.set()
    for thread in patience._running.values():
        thread.join()
    third = patience.gather({0: stuck})

    assert isinstance(first[0], SourceTimeout)
    assert isinstance(second[0], SourceTimeout)
    assert (first[1], second[1], third[0]) == (2, 3, 1)
    assert len(calls) == 2


def test_bug_of_a_job_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        Patience(10).gather({0: lambda: 1 // 0})


def test_job_for_which_there_is_no_thread_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: agents told so for a lack of memory, and to report it to the author of the plugin."""

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    patience = Patience(10)
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_thread)
        answers = patience.gather({0: lambda: 1})

    assert isinstance(answers[0], SourceError)
    assert "no thread can be started" in str(answers[0])
    assert patience.gather({0: lambda: 1}) == {0: 1}


def test_one_job_answers_or_raises_what_it_raised() -> None:
    def fail() -> int:
        raise NotThere("gone")

    patience = Patience(10)

    assert patience.ask("gpu", lambda: 7) == 7
    with pytest.raises(NotThere):
        patience.ask("gpu", fail)
    assert not patience.is_stuck


def test_gpu_that_hangs_keeps_nobody_from_hearing_of_others(bench: Make) -> None:
    """Seen: conditions and samples of all were lost, and the process with them, for one GPU."""
    made = bench("h100", 3)
    made.do("mig gpu-1 on", "create-mig gpu-1 1g.10gb 0", "hold gpu-0 7", "hold gpu-2 8")
    devices = made.devices()
    made.vendor._asking = Patience(0.5)
    made.do("hang gpu-1 2s")

    told = {device.id.name: answered(made, device) for device in devices}
    measured = {sample.device for sample in made.vendor.samples(made.host, devices)}
    held = {holding.holder.uid for holding in made.vendor.holders(made.host, devices)}

    well = [device for device in devices if device.root in {devices[0].root, devices[-1].root}]
    assert [name for name, answer in told.items() if answer] == [d.id.name for d in well]
    assert len(told) == 4
    assert measured == {device.id for device in well}
    assert held == {"7", "8"}
    assert made.vendor._asking.is_stuck


def answered(made: Bench, device: Device) -> bool:
    try:
        list(made.vendor.conditions(made.host, device, ()))
    except SourceTimeout:
        return False
    return True
