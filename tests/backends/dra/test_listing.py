"""Why a device is not to be had, where partitions are simply there."""

from accelkit.backends.dra.pool import Dialect
from accelkit.core.model import Mode, Profile
from tests.backends.dra.views import (
    SMALL,
    cut,
    gpu,
    held,
    ident,
    listed,
    part,
    parts,
    tainted,
    view_of,
)


def test_partitions_that_come_with_a_mode_are_not_in_the_way_of_a_whole_that_is_usable() -> None:
    """Cores of a chip are simply there: counters say who has what."""
    core = Profile(name="core", slug="core", size=1, starts=(0, 1), mode="cores")
    cores = Mode(name="cores", cut="core", count=2)
    chip = gpu("g0", slots=2, profiles=(core,), modes=(cores,), mode="cores")
    view = view_of(chip, part("g0", core, 0), part("g0", core, 1))

    assert [*tainted(view).values()] == [[], [], []]
    used = {device.name: dict(device.consumes[0].counters) for device in listed(view).values()}
    assert used == {"g0": {"mode-0": 2}, "g0-core-0": {"mode-0": 1}, "g0-core-1": {"mode-0": 1}}


def test_what_is_held_from_a_driver_of_another_name_is_not_to_be_had_from_this_one() -> None:
    """The scheduler counts claims by driver: it would give the device away a second time."""
    free, taken = gpu("g0"), gpu("g1")
    view = view_of(free, taken, holdings=[held("g1")], renamed={ident("g1")})

    assert tainted(view) == {"g0": [], "g1": ["leaving:NoSchedule"]}
    assert listed(view, Dialect(taints=False)).keys() == {"g0"}


def test_places_beside_what_is_held_from_a_driver_of_another_name_are_to_be_had() -> None:
    small = part("g0", SMALL, 0)
    view = view_of(
        cut("g0", mode="mig"),
        small,
        potential=parts("g0"),
        holdings=[held(small.id.name)],
        made={small.id},
        renamed={small.id},
    )

    found = tainted(view)
    assert found["g0-1g10gb-0"] == ["leaving:NoSchedule"]
    assert found["g0-3g40gb-0"] == ["place-occupied:NoSchedule"]
    assert found["g0-3g40gb-4"] == found["g0-1g10gb-1"] == []
