from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.errors import ModelError
from accelkit.core.values import FrozenMap, Version, dns_label, freeze, frozen_map, is_dns_label

maps = st.dictionaries(st.text(max_size=3), st.integers())


@given(maps)
def test_a_frozen_map_is_the_mapping_in_order_of_keys(some: dict[str, int]) -> None:
    frozen = FrozenMap(some)

    assert frozen == some
    assert list(frozen) == sorted(some)
    assert len(frozen) == len(some)


@given(maps)
def test_equal_maps_have_equal_hashes_whatever_order_they_came_in(some: dict[str, int]) -> None:
    one, other = FrozenMap(some), FrozenMap(reversed(some.items()))

    assert one == other
    assert hash(one) == hash(other) == hash(one)
    assert repr(one) == repr(other)


def test_a_frozen_map_is_looked_up_and_no_list() -> None:
    frozen = FrozenMap([("b", 2), ("a", 1)])

    assert (frozen["b"], frozen.get("c")) == (2, None)
    assert frozen != FrozenMap({"a": 1})
    assert frozen != [("a", 1), ("b", 2)]
    assert frozen_map(frozen) is frozen
    assert repr(frozen) == "FrozenMap({'a': 1, 'b': 2})"


def doubled(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(2 * number for number in numbers)


@attrs.frozen(field_transformer=freeze)
class Value:
    """One of each sort of field."""

    names: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()
    sizes: FrozenMap[str, int] = FrozenMap()
    evens: tuple[int, ...] = attrs.field(default=(), converter=doubled)
    text: str = ""


@pytest.mark.parametrize("text", ["/dev/a", "", b"a"])
def test_one_text_is_not_taken_for_several(text: Any) -> None:  # type: ignore[explicit-any]  # as of plugins
    """Its letters were: a pattern of the kernel's log fitted every line."""
    with pytest.raises(TypeError, match="expected a list, found"):
        Value(names=text)
    with pytest.raises(TypeError, match="expected a list, found"):
        Value(marks=text)


def test_fields_of_values_freeze_what_they_are_given() -> None:
    names, marks, sizes = ["a"], {"m"}, {"s": 1}

    value = Value(names, marks, sizes, [1], "t")  # type: ignore[arg-type]  # frozen on the way in

    assert value == Value(("a",), frozenset({"m"}), FrozenMap({"s": 1}), (1,), "t")
    assert hash(value) == hash(Value(("a",), frozenset({"m"}), FrozenMap({"s": 1}), (1,), "t"))
    assert value.evens == (2,)


@pytest.mark.parametrize(
    "text,version",
    [
        ("580.65.06", Version(580, 65, 6)),
        ("v1.2.3-rc.1+build.5", Version(1, 2, 3, "rc.1")),
        (" 6.8 ", Version(6, 8)),
        ("7", Version(7)),
        ("22.1.0.4", Version(22, 1)),
    ],
)
def test_versions_are_read_as_makers_print_them(text: str, version: Version) -> None:
    assert Version.parse(text) == version
    assert Version.parse(str(version)) == version


@pytest.mark.parametrize("text", ["", "new", "1.x", "-1", "1..2", "9" * 5000, f"1.2.{'9' * 5000}"])
def test_what_is_no_version_is_an_error(text: str) -> None:
    with pytest.raises(ModelError, match="is not a version"):
        Version.parse(text)


def test_versions_are_in_order_and_a_release_follows_its_candidates() -> None:
    ordered = [Version(1, 2, 3, "rc.1"), Version(1, 2, 3), Version(1, 2, 10), Version(1, 10)]

    assert sorted([ordered[n] for n in (2, 0, 3, 1)]) == ordered


@pytest.mark.parametrize(
    "text,label",
    [
        ("gpu-0", True),
        ("0", True),
        ("", False),
        ("-a", False),
        ("a-", False),
        ("A", False),
        ("a.b", False),
    ],
)
def test_dns_labels_are_known(text: str, label: bool) -> None:
    assert is_dns_label(text) is label


def test_a_label_is_not_longer_than_allowed() -> None:
    assert is_dns_label("a" * 63)
    assert not is_dns_label("a" * 64)
    assert not is_dns_label("abc", 2)


@given(st.text(max_size=80).map(lambda text: f"{text}0"), st.integers(1, 63))
def test_labels_are_made_of_whatever_has_a_letter_or_digit(text: str, limit: int) -> None:
    label = dns_label(text, limit)

    assert is_dns_label(label, limit)
    assert dns_label(label, limit) == label


def test_of_nothing_no_label_is_made() -> None:
    with pytest.raises(ModelError, match="no letter or digit"):
        dns_label("/_-é")


def test_a_label_is_folded_from_what_makers_write() -> None:
    assert dns_label("/dev/Fuse_0") == "dev-fuse-0"
    assert dns_label("abc def", 4) == "abc"


def test_of_a_mapping_that_is_not_frozen_a_frozen_one_is_made() -> None:
    some: Mapping[str, int] = {"a": 1}

    assert frozen_map(some) == FrozenMap({"a": 1})
