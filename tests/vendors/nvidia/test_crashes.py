"""A process may end at any change of hardware; the next one brings it to the same end."""

import re
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from accelkit import Placement, Setting
from accelkit.core.working import (
    create_partition,
    destroy_partition,
    look_for,
    revert_setting,
    set_device_mode,
)
from accelkit.testing.machine_host import MachineHost
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Answer, Bench, Liar, Make
from tests.vendors.nvidia.test_rubbish import symbols

PLACE = Placement(profile="1g.6gb", start=0, size=1)
Work = Callable[[Nvidia, MachineHost], object]


class Ended(BaseException):
    """Where a process ends, nothing is undone."""


def ends_at(bench: Bench, last: int, work: Work) -> bool:
    """Whether the process that does *work* gets to its change number *last*, where it ends.

    Even numbers end before the change, odd ones right after it; what only reads leaves nothing.
    """
    calls = count()

    def ending(function: Answer, *arguments: object) -> int:
        number = next(calls)
        if number == last // 2 and last % 2 == 0:
            raise Ended
        code = function(*arguments)
        if number == last // 2:
            raise Ended
        return code

    changing = [s for s in symbols(bench.directory) if re.search("Create|Destroy|DeviceSet", s)]
    host = Liar(bench.directory)
    host.lies = dict.fromkeys(changing, ending)
    try:
        work(Nvidia(NvidiaOptions()), host)
    except Ended:
        return True
    return False


def again(bench: Bench, work: Work) -> None:
    work(Nvidia(NvidiaOptions()), MachineHost(bench.directory))


@pytest.fixture
def cut(bench: Make) -> Bench:
    made = bench("a30", 1)
    made.do("mig gpu-0 on", "lag gpu-0 0s", "create-mig gpu-0 2g.12gb 2")
    return made


def test_partition_is_made_whenever_the_first_try_ended(cut: Bench) -> None:
    before = cut.devices()
    create = partial(create_partition, parent=before[0], placement=PLACE)
    ended, last = True, 0
    while ended:
        ended = ends_at(cut, last, create)
        made = create(cut.vendor, cut.host)
        last += 1

        assert set(cut.devices()) == {*before, made}
        cut.do("destroy-mig gpu-0 0")
    assert last == 2 * 2 + 1


def test_partition_is_unmade_whenever_the_first_try_ended(cut: Bench) -> None:
    before = cut.devices()
    ended, last = True, 0
    while ended:
        cut.do("create-mig gpu-0 1g.6gb 0")
        (part,) = set(cut.devices()) - {*before}
        destroy = partial(destroy_partition, partition=part)
        ended = ends_at(cut, last, destroy)
        again(cut, destroy)
        last += 1

        assert cut.devices() == before


def test_mode_is_set_whenever_the_first_try_ended(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    ended, last = True, 0
    while ended:
        mode = ("mig", "whole")[last % 2]
        change = partial(set_device_mode, device=device, mode=mode)
        ended = ends_at(made, last, change)
        again(made, change)
        last += 1

        assert [d.mode for d in made.devices()] == [mode]


def test_setting_is_undone_whenever_the_first_try_ended(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    setting = Setting(device=device.id, key="compute-mode", value="exclusive-process")
    revert = partial(revert_setting, setting=setting)
    ended, last = True, 0
    while ended:
        made.vendor.apply(made.host, setting)
        ended = ends_at(made, last, revert)
        again(made, revert)
        last += 1

        assert made.state("gpu-0", "compute") == {}


def test_core_finds_what_it_made(cut: Bench) -> None:
    made = create_partition(cut.vendor, cut.host, cut.devices()[0], PLACE)

    assert look_for(cut.vendor, cut.host, {made.id}, ()).devices == (made,)
