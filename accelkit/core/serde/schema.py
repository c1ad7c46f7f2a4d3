"""JSON Schema of what ``from_tree`` accepts. Not here: what only a second look can tell."""

import ast
import inspect
import textwrap
from datetime import datetime
from itertools import pairwise
from typing import TypeAlias, get_args

import attrs

from accelkit.core.serde import kinds
from accelkit.core.serde.keys import LENIENT, key_of
from accelkit.core.serde.writing import Tree, to_tree
from accelkit.core.units import BYTES_LIMIT, DURATION_PATTERN, QUANTITY_PATTERN, Bytes, Seconds
from accelkit.core.values import Version

Schema: TypeAlias = dict[str, Tree]
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(kind: type) -> Schema:
    """The schema of files that hold a *kind*, as a tree (draft 2020-12)."""
    definitions: dict[str, Tree] = {}
    root = _schema(kind, definitions)
    return {"$schema": DIALECT, **root, "$defs": dict(sorted(definitions.items()))}


def _schema(kind: object, definitions: dict[str, Tree]) -> Schema:
    if kinds.is_fields(kind):
        assert isinstance(kind, type)
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = None  # a class may hold itself
            definitions[kind.__name__] = _fields_schema(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kinds.is_choice(kind):
        return _choice_schema(kind, definitions)
    if kinds.is_map(kind):
        return {
            "type": "object",
            "additionalProperties": _schema(kinds.value_of(kind), definitions),
        }
    if kinds.is_list(kind):
        return {"type": "array", "items": _schema(kinds.item_of(kind), definitions)}
    return _leaf_schema(kind)


def _leaf_schema(kind: object) -> Schema:
    if kinds.is_enum(kind):
        return {"enum": [*kinds.words_of(kind)]}  # type: ignore[arg-type]  # is_enum said so
    if kinds.is_literal(kind):
        return {"enum": [*get_args(kind)]}
    if kinds.is_anything(kind):
        return {}
    if kinds.is_written(kind):
        return {"type": "string"}
    for leaf, schema in _LEAVES:
        if kind is leaf:
            return dict(schema)
    raise TypeError(f"{kind} cannot be in a file")


def _choice_schema(kind: object, definitions: dict[str, Tree]) -> Schema:
    members: list[Tree] = [
        {
            "type": "object",
            "properties": {"version": {"type": "string"}},
            "required": ["version"],
            "additionalProperties": False,
        }
        if member is Version
        else _schema(member, definitions)
        for member in kinds.choices_of(kind)
    ]
    if kinds.admits_none(kind):
        members.append({"type": "null"})
    return {"anyOf": members}


def _fields_schema(kind: type, definitions: dict[str, Tree]) -> Schema:
    notes = _notes(kind)
    properties: dict[str, Tree] = {}
    required: list[Tree] = []
    for field in kinds.fields_of(kind):
        schema = _schema(field.type, definitions)
        if field.metadata.get(LENIENT):
            schema = _lenient(schema)
        if field.name in notes:
            schema["description"] = notes[field.name]
        if field.default is attrs.NOTHING:
            if not kinds.admits_none(field.type):
                required.append(key_of(field.name))
        elif field.default is not None and not isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
            schema["default"] = _default(field)
        properties[key_of(field.name)] = schema
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if kind.__doc__:
        schema["description"] = kind.__doc__.partition("\n")[0]
    return {**schema, "required": required} if required else schema


def _default(field: "attrs.Attribute[object]") -> Tree:
    # Alone, a default does not say that it is a duration or an amount.
    holder = attrs.make_class("Holder", {"it": attrs.field(type=field.type)}, frozen=True)
    tree = to_tree(holder(field.default))
    assert isinstance(tree, dict)
    return tree.get("it")


def _lenient(schema: Schema) -> Schema:
    if "items" in schema:
        return {"anyOf": [{"type": "string"}, schema]}
    one: Schema = {"type": ["string", "integer", "boolean"]}
    return {
        "type": "object",
        "additionalProperties": {"anyOf": [one, {"type": "array", "items": one}]},
    }


def _notes(kind: type) -> dict[str, str]:
    """The sentences that stand below fields; none where the source is not at hand."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, SyntaxError, TypeError):
        return {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        field.target.id: " ".join(note.value.value.split())
        for field, note in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(note, ast.Expr)
        and isinstance(note.value, ast.Constant)
        and isinstance(note.value.value, str)
    }


_LEAVES: tuple[tuple[object, Schema], ...] = (
    (str, {"type": "string"}),
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (datetime, {"type": "string", "format": "date-time"}),
    (Seconds, {"type": "string", "pattern": f"^({DURATION_PATTERN})$"}),
    (
        Bytes,
        {
            "anyOf": [
                {"type": "string", "pattern": f"^({QUANTITY_PATTERN})$"},
                {"type": "integer", "minimum": 0, "maximum": BYTES_LIMIT},
            ]
        },
    ),
)
