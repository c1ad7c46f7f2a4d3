"""JSON Schema of what from_tree accepts."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator

from accelkit.agent.reload import load_yaml
from accelkit.core.errors import ConfigError
from accelkit.core.model import Device
from accelkit.core.policy import Policy, Selection
from accelkit.core.serde import from_tree, schema_of, to_tree
from tests.core.everything import values_of

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/policies").glob("*.yaml"))
SCHEMA: Any = schema_of(Policy)  # type: ignore[explicit-any]  # a tree
VALIDATOR = Draft202012Validator(SCHEMA)
EVERYTHING: Any = load_yaml(  # type: ignore[explicit-any]  # a tree
    next(p for p in EXAMPLES if p.stem == "everything").read_text()
)
JUNK: list[object] = [None, True, 7, -1, 1.5, "zzz", "3x", [], {}, ["a"], {"x": 1}, [{}], [None]]


def accepts(kind: type, tree: object) -> bool:
    try:
        from_tree(kind, tree)
    except ConfigError:
        return False
    return True


def places(tree: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    yield path
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree if isinstance(tree, list) else ())
    )
    for key, item in items:
        yield from places(item, (*path, key))


def put(tree: Any, path: tuple[Any, ...], junk: object) -> object:  # type: ignore[explicit-any]  # a tree
    changed = copy.deepcopy(tree)
    if not path:
        return junk
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = junk
    return changed


@pytest.mark.parametrize("kind", [Policy, Device, Selection], ids=lambda kind: kind.__name__)
def test_schema_is_one(kind: type) -> None:
    Draft202012Validator.check_schema(schema_of(kind))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid(path: Path) -> None:
    VALIDATOR.validate(load_yaml(path.read_text()))


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(values_of(Policy))
def test_schema_accepts_every_policy(policy: object) -> None:
    VALIDATOR.validate(to_tree(policy))


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from([*places(EVERYTHING)]), st.sampled_from(JUNK))
def test_schema_and_reader_agree_on_junk(place: tuple[object, ...], junk: object) -> None:
    tree = put(EVERYTHING, place, junk)

    assert VALIDATOR.is_valid(tree) == accepts(Policy, tree)


@pytest.mark.parametrize(
    "tree",
    [
        {"vendor": "a"},
        {"vendor": ["a", "b"]},
        {"attributes": {"a": [True, 9, "x"], "b": False}},
        {"memory": {"atLeast": "16Gi", "atMost": 17}},
        {"not": {"any": [{"all": [{"partition": True}]}]}},
        {"partition": None},
        {"vendor": 7},
        {"vendor": [7]},
        {"attributes": {"a": 1.5}},
        {"attributes": {"a": [None]}},
        {"memory": {"atLeast": "16gi"}},
        {"memory": {"atLeast": -1}},
        {"not": []},
        {"vednor": "a"},
    ],
)
def test_schema_and_reader_agree_on_selections(tree: object) -> None:
    validator = Draft202012Validator(schema_of(Selection))

    assert validator.is_valid(tree) == accepts(Selection, tree)


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"id": "a/b", "kind": "k", "attributes": {"v": {"version": "1.2.3"}, "w": [1], "x": ["a"]}},
        {"id": "a/b", "kind": "k", "attributes": {"v": {"verison": "1.2.3"}}},
        {"id": "a/b", "kind": "k", "sharing": ["none", "all"]},
        {"id": "a/b"},
    ],
)
def test_schema_and_reader_agree_on_devices(tree: object) -> None:
    validator = Draft202012Validator(schema_of(Device))

    assert validator.is_valid(tree) == accepts(Device, tree)


def test_schema_says_what_fields_mean_and_what_they_are_by_default() -> None:
    offer = SCHEMA["$defs"]["Offer"]
    read = SCHEMA["$defs"]["Read"]["properties"]

    assert offer["description"] == "Which devices, through which backend, on which terms."
    assert offer["properties"]["name"] == {
        "type": "string",
        "description": "DNS label of at most 40 characters.",
    }
    assert offer["required"] == ["name"]
    assert read["debounce"]["default"] == "500ms"
    assert SCHEMA["$defs"]["Sharing"]["properties"]["unit"]["default"] == "1Gi"


def test_class_without_source_has_no_descriptions() -> None:
    made = attrs.make_class("Made", {"word": attrs.field(type=str)})

    definition = schema_of(made)["$defs"]

    assert definition == {
        "Made": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "additionalProperties": False,
            "required": ["word"],
        }
    }


@attrs.frozen(kw_only=True)
class Options:
    speed: Literal["slow", "fast"] = "fast"
    names: list[str] = attrs.field(factory=list)
    env: dict[str, int] = attrs.field(factory=dict)
    """Variables."""
    word: str | None


def test_schema_of_a_plugins_options() -> None:
    definition = schema_of(Options)["$defs"]

    assert definition == {
        "Options": {
            "type": "object",
            "properties": {
                "speed": {"enum": ["slow", "fast"], "default": "fast"},
                "names": {"type": "array", "items": {"type": "string"}},
                "env": {
                    "type": "object",
                    "additionalProperties": {"type": "integer"},
                    "description": "Variables.",
                },
                "word": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "additionalProperties": False,
        }
    }


def test_type_that_no_file_can_hold_is_refused() -> None:
    made = attrs.make_class("Made", {"word": attrs.field(type=complex)})

    with pytest.raises(TypeError, match="complex'> cannot be in a file"):
        schema_of(made)
