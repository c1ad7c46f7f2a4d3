"""Why a device is not to be had, where partitions are simply there."""

from accelkit.core.model import Mode, Profile
from tests.backends.dra.views import gpu, listed, part, tainted, view_of


def test_partitions_that_come_with_a_mode_are_not_in_the_way_of_a_whole_that_is_usable() -> None:
    """Cores of a chip are simply there: counters say who has what."""
    core = Profile(name="core", slug="core", size=1, starts=(0, 1), mode="cores")
    cores = Mode(name="cores", cut="core", count=2)
    chip = gpu("g0", slots=2, profiles=(core,), modes=(cores,), mode="cores")
    view = view_of(chip, part("g0", core, 0), part("g0", core, 1))

    assert [*tainted(view).values()] == [[], [], []]
    used = {device.name: dict(device.consumes[0].counters) for device in listed(view).values()}
    assert used == {"g0": {"mode-0": 2}, "g0-core-0": {"mode-0": 1}, "g0-core-1": {"mode-0": 1}}
