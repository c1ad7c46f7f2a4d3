import threading

import pytest

from accelkit import SourceError
from accelkit.vendors.nvidia import xid
from accelkit.vendors.nvidia.nvml import Rubbish
from accelkit.vendors.nvidia.patience import Patience
from tests.vendors.nvidia.bench import Answer, Liar, Make


def test_xid_is_heard_once(bench: Make) -> None:
    made = bench("h100", 2)
    second = made.devices()[1]
    made.listen()
    made.do("xid gpu-1 79")
    (event,) = made.listen()

    assert (event.subject, event.code, event.source) == (second.handle, "xid-79", "nvml")
    assert made.listen() == []


@pytest.mark.parametrize("event", ["xid gpu-1 79", "xid gpu-1 79 9"])
def test_event_of_a_gpu_that_is_lost_meanwhile_is_still_its_own(bench: Make, event: str) -> None:
    made = bench("h100", 2)
    second = made.devices()[1]
    made.listen()
    made.do(event, "lose gpu-1")

    assert [e.subject for e in made.listen()] == [second.handle]


def test_wait_ends_with_the_event(bench: Make) -> None:
    made = bench("h100", 1)
    made.listen()
    heard: list[str] = []

    def wait() -> None:
        heard.extend(e.code for e in made.vendor.listen(made.host, 15.0))

    thread = threading.Thread(target=wait)
    thread.start()
    made.do("xid gpu-0 48")
    thread.join()

    assert heard == ["xid-48"]


def test_wait_ends_when_the_driver_goes(bench: Make) -> None:
    made = bench("h100", 1)
    made.listen()
    failed: list[str] = []

    def wait() -> None:
        try:
            list(made.vendor.listen(made.host, 15.0))
        except SourceError as error:
            failed.append(error.code)

    thread = threading.Thread(target=wait)
    thread.start()
    made.do("unload")
    thread.join()

    assert failed == ["driver-not-ready"]


def test_events_are_heard_after_a_simulated_reboot(bench: Make) -> None:
    made = bench("h100", 1)
    made.listen()
    made.do("xid gpu-0 13", "reboot", "xid gpu-0 48")

    assert [e.code for e in made.listen()] == ["xid-48"]


def test_events_that_came_together_are_all_heard(bench: Make) -> None:
    made = bench("h100", 2)
    made.listen()
    made.do("xid gpu-0 13", "xid gpu-1 31", "xid gpu-0 999")

    assert [e.code for e in made.listen()] == ["xid-13", "xid-31", "xid-999"]


def test_event_of_an_instance_names_it(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "create-mig gpu-0 1g.10gb 1")
    _, _, second = made.devices()
    made.listen()
    made.do("xid gpu-0 94 8")
    (event,) = made.listen()

    assert event.subject == second.handle
    assert event.data == {"gpu-instance": "8", "compute-instance": "0"}


def test_event_of_an_instance_that_is_gone_is_told_of_the_gpu(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on")
    (device,) = made.devices()
    made.listen()
    made.do("xid gpu-0 94 9")

    assert [e.subject for e in made.listen()] == [device.handle]


def test_platform_without_events_is_no_error(bench: Make) -> None:
    """All of its devices would be unknown for ever."""
    made = bench("h100", 1)
    made.fail("nvmlEventSetCreate", "error 3")

    assert made.listen() == []


def test_failed_wait_is_raised_and_the_next_call_registers_again(bench: Make) -> None:
    """Seen elsewhere: a failing wait marked all devices unhealthy in an endless loop."""
    made = bench("h100", 1)
    made.listen()
    made.fail("nvmlEventSetWait_v2", "error 999", times=1)
    with pytest.raises(SourceError):
        made.listen()
    made.listen()
    made.do("xid gpu-0 62")

    assert [e.code for e in made.listen()] == ["xid-62"]


def test_listening_goes_on_after_the_session_was_dropped(bench: Make) -> None:
    made = bench("h100", 1)
    made.listen()
    made.vendor.close()
    made.listen()
    made.do("xid gpu-0 48")

    assert [e.code for e in made.listen()] == ["xid-48"]


def test_gpu_that_comes_later_is_heard_too(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("bind gpu-1 none")
    made.listen()
    made.do("bind gpu-1 nvidia")
    made.listen()
    made.do("xid gpu-1 62")

    assert [e.code for e in made.listen()] == ["xid-62"]


def test_sick_gpu_does_not_keep_the_others_from_being_heard(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("lose gpu-0")
    made.listen()
    made.do("xid gpu-1 62")

    assert [e.code for e in made.listen()] == ["xid-62"]


def test_gpu_that_hangs_keeps_nobody_from_hearing_others_and_is_heard_in_the_end(
    bench: Make,
) -> None:
    made = bench("h100", 2)
    made.vendor._ear._registering = Patience(0.3)
    made.do("hang gpu-0 1s")
    made.listen()
    made.do("xid gpu-1 62")
    of_others = made.listen()
    for thread in tuple(made.vendor._ear._registering._running.values()):
        thread.join()
    made.do("xid gpu-0 48")

    assert [e.code for e in of_others] == ["xid-62"]
    assert [e.code for e in made.listen()] == ["xid-48"]


@pytest.mark.parametrize("hangs", [True, False])
def test_events_to_which_a_gpu_may_still_be_added_are_not_freed(
    bench: Make, *, hangs: bool
) -> None:
    """The library would write into memory that it has given back."""
    made = bench("h100", 2)
    made.vendor._ear._registering = Patience(0.3)
    host, freed = Liar(made.directory), []

    def free(honest: Answer, events: object) -> int:
        freed.append(events)
        return honest(events)

    host.lies = {"nvmlEventSetFree": free}
    if hangs:
        made.do("hang gpu-0 1s")
    list(made.vendor.listen(host, 0.0))
    made.fail("nvmlEventSetWait_v2", "error 999", times=1)
    with pytest.raises(SourceError):
        list(made.vendor.listen(host, 0.0))

    assert bool(freed) is not hangs


def test_event_of_another_kind_has_its_own_code(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.listen()
    made.do(f"event gpu-0 {xid.RECOVERY_EVENT}")

    assert [(e.subject, e.code) for e in made.listen()] == [(device.handle, "recovery-action")]


def test_event_of_a_kind_that_nobody_knows_is_rubbish(bench: Make) -> None:
    made = bench("h100", 1)
    made.listen()
    made.do("event gpu-0 4096")

    with pytest.raises(Rubbish):
        made.listen()


def test_gpus_without_events_are_no_error(bench: Make) -> None:
    """Seen elsewhere: devices that do not support events were marked unhealthy."""
    made = bench("h100", 1)
    made.fail("nvmlDeviceGetSupportedEventTypes", "error 3")

    assert made.listen() == []
