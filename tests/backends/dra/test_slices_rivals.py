"""Who else changes our slices, and when we answer."""

from accelkit.backends.dra.slices_rivals import Rivals
from accelkit.backends.dra.slices_settings import Patience, jitter_of
from accelkit.backends.dra.stored import Stored, read_slice

PATIENCE = Patience()


def there(**versions: str) -> list[Stored]:
    return [
        read_slice({"metadata": {"name": name, "resourceVersion": version}})
        for name, version in versions.items()
    ]


def settled(*, now_s: float = 0.0) -> Rivals:
    rivals = Rivals(PATIENCE)
    rivals.look(there(a="1", b="1"), now_s, None)
    rivals.settled(there(a="1", b="1"))
    return rivals


def test_what_is_found_at_the_start_is_nobodys_work() -> None:
    rivals = Rivals(PATIENCE)
    rivals.look(there(a="1"), 100.0, None)

    assert rivals.answer_at(None) == 0.0


def test_slices_as_we_left_them_are_nobodys_work() -> None:
    rivals = settled()
    rivals.look(there(a="1", b="1"), 100.0, None)

    assert rivals.answer_at(None) == 0.0


def test_edit_of_somebody_else_is_answered_after_half_a_minute() -> None:
    rivals = settled()
    rivals.look(there(a="1", b="2"), 100.0, 99.0)
    rivals.look(there(a="2", b="3"), 110.0, 99.0)

    assert rivals.answer_at(99.0) == 130.0


def test_answer_ends_it() -> None:
    rivals = settled()
    rivals.look(there(b="1"), 100.0, None)
    rivals.settled(there(a="5", b="1"))
    rivals.look(there(a="5", b="1"), 140.0, None)

    assert rivals.answer_at(None) == 0.0


def test_slices_that_vanish_after_a_registration_were_wiped_by_the_kubelet() -> None:
    """It registers us first and removes them then (seen on 1.34 to 1.37)."""
    rivals = settled()
    rivals.look(there(a="1"), 100.2, 100.0)

    assert rivals.answer_at(100.0) == 103.0


def test_late_wipe_is_answered_when_it_is_over() -> None:
    """The kubelet tries for minutes, if the API server is away."""
    rivals = settled()
    rivals.look([], 400.0, 100.0)

    assert rivals.answer_at(100.0) == 400.5


def test_slices_that_vanish_long_after_a_registration_were_removed_by_somebody() -> None:
    rivals = settled()
    rivals.look([], 1000.0, 100.0)

    assert rivals.answer_at(100.0) == 1030.0


def test_somebody_who_changes_them_all_the_time_is_left_to_it_for_a_while() -> None:
    rivals = settled()
    for time_s in (100.0, 200.0, 300.0):
        assert rivals.stopped_until(time_s) is None
        rivals.look(there(a=str(time_s), b="1"), time_s, None)
        if time_s < 300.0:
            rivals.settled(there(a="1", b="1"))

    assert rivals.stopped_until(301.0) == 900.0
    assert rivals.stopped_until(901.0) is None


def test_kubelet_that_starts_often_is_no_rival() -> None:
    rivals = settled()
    for time_s in (100.0, 200.0, 300.0, 400.0):
        rivals.look([], time_s, time_s - 0.2)
        rivals.settled(there(a=str(time_s), b="1"))

    assert rivals.stopped_until(401.0) is None


def test_every_node_has_a_moment_of_its_own() -> None:
    moments = [jitter_of(f"node-{n}", 10.0) for n in range(200)]

    assert moments == [jitter_of(f"node-{n}", 10.0) for n in range(200)]
    assert 0.0 <= min(moments) < 1.0
    assert 9.0 < max(moments) < 10.0
