"""Values to plain trees and back."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum
from typing import Literal

import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accelkit.core.allocation import Allocation, ContainerEdits, Edits, Grant, Prepared, Setting
from accelkit.core.errors import ConfigError, ModelError
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Event,
    Evidence,
    Holding,
    Link,
    VendorReport,
)
from accelkit.core.policy import Policy, Selection, Sharing
from accelkit.core.serde import from_tree, key_of, to_tree
from accelkit.core.units import Bytes, Seconds
from accelkit.core.values import FrozenMap, Severity, Version, freeze
from accelkit.core.view import Assignment, Verdict
from tests.core.everything import PARTITIONS, values_of


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@attrs.frozen(kw_only=True)
class Inner:
    count: int = 0
    word: Literal["yes", "no"] = "yes"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Outer:
    """One field of every sort."""

    name: str
    any_time: datetime | None = None
    flag: bool = False
    scale: float = 1.0
    wait: Seconds = Seconds(1)
    size: Bytes = Bytes(0)
    level: Level = Level.LOW
    severity: Severity = Severity.INFO
    driver: Version | None = None
    device: DeviceId | None = None
    inner: Inner = Inner()
    inners: tuple[Inner, ...] = ()
    names: frozenset[str] = frozenset()
    by_name: FrozenMap[str, int] = FrozenMap()
    number_or_word: int | str = 0
    attributes: FrozenMap[str, bool | int | str | Version | tuple[str, ...]] = FrozenMap()
    rest: object = None


VERSION_AND_TEXT: FrozenMap[str, bool | int | str | Version | tuple[str, ...]] = FrozenMap(
    [("driver", Version(1, 2, 3)), ("firmware", "1.2.3")]
)


def problems(kind: type, tree: object) -> tuple[tuple[str, str], ...]:
    with pytest.raises(ConfigError) as caught:
        from_tree(kind, tree)
    return caught.value.problems


def test_value_is_written_as_files_have_it() -> None:
    value = Outer(
        name="x",
        any_time=datetime(2027, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))),
        wait=Seconds(0.5),
        size=Bytes(1 << 30),
        level=Level.HIGH,
        driver=Version(580, 65, 6),
        device=DeviceId(vendor="a", name="b"),
        inners=(Inner(count=3),),
        names=frozenset("ba"),
        by_name=FrozenMap({"z": 1, "y": 2}),
        attributes=VERSION_AND_TEXT,
        rest=Inner(),
    )

    assert to_tree(value) == {
        "name": "x",
        "anyTime": "2027-01-31T10:00:00Z",
        "flag": False,
        "scale": 1.0,
        "wait": "500ms",
        "size": "1Gi",
        "level": "HIGH",
        "severity": "INFO",
        "driver": "580.65.6",
        "device": "a/b",
        "inner": {"count": 0, "word": "yes"},
        "inners": [{"count": 3, "word": "yes"}],
        "names": ["a", "b"],
        "byName": {"y": 2, "z": 1},
        "numberOrWord": 0,
        "attributes": {"driver": {"version": "1.2.3"}, "firmware": "1.2.3"},
        "rest": {"count": 0, "word": "yes"},
    }


def test_unknowns_are_left_out() -> None:
    assert to_tree(Condition(code="x", severity=Severity.INFO)) == {
        "code": "x",
        "severity": "INFO",
        "scope": "DEVICE",
        "message": "",
    }


def test_whatever_may_be_unknown_may_be_missing() -> None:
    """Also where a constructor insists on being told."""
    setting = Setting(device=None, key="k", value="v")

    assert from_tree(Setting, to_tree(setting)) == setting


def test_plain_lists_and_maps_of_values_are_written_too() -> None:
    assert to_tree([{"a": DeviceId(vendor="v", name="n")}, (Severity.INFO, None)]) == [
        {"a": "v/n"},
        ["INFO", None],
    ]


def test_keys_are_camel_case() -> None:
    assert [key_of(n) for n in ("name", "numa_node", "not_", "claims_may_ask")] == [
        "name",
        "numaNode",
        "not",
        "claimsMayAsk",
    ]


KINDS = (
    Policy,
    Device,
    Condition,
    Link,
    Event,
    Evidence,
    Holding,
    Verdict,
    Assignment,
    Sharing,
    ContainerEdits,
    Edits,
    Grant,
    Allocation,
    Prepared,
    Outer,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_value_that_was_written_reads_the_same(kind: type, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))

    tree = json.loads(json.dumps(to_tree(value)))

    again: object = from_tree(kind, tree)
    assert again == value
    assert to_tree(again) == tree  # what equality leaves out survives, too


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(PARTITIONS)
def test_partition_in_a_report_reads_the_same(part: Device) -> None:
    report = VendorReport(vendor="a", answered=True, devices=(part,))

    assert from_tree(VendorReport, json.loads(json.dumps(to_tree(report)))) == report


@pytest.mark.parametrize(
    "field,tree,text",
    [
        ("name", 5, "expected text, found the number 5: put it in quotes"),
        ("name", True, "expected text, found true: put it in quotes"),
        ("name", None, "expected text, found nothing"),
        ("name", ["a"], "expected text, found a list"),
        ("flag", "no", "expected true or false, found 'no'"),
        ("flag", 0, "expected true or false, found the number 0"),
        ("scale", "1", "expected a number, found '1'"),
        ("scale", True, "expected a number, found true"),
        ("scale", float("nan"), "expected a finite number, found the number nan"),
        ("scale", 10**400, "expected a finite number, found a large number"),
        ("wait", 30, "expected a duration such as 30s, 500ms or 10m, found the number 30"),
        ("wait", "30", "expected a duration such as 30s, 500ms or 10m, found '30'"),
        ("size", "lots", "expected an amount such as 16Gi or 500M, found 'lots'"),
        ("size", True, "expected an amount such as 16Gi or 500M, found true"),
        ("size", -1, "expected an amount from 0 to 2^63-1 bytes"),
        ("level", "HI", "expected one of LOW, HIGH, found 'HI', did you mean 'HIGH'?"),
        ("level", 1, "expected one of LOW, HIGH, found the number 1"),
        (
            "severity",
            "info",
            "expected one of INFO, DEGRADED, FATAL, found 'info', did you mean 'INFO'?",
        ),
        ("driver", "newest", "'newest' is not a version; give numbers and dots, as 1.2.3"),
        ("device", "a", "'a' is not a device id; write vendor/name"),
        ("device", 5, "expected text, found the number 5: put it in quotes"),
        (
            "anyTime",
            "2027-01-31",
            "expected a time such as 2027-01-31T10:00:00Z, found '2027-01-31'",
        ),
        ("anyTime", 5, "expected a time such as 2027-01-31T10:00:00Z, found the number 5"),
        ("anyTime", "today", "expected a time such as 2027-01-31T10:00:00Z, found 'today'"),
        ("inner", [], "expected a mapping, found a list"),
        ("inner", None, "expected a mapping, found nothing: leave the key out or write {}"),
        ("inners", {}, "expected a list, found a mapping"),
        ("inners", "a", "expected a list, found 'a'"),
        ("inners", None, "expected a list, found nothing: leave the key out or write []"),
        ("byName", [], "expected a mapping, found a list"),
        ("byName", None, "expected a mapping, found nothing: leave the key out or write {}"),
        ("numberOrWord", 1.5, "expected a whole number or text, found the number 1.5"),
        (
            "name",
            datetime(2027, 1, 31, tzinfo=UTC).date(),
            "expected text, found a date: put it in quotes",
        ),
        ("name", b"x", "expected text, found a bytes"),
        ("flag", "x" * 70, f"expected true or false, found '{'x' * 60}...'"),
    ],
)
def test_wrong_value_is_told_with_what_was_found(field: str, tree: object, text: str) -> None:
    assert problems(Outer, {"name": "x", field: tree}) == ((f"$.{field}", text),)


@pytest.mark.parametrize(
    "tree,path,text",
    [
        ({}, "$.name", "missing"),
        ([], "$", "expected a mapping, found a list"),
        ({"name": "x", "flga": 1}, "$.flga", "unknown key, did you mean 'flag'?"),
        ({"name": "x", "any_time": 1}, "$.any_time", "unknown key, did you mean 'anyTime'?"),
        ({"name": "x", "zzz": 1}, "$.zzz", "unknown key"),
        ({"name": "x", True: 1}, "$.True", "unknown key"),
        ({"name": "x", "a b": 1}, '$["a b"]', "unknown key"),
        (
            {"name": "x", "inner": {"count": 1.0}},
            "$.inner.count",
            "expected a whole number, found the number 1.0",
        ),
        (
            {"name": "x", "inner": {"word": "oui"}},
            "$.inner.word",
            "expected one of yes, no, found 'oui'",
        ),
        (
            {"name": "x", "inners": [{}, {"count": True}]},
            "$.inners[1].count",
            "expected a whole number, found true",
        ),
        (
            {"name": "x", "byName": {"1g.10gb": "7"}},
            '$.byName["1g.10gb"]',
            "expected a whole number, found '7'",
        ),
        (
            {"name": "x", "byName": {7: 7}},
            "$.byName[7]",
            "expected text, found the number 7: put it in quotes",
        ),
        (
            {"name": "x", "names": ["a", 7]},
            "$.names[1]",
            "expected text, found the number 7: put it in quotes",
        ),
        (
            {"name": "x", "attributes": {"a": {"version": "x"}}},
            "$.attributes.a.version",
            "'x' is not a version; give numbers and dots, as 1.2.3",
        ),
        ({"name": "x", "attributes": {"a": {}}}, "$.attributes.a.version", "missing"),
        (
            {"name": "x", "attributes": {"a": 1.5}},
            "$.attributes.a",
            "expected true or false, a whole number, text, Version or a list, found the number 1.5",
        ),
        (
            {"name": "x", "rest": [{"a": {1: 2}}]},
            "$.rest[0].a[1]",
            "expected text, found the number 1: put it in quotes",
        ),
        (
            {"name": "x", "rest": float("inf")},
            "$.rest",
            "expected a finite number, found a large number",
        ),
    ],
)
def test_wrong_tree_is_told_with_its_path(tree: object, path: str, text: str) -> None:
    assert problems(Outer, tree) == ((path, text),)


def test_everything_wrong_is_told_at_once() -> None:
    tree = {"flag": "no", "inners": [{"count": "1", "wrod": "no"}, 7], "extra": 1}

    assert problems(Outer, tree) == (
        ("$.name", "missing"),
        ("$.flag", "expected true or false, found 'no'"),
        ("$.inners[0].count", "expected a whole number, found '1'"),
        ("$.inners[0].wrod", "unknown key, did you mean 'word'?"),
        ("$.inners[1]", "expected a mapping, found the number 7"),
        ("$.extra", "unknown key"),
    )


def test_paths_begin_where_the_tree_stands() -> None:
    with pytest.raises(ConfigError) as caught:
        from_tree(Inner, {"count": "1"}, "$.vendors[2].options")

    assert caught.value.problems[0][0] == "$.vendors[2].options.count"


def test_whole_number_will_do_for_a_number() -> None:
    scale = from_tree(Outer, {"name": "x", "scale": 2}).scale

    assert (scale, type(scale)) == (2.0, float)


def test_amount_may_be_a_plain_number() -> None:
    assert from_tree(Outer, {"name": "x", "size": 1024}).size == 1024


def test_what_a_constructor_refuses_is_told_at_its_place() -> None:
    tree = {"vendor": "a", "answered": True, "devices": [{"id": "a/B_b", "kind": "k"}]}

    ((path, text),) = problems(VendorReport, tree)

    assert (path, "the name must be a DNS label" in text) == ("$.devices[0]", True)


@attrs.frozen(kw_only=True)
class Several:
    one_or_more: Inner | tuple[Inner, ...] = ()
    words: tuple[str | Inner, ...] = ()


def test_what_may_be_one_or_several_or_a_word_is_read_as_what_it_looks_like() -> None:
    tree = {"oneOrMore": {"count": 3}, "words": ["a", {"count": 4}]}

    assert from_tree(Several, tree) == Several(
        one_or_more=Inner(count=3), words=("a", Inner(count=4))
    )
    assert from_tree(Several, {"oneOrMore": [{"count": 3}]}) == Several(
        one_or_more=(Inner(count=3),)
    )


def test_what_is_wrong_inside_of_one_of_several_is_told_with_its_place() -> None:
    tree = {"oneOrMore": [{"count": "x"}], "words": [{"counts": 4}, 3]}

    with pytest.raises(ConfigError) as caught:
        from_tree(Several, tree)

    assert [*caught.value.problems] == [
        ("$.oneOrMore[0].count", "expected a whole number, found 'x'"),
        ("$.words[0].counts", "unknown key, did you mean 'count'?"),
        ("$.words[1]", "expected text or a mapping, found the number 3"),
    ]


def test_error_without_words_is_told_by_its_name() -> None:
    @attrs.frozen
    class Grumpy:
        def __attrs_post_init__(self) -> None:
            raise ModelError("")

    assert problems(Grumpy, {}) == (("$", "ModelError"),)


def test_notes_of_an_error_do_not_hide_its_place() -> None:
    @attrs.frozen
    class Talkative:
        count: int = 0

        def __attrs_post_init__(self) -> None:
            error = ValueError("too few")
            error.add_note("said with a note")
            raise error

    @attrs.frozen
    class Holder:
        parts: tuple[Talkative, ...]

    assert problems(Holder, {"parts": [{}]}) == (("$.parts[0]", "too few"),)


def test_problems_of_a_part_that_is_read_on_its_own_keep_their_place() -> None:
    @attrs.frozen
    class Lazy:
        text: str

        def __attrs_post_init__(self) -> None:
            raise ConfigError([("$.text", "not today")])

    assert problems(Outer, {"name": "x", "inner": 7}) == (
        ("$.inner", "expected a mapping, found the number 7"),
    )
    assert problems(Lazy, {"text": "x"}) == (("$.text", "not today"),)


def test_tree_without_end_is_refused() -> None:
    tree: dict[str, object] = {}
    tree["not"] = tree

    assert problems(Selection, tree) == (("$", "nested more than 64 deep"),)


def test_lists_and_dicts_of_plugins_are_read_strictly_too() -> None:
    @attrs.frozen
    class Options:
        names: list[str] = attrs.field(factory=list)
        env: dict[str, str] = attrs.field(factory=dict)
        more: Mapping[str, int] = attrs.field(factory=dict)
        unique: set[int] = attrs.field(factory=set)

    good = {"names": ["a"], "env": {"a": "b"}, "more": {"c": 1}, "unique": [1, 1]}

    assert from_tree(Options, good) == Options(["a"], {"a": "b"}, {"c": 1}, {1})
    assert [path for path, _ in problems(Options, {"names": "a", "env": {"a": 1}})] == [
        "$.names",
        "$.env.a",
    ]


def test_tuples_of_fixed_length_have_items_of_their_own_kinds() -> None:
    @attrs.frozen
    class Steps:
        steps: tuple[tuple[str, float], ...]

    steps = Steps((("reserve", 0.5), ("create", 12.0)))

    assert from_tree(Steps, to_tree(steps)) == steps
    assert problems(Steps, {"steps": [["a"], [1, "b"]]}) == (
        ("$.steps[0]", "expected 2 items, found a list"),
        ("$.steps[1][0]", "expected text, found the number 1: put it in quotes"),
        ("$.steps[1][1]", "expected a number, found 'b'"),
    )
