import pytest

from accelkit.core.allocation import Piece
from accelkit.core.model import Device, DeviceId, Mode, Placement, Profile
from accelkit.core.places import can_be_set, exclude, mode_for, places_on
from accelkit.core.values import Scope
from tests.core.things import of

HALF = Profile(name="half", slug="half", size=2, starts=(0, 2), mode="cut")
QUARTER = Profile(name="quarter", slug="quarter", size=1, starts=(0, 1, 2, 3), mode="cut")
ROOT = Device(
    id=of("g"),
    kind="gpu",
    slots=4,
    profiles=(HALF, QUARTER),
    modes=(Mode(name="cut", live=True), Mode(name="whole", live=True)),
    mode="whole",
)
PLACES = places_on(ROOT)


def piece(name: str, share: str | None = None) -> Piece:
    return Piece(device=of(name), share=share)


def part(name: str, profile: str, start: int, size: int) -> Device:
    return Device(
        id=of(name),
        kind="gpu",
        parent=ROOT.id,
        placement=Placement(profile=profile, start=start, size=size),
    )


def test_places_on_a_device_are_itself_and_all_that_it_can_be_cut_to() -> None:
    assert {i.name: place and (place.start, place.size) for i, place in PLACES.items()} == {
        "g": None,
        "g-half-0": (0, 2),
        "g-half-2": (2, 2),
        "g-quarter-0": (0, 1),
        "g-quarter-1": (1, 1),
        "g-quarter-2": (2, 1),
        "g-quarter-3": (3, 1),
    }


@pytest.mark.parametrize(
    "one, other",
    [
        ("g", "g"),
        ("g", "g-half-0"),
        ("g-half-0", "g"),
        ("g-half-0", "g-half-0"),
        ("g-half-0", "g-quarter-1"),
        ("g-quarter-2", "g-half-2"),
    ],
)
def test_places_that_overlap_exclude_each_other(one: str, other: str) -> None:
    assert exclude(piece(one), piece(other), PLACES)


@pytest.mark.parametrize(
    "one, other",
    [
        ("g-half-0", "g-half-2"),
        ("g-half-0", "g-quarter-2"),
        ("g", "h"),
        ("g-half-0", "h"),
        ("h", "g"),
    ],
)
def test_places_beside_each_other_do_not(one: str, other: str) -> None:
    assert not exclude(piece(one), piece(other), PLACES)


def test_shares_of_one_device_do_not_exclude_each_other_but_the_whole_does() -> None:
    assert not exclude(piece("g", "1"), piece("g", "2"), PLACES)
    assert exclude(piece("g", "1"), piece("g"), PLACES)
    assert exclude(piece("g"), piece("g", "1"), PLACES)
    assert exclude(piece("g", "1"), piece("g-half-0"), PLACES)


def test_a_partition_needs_the_mode_of_its_profile() -> None:
    assert mode_for(part("g-half-0", "half", 0, 2), ROOT) == "cut"


def test_a_partition_of_a_profile_that_is_unknown_needs_none() -> None:
    assert mode_for(part("g-third-0", "third", 0, 1), ROOT) is None


def root(mode: str | None, *modes: Mode, profiles: tuple[Profile, ...] = (HALF,)) -> Device:
    return Device(id=of("g"), kind="gpu", slots=4, profiles=profiles, modes=modes, mode=mode)


CUT, WHOLE, OTHER = Mode(name="cut"), Mode(name="whole"), Mode(name="other")
FIXED = Mode(name="fixed", cut="half", count=2)


@pytest.mark.parametrize(
    "device, expected",
    [
        (root("whole", CUT, WHOLE), "whole"),
        (root("cut", CUT, WHOLE), "whole"),
        (root("whole", CUT, OTHER, WHOLE), "whole"),
        (root("cut", CUT, OTHER, WHOLE), "other"),
        (root("fixed", CUT, FIXED), None),
        (root("cut", CUT), None),
        (root(None), None),
        (root("cut", CUT, WHOLE, profiles=()), None),
    ],
)
def test_a_whole_device_needs_a_mode_in_which_it_is_not_cut(
    device: Device, expected: str | None
) -> None:
    assert mode_for(device, device) == expected


def test_only_modes_that_harm_nobody_can_be_set() -> None:
    device = root(
        None,
        Mode(name="live", live=True),
        Mode(name="reset"),
        Mode(name="all", live=True, disturbs=Scope.VENDOR),
    )

    assert [can_be_set(device, m) for m in ("live", "reset", "all", "none")] == [
        True,
        False,
        False,
        False,
    ]


def test_places_are_of_the_vendor_of_their_device() -> None:
    assert {i.vendor for i in places_on(ROOT)} == {DeviceId.parse(str(ROOT.id)).vendor}
