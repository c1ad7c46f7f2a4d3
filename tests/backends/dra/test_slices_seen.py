"""What a list shows, and what we know better."""

from accelkit.backends.dra.slices_seen import ECHO_S, Seen
from accelkit.backends.dra.stored import Stored, read_slice
from accelkit.core.kube import Json

DRIVER = "acme.accelkit.dev"


def item(name: str, version: str, driver: str = DRIVER) -> Json:
    return {"metadata": {"name": name, "resourceVersion": version}, "spec": {"driver": driver}}


def stored(name: str, version: str) -> Stored:
    return read_slice(item(name, version))


def shown(seen: Seen, **versions: str) -> Seen:
    seen.show(((name, item(name, version)) for name, version in versions.items()), 0.0)
    return seen


def of(seen: Seen, now_s: float = 0.0) -> dict[str, str]:
    return {one.name: one.version for one in seen.of(DRIVER, now_s)}


def test_nothing_is_listed_before_the_server_was_heard() -> None:
    assert not Seen().listed
    assert shown(Seen()).listed


def test_slices_of_other_drivers_are_none_of_ours() -> None:
    seen = Seen()
    seen.show([("b", item("b", "1")), ("a", item("a", "1")), ("x", item("x", "1", "other"))], 0.0)

    assert list(of(seen)) == ["a", "b"]


def test_what_was_read_is_not_read_again() -> None:
    seen = shown(Seen(), a="1")
    (before,) = seen.of(DRIVER, 0.0)

    assert shown(seen, a="1").of(DRIVER, 0.0)[0] is before
    assert shown(seen, a="2").of(DRIVER, 0.0)[0] is not before


def test_own_writes_count_before_lists_show_them() -> None:
    seen = shown(Seen(), a="1", b="1")
    seen.answer("a", stored("a", "2"), 0.0)
    seen.answer("b", None, 0.0)
    seen.answer("c", stored("c", "3"), 0.0)

    late = shown(seen, a="1", b="1")

    assert of(late) == {"a": "2", "c": "3"}


def test_lists_count_again_when_they_have_shown_the_write() -> None:
    seen = shown(Seen(), a="1", b="1")
    seen.answer("a", stored("a", "2"), 0.0)
    seen.answer("b", None, 0.0)
    seen.answer("c", stored("c", "3"), 0.0)

    shown(seen, a="2", c="3")

    assert of(shown(seen, a="1", b="1")) == {"a": "1", "b": "1"}


def test_write_after_write_is_not_undone_by_the_echo_of_the_first() -> None:
    seen = shown(Seen())
    seen.answer("a", stored("a", "2"), 0.0)
    seen.answer("a", stored("a", "3"), 0.0)

    assert of(seen) == {"a": "3"}
    assert of(shown(seen, a="2")) == {"a": "3"}
    assert of(shown(seen, a="3")) == {"a": "3"}
    assert of(shown(seen, a="4")) == {"a": "4"}


def test_write_that_no_list_ever_shows_is_forgotten() -> None:
    """Somebody removed it before the list was made."""
    seen = shown(Seen())
    seen.answer("a", stored("a", "2"), 0.0)

    assert of(seen, ECHO_S - 0.1) == {"a": "2"}
    assert of(seen, ECHO_S) == {}
