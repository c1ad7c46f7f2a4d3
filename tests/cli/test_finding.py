import pytest

from accelkit.cli.finding import find, in_order, words_of
from accelkit.core.errors import ConfigError, UnknownDevice
from accelkit.core.model import Locality, Snapshot
from accelkit.core.view import View
from tests.core.things import cut, gpu, part

VIEW = View(
    snapshot=Snapshot(
        devices=(
            gpu("a", aliases=frozenset({"UUID-1"}), locality=Locality(pci_address="0000:02:00.0")),
            gpu("a", vendor="other"),
            cut("b", locality=Locality(pci_address="0000:01:00.0")),
            part("b", 0, locality=Locality(pci_address="0000:01:00.0")),
        )
    )
)


@pytest.mark.parametrize(
    "text, found",
    [
        ("toy/a", "toy/a"),
        ("UUID-1", "toy/a"),
        ("0000:02:00.0", "toy/a"),
        ("b", "toy/b"),
        ("0000:01:00.0", "toy/b"),
        ("b-1g-0", "toy/b-1g-0"),
    ],
)
def test_device_is_found_by_every_id_that_it_has(text: str, found: str) -> None:
    assert str(find(VIEW, text).id) == found


def test_name_that_two_vendors_use_is_not_clear() -> None:
    with pytest.raises(ConfigError, match="a: several devices are called so: other/a, toy/a"):
        find(VIEW, "a")


def test_unknown_device_is_refused_with_a_guess_where_one_is_near() -> None:
    with pytest.raises(UnknownDevice, match=r"there is no device UUID-2 here, did you mean UUID-1"):
        find(VIEW, "UUID-2")
    with pytest.raises(UnknownDevice, match=r"there is no device x here$"):
        find(VIEW, "x")


def test_devices_are_in_the_order_of_their_places() -> None:
    assert [str(d.id) for d in in_order(VIEW.snapshot.devices)] == [
        "other/a",
        "toy/b",
        "toy/b-1g-0",
        "toy/a",
    ]


def test_words_are_split_at_commas_once_each() -> None:
    assert words_of(("a,b", " c ,a,", "")) == ("a", "b", "c")
