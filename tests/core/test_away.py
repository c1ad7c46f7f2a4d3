"""Devices that leave and come back: a GPU that falls off its bus again and again."""

import attrs
import pytest

from accelkit.core.damping import FLAPPING, RECOVERING
from accelkit.core.health import MOST_AWAY
from accelkit.core.model import Device, DeviceId, Snapshot
from accelkit.core.policy import Policy
from accelkit.core.values import Health, Standing
from accelkit.core.view import View
from tests.core.things import cut, fatal, gpu, part, view

A, CUT, PART = gpu("a"), cut("c"), part("c", 1)
ILL = gpu("a", conditions=(fatal(),))
HOLD = Policy().health.flap.hold
AWAY: tuple[Device, ...] = ()


def course(*looks: tuple[float, tuple[Device, ...]]) -> View:
    """The view after the last look; each is a time and the devices that are there."""
    last: View | None = None
    for at_s, devices in looks:
        last = view(Snapshot(devices=devices), previous=last, now_s=at_s)
    assert last is not None
    return last


def codes(seen: View, device: DeviceId = A.id) -> list[str]:
    return [reason.code for reason in seen.verdicts[device].reasons]


def test_a_device_that_leaves_once_and_comes_back_is_healthy_since_then() -> None:
    back = course((0.0, (A,)), (5.0, AWAY), (6.0, (A,)))

    assert back.verdicts[A.id].health is Health.HEALTHY
    assert back.verdicts[A.id].since_s == 6.0
    assert not back.away


def test_a_device_that_leaves_again_and_again_is_flapping_and_then_what_it_is() -> None:
    twice = [(60.0 * i, AWAY if i % 2 else (A,)) for i in range(5)]

    held = course(*twice)
    later = course(*twice, (239.0 + HOLD, (A,)))
    over = course(*twice, (240.0 + HOLD, (A,)))

    assert [codes(one) for one in (held, later, over)] == [[FLAPPING], [FLAPPING], []]


def test_a_device_that_goes_on_leaving_is_held_again() -> None:
    looks = [(60.0 * i, AWAY if i % 2 else (A,)) for i in range(81)]

    assert codes(course(*looks)) == [FLAPPING]


def test_a_device_that_was_ill_when_it_left_must_prove_that_it_is_well() -> None:
    looks = (0.0, (ILL,)), (1000.0, (ILL,)), (1001.0, AWAY), (1500.0, AWAY), (1501.0, (A,))

    assert codes(course(*looks)) == [RECOVERING]
    assert codes(course(*looks, (1561.0, (A,)))) == []


def test_what_held_a_device_down_when_it_left_still_does_when_it_is_back() -> None:
    flapping = [(float(i), (ILL if i % 2 else A,)) for i in range(5)]

    assert codes(course(*flapping, (10.0, AWAY), (1000.0, (A,)))) == [FLAPPING, RECOVERING]


def test_partitions_that_left_with_their_device_are_held_with_it() -> None:
    twice = [(60.0 * i, AWAY if i % 2 else (CUT, PART)) for i in range(5)]

    assert codes(course(*twice), PART.id) == [FLAPPING]


def test_partitions_that_are_unmade_and_made_again_are_not_flapping() -> None:
    often = [(1.0 * i, (CUT,) if i % 2 else (CUT, PART)) for i in range(41)]

    assert codes(course(*often), PART.id) == []
    assert not course(*often[:-1]).away


def test_a_device_that_nobody_could_ask_before_it_left_is_not_good_before_it_is_asked() -> None:
    stale = attrs.evolve(A, standing=Standing.STALE)
    grace = Policy().health.grace_for_unknown

    back = course((0.0, (stale,)), (1.0, AWAY), (1.0 + grace, (stale,)))

    assert back.verdicts[A.id].health is Health.UNKNOWN
    assert not back.verdicts[A.id].good


@pytest.mark.parametrize("after_s,known", [(HOLD - 1, True), (HOLD, False)])
def test_a_device_that_never_comes_back_is_forgotten(after_s: float, known: bool) -> None:
    later = course((0.0, (A,)), (5.0, AWAY), (5.0 + after_s, AWAY))

    assert (A.id in later.away) is known


def test_devices_that_get_new_names_again_and_again_push_out_their_own_kind_alone() -> None:
    other, first = gpu("z", vendor="other"), gpu("first")
    many = tuple(gpu(f"g{i}") for i in range(MOST_AWAY))

    away = course((0.0, (other,)), (1.0, (first,)), (2.0, many), (3.0, AWAY)).away

    assert away.keys() == {other.id, *(device.id for device in many)}
