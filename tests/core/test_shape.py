"""Values that are not what their classes declare."""

from typing import Any, Literal

import attrs
import pytest

from accelkit.core.allocation import ContainerEdits, Edits
from accelkit.core.model import (
    Condition,
    Device,
    DeviceNode,
    Event,
    Evidence,
    Group,
    Holding,
    Link,
    Locality,
    Placement,
)
from accelkit.core.shape import misfit
from accelkit.core.values import FrozenMap, LinkKind, Severity, Version
from tests.core.things import START, cut, gpu, of, part


def made(kind: Any, /, **fields: object) -> Any:  # type: ignore[explicit-any]  # as plugins make it
    return kind(**fields)


class Mute:
    """Answers no question."""

    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]  # that is the point


@pytest.mark.parametrize(
    "value",
    [
        gpu("a", product="A", capacity={"memory": 1}, attributes={"v": Version(1), "n": (1, 2)}),
        cut("a"),
        part("a", 1),
        gpu("a", locality=made(Locality, numa_node=0, near_nodes=(0, 1)), aliases={"uuid"}),
        made(Condition, code="hot", severity=Severity.INFO, since=START),
        Evidence(vendor="v", subject="", code="c", source="s", count=1, first=START, last=START),
        made(
            Edits,
            each={of("a"): made(ContainerEdits, nodes=[DeviceNode(path="/dev/a")], gids=(1,))},
        ),
    ],
)
def test_value_as_it_is_declared_fits(value: object) -> None:
    assert misfit(type(value), value) == ""


@pytest.mark.parametrize(
    "value, fault",
    [
        (gpu("a", product=42), "product: expected str or None, found int"),
        (gpu("a", product=Mute()), "product: expected str or None, found Mute"),
        (gpu("a", product="\ud800"), "product: expected text that UTF-8 can write"),
        (gpu("a", usable="no"), "usable: expected bool, found str"),
        (gpu("a", slots=True), "slots: expected int, found bool"),
        (gpu("a", locality=None), "locality: expected Locality, found None"),
        (
            gpu("a", locality=made(Locality, numa_node=1.5)),
            "locality.numa_node: expected int or None, found float",
        ),
        (gpu("a", profiles=["x"]), "profiles[0]: expected Profile, found str"),
        (gpu("a", aliases=[42]), "aliases[0]: expected str, found int"),
        (gpu("a", capacity={"memory": "1Gi"}), "capacity[memory]: expected int, found str"),
        (gpu("a", capacity={42: 1}), "capacity key 0: expected str, found int"),
        (
            made(
                Device,
                id=of("a-1g-1"),
                kind="x",
                parent="a",
                placement=Placement(profile="1g", start=1, size=1),
            ),
            "parent: expected DeviceId or None, found str",
        ),
        (
            made(Condition, code="hot", severity="FATAL"),
            "severity: expected Severity, found str",
        ),
        (
            made(Event, subject=["a"], code="c", source="s"),
            "subject: expected str or None, found list",
        ),
        (
            made(Group, kind="k", name="n", members=["a"]),
            "members[0]: expected DeviceId, found str",
        ),
        (
            made(Holding, device=of("a"), through="p", holder=None),
            "holder: expected Holder, found None",
        ),
        (
            made(Link, a=of("a"), b=of("b"), kind=LinkKind.HOST, count=None),
            "count: expected int, found None",
        ),
        (
            made(Edits, each={of("a"): made(ContainerEdits, env={"A": 1})}),
            "each[toy/a].env[A]: expected str, found int",
        ),
    ],
)
def test_value_that_does_not_fit_says_where(value: object, fault: str) -> None:
    assert misfit(type(value), value) == fault


@attrs.frozen
class Pair:
    both: tuple[int, str]


@pytest.mark.parametrize(
    "value, fault",
    [
        ((1, "a"), ""),
        ((1, 2), "both[1]: expected str, found int"),
        ((1,), "both: expected 2 values in a tuple"),
        ("ab", "both: expected 2 values in a tuple"),
    ],
)
def test_tuple_of_fixed_length_is_looked_at_place_by_place(value: Any, fault: str) -> None:  # type: ignore[explicit-any]  # anything
    assert misfit(Pair, Pair(value)) == fault


def test_annotation_that_is_no_class_takes_anything() -> None:
    assert misfit(Literal["on"] | int, "off") == ""


def test_other_class_does_not_fit() -> None:
    assert misfit(Device, 42) == "expected Device, found int"
    assert misfit(float, 1) == ""
    assert misfit(object, Mute()) == ""
    assert misfit(FrozenMap[str, int], {}) == "expected FrozenMap, found dict"
    assert misfit(tuple[int, ...], [1]) == "expected tuple, found list"
