"""How somebody else who serves our name is noticed."""

from accelkit.backends.kubelet.document import WireDevice
from accelkit.backends.kubelet.rivals import ANSWERS, Rival, difference

LISTED = (WireDevice(id="a", healthy=True), WireDevice(id="b", healthy=False))


def test_list_that_the_kubelet_has_does_not_differ() -> None:
    assert difference(LISTED, {"a"}) == ""


def test_unhealthy_device_that_somebody_else_calls_healthy_is_no_stranger() -> None:
    assert difference(LISTED, {"a", "b"}) == ""


def test_strange_and_missing_ids_are_named() -> None:
    assert difference(LISTED, {"x"}) == "has x, which are not ours and lacks a of ours"


def test_only_some_of_many_ids_are_named() -> None:
    strangers = {f"x{number}" for number in range(9)} | {"a"}

    assert difference(LISTED, strangers) == "has x0, x1, x2 and 6 more, which are not ours"


def test_one_differing_look_says_nothing() -> None:
    assert Rival(600.0).seen(differs=True, now_s=0.0) == (False, False)


def test_two_differing_looks_in_a_row_are_answered() -> None:
    rival = Rival(600.0)
    rival.seen(differs=True, now_s=0.0)
    rival.seen(differs=False, now_s=10.0)
    rival.seen(differs=True, now_s=20.0)

    assert rival.seen(differs=True, now_s=30.0) == (True, True)


def looks(rival: Rival, count: int, start_s: float) -> list[tuple[bool, bool]]:
    return [rival.seen(differs=True, now_s=start_s + n) for n in range(count)]


def test_rival_that_does_not_give_way_is_only_reported() -> None:
    rival = Rival(600.0)
    looks(rival, 2 * ANSWERS, 0.0)

    assert looks(rival, 3, 100.0)[1:] == [(True, False), (True, False)]


def test_answers_count_no_longer_when_the_window_is_over() -> None:
    rival = Rival(600.0)
    looks(rival, 2 * ANSWERS, 0.0)

    assert looks(rival, 2, 700.0)[-1] == (True, True)
