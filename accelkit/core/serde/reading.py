"""Trees to values, strictly: exact types, no unknown keys, every problem at once.

The only module, with its sibling for writing, that knows cattrs: it finds the hook of a type and
writes the code that builds a class. Everything that decides what is accepted stands here.
"""

import math
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any, TypeAlias, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import IterableValidationError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn, override

from accelkit.core.errors import ConfigError
from accelkit.core.serde import kinds
from accelkit.core.serde.keys import LENIENT, did_you_mean, key_of
from accelkit.core.serde.problems import problems_of
from accelkit.core.units import Bytes, Seconds, checked_bytes, parse_duration, parse_quantity
from accelkit.core.values import FrozenMap, Version

T = TypeVar("T")
Hook: TypeAlias = Callable[[Any, Any], Any]  # type: ignore[explicit-any]  # as cattrs types hooks


def from_tree(kind: type[T], tree: object, path: str = "$") -> T:
    """Read *tree* as a *kind*.

    Args:
        kind: A class of fields, an enumeration, or any type that such a class may hold.
        tree: What ``json.loads`` or a YAML loader gave.
        path: Where *tree* stands; problems are named below it.

    Raises:
        ConfigError: All that is wrong with *tree*, with paths and suggestions.
    """
    if not _ends(tree, DEPTH_LIMIT):
        raise ConfigError([(path, f"nested more than {DEPTH_LIMIT} deep")])
    try:
        value: T = _CONVERTER.structure(tree, kind)
    except Exception as error:  # a vendor's option class may raise anything
        raise ConfigError(problems_of(error, path)) from error
    return value


def _ends(tree: object, depth: int) -> bool:
    """Whether *tree* has at most *depth* mappings and lists in each other."""
    if not isinstance(tree, (Mapping, list, tuple)):
        return True
    items = tree.values() if isinstance(tree, Mapping) else tree
    return depth > 0 and all(_ends(item, depth - 1) for item in items)


DEPTH_LIMIT = 64
SHOWN = 60
"""How many characters of a wrong text are shown."""
LARGE = 10**18
_FOUND: tuple[tuple[type, str], ...] = (
    (type(None), "nothing"),
    (Mapping, "a mapping"),
    (list, "a list"),
    (date, "a date"),
)


class Misfit(ValueError):
    """A tree is not what its place asks for."""

    def __init__(self, expected: str, found: object, hint: str = "") -> None:
        super().__init__(f"expected {expected}, found {_describe(found)}{hint}")


def _describe(tree: object) -> str:
    if isinstance(tree, str):
        return repr(tree if len(tree) <= SHOWN else f"{tree[:SHOWN]}...")
    if isinstance(tree, bool):
        return str(tree).lower()
    if isinstance(tree, (int, float)):
        # Python refuses to write whole numbers of thousands of digits.
        return "a large number" if abs(tree) > LARGE else f"the number {tree}"
    return next(
        (words for kind, words in _FOUND if isinstance(tree, kind)), f"a {type(tree).__name__}"
    )


def _read_text(tree: object, _: object) -> str:
    if not isinstance(tree, str):
        quotes = ": put it in quotes" if isinstance(tree, (bool, int, float, date)) else ""
        raise Misfit("text", tree, quotes)
    return tree


def _read_bool(tree: object, _: object) -> bool:
    if not isinstance(tree, bool):
        raise Misfit("true or false", tree)
    return tree


def _read_int(tree: object, _: object) -> int:
    if not isinstance(tree, int) or isinstance(tree, bool):
        raise Misfit("a whole number", tree)
    return int(tree)


def _read_float(tree: object, _: object) -> float:
    if isinstance(tree, bool) or not isinstance(tree, (int, float)):
        raise Misfit("a number", tree)
    if abs(tree) > 1e308 or not math.isfinite(tree):
        raise Misfit("a finite number", tree)
    return float(tree)


def _read_seconds(tree: object, _: object) -> Seconds:
    if not isinstance(tree, str):
        raise Misfit("a duration such as 30s, 500ms or 10m", tree)
    return parse_duration(tree)


def _read_bytes(tree: object, _: object) -> Bytes:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return checked_bytes(tree)
    if not isinstance(tree, str):
        raise Misfit("an amount such as 16Gi or 500M", tree)
    return parse_quantity(tree)


def _read_time(tree: object, _: object) -> datetime:
    if isinstance(tree, str):
        try:
            time = datetime.fromisoformat(tree)
        except ValueError:
            pass
        else:
            if time.tzinfo is not None:
                return time
    raise Misfit("a time such as 2027-01-31T10:00:00Z", tree)


def _read_enum(tree: object, kind: type[Enum]) -> Enum:
    words = kinds.words_of(kind)
    if isinstance(tree, str) and tree in words:
        return words[tree]
    hint = did_you_mean(tree, words) if isinstance(tree, str) else ""
    raise Misfit(f"one of {', '.join(words)}", tree, hint)


def _read_literal(tree: object, kind: object) -> object:
    for word in get_args(kind):
        if type(word) is type(tree) and word == tree:
            return word
    raise Misfit(f"one of {', '.join(str(w) for w in get_args(kind))}", tree)


def _read_written(tree: object, kind: type[kinds.Written]) -> object:
    return kind.parse(_read_text(tree, str))


def _read_tree(tree: object, _: object) -> object:
    """A tree that somebody else reads later; only what JSON can say."""
    if isinstance(tree, list):
        return _each(list(enumerate(tree)), object, "list")
    if isinstance(tree, Mapping):
        return _read_map(tree, dict[str, object])
    if tree is None or isinstance(tree, (bool, int, str)):
        return tree
    return _read_float(tree, float) if isinstance(tree, float) else _read_text(tree, str)


def _each(items: list[tuple[Any, object]], kind: object, where: str) -> list[object]:  # type: ignore[explicit-any]  # an index or a key
    return _all(items, (kind,) * len(items), where)


def _all(  # type: ignore[explicit-any]  # an index or a key
    items: list[tuple[Any, object]], several: Collection[object], where: str
) -> list[object]:
    """Each item as what it shall be, or all that is wrong with them."""
    done: list[object] = []
    errors: list[Exception] = []
    for (place, item), kind in zip(items, several, strict=True):
        try:
            done.append(_CONVERTER.structure(item, kind))  # type: ignore[arg-type]  # any type
        except Exception as error:  # noqa: BLE001 - all problems at once, whatever they are
            note = IterableValidationNote(f"at {place}", place, kind)
            error.__notes__ = [*getattr(error, "__notes__", []), note]
            errors.append(error)
    if errors:
        raise IterableValidationError(f"in a {where}", errors, object)
    return done


def _read_list(tree: object, kind: object) -> object:
    if not isinstance(tree, (list, tuple)):
        hint = ": leave the key out or write []" if tree is None else ""
        raise Misfit("a list", tree, hint)
    if places := kinds.places_of(kind):
        if len(tree) != len(places):
            raise Misfit(f"{len(places)} items", tree)
        return tuple(_all(list(enumerate(tree)), places, "list"))
    done = _each(list(enumerate(tree)), kinds.item_of(kind), "list")
    origin = get_origin(kind) or kind
    return origin(done) if origin in {set, frozenset, list} else tuple(done)


def _read_map(tree: object, kind: object) -> object:
    if not isinstance(tree, Mapping):
        hint = ": leave the key out or write {}" if tree is None else ""
        raise Misfit("a mapping", tree, hint)
    pairs = list(tree.items())
    keys = _each([(key, key) for key, _ in pairs], kinds.key_type_of(kind), "mapping")
    values = _each(pairs, kinds.value_of(kind), "mapping")
    done = dict(zip(keys, values, strict=True))
    return FrozenMap(done) if (get_origin(kind) or kind) is FrozenMap else done  # type: ignore[type-var]  # keys are ordered wherever a FrozenMap is declared


def _read_choice(tree: object, kind: object) -> object:
    members = kinds.choices_of(kind)
    if tree is None and kinds.admits_none(kind):
        return None
    if len(members) == 1:
        return _CONVERTER.structure(tree, members[0])  # type: ignore[arg-type]  # any type
    if Version in members and isinstance(tree, Mapping):
        # Beside plain text a version says what it is, as in Kubernetes' DeviceAttribute.
        return _CONVERTER.structure(tree, _Versioned).version
    alike = [member for member in members if _is_as_large(tree, member)]
    if len(alike) == 1:  # then what is wrong inside is worth more than that nothing fits
        return _CONVERTER.structure(tree, alike[0])  # type: ignore[arg-type]  # any type
    for member in members:
        try:
            return _CONVERTER.structure(tree, member)  # type: ignore[arg-type]  # any type
        except Exception:  # noqa: BLE001, S112 - the next one may fit
            continue
    *words, last = (_word(member) for member in members)
    raise Misfit(f"{', '.join(words)} or {last}", tree)


def _is_as_large(tree: object, member: object) -> bool:
    """Whether both are a list or both a mapping with known keys."""
    if isinstance(tree, Mapping):
        return kinds.is_fields(member)
    return isinstance(tree, (list, tuple)) and kinds.is_list(member)


@attrs.frozen(kw_only=True)
class _Versioned:
    version: Version


def _word(kind: object) -> str:
    words = {bool: "true or false", int: "a whole number", str: "text", float: "a number"}
    if kinds.is_list(kind):
        return "a list"
    if kinds.is_fields(kind):
        return "a mapping"
    name: str = getattr(kind, "__name__", str(kind))
    return words[kind] if isinstance(kind, type) and kind in words else name


def _lenient(hook: Hook) -> Hook:
    """Let one alternative stand without its list."""

    def read(tree: object, kind: object) -> object:
        if kinds.is_map(kind) and isinstance(tree, Mapping):
            return hook({key: _alternatives(item) for key, item in tree.items()}, kind)
        return hook([tree] if isinstance(tree, str) else tree, kind)

    return read


def _alternatives(tree: object) -> object:
    """Attribute values are compared as text, so numbers and booleans may stand as they are."""
    items = tree if isinstance(tree, list) else [tree]
    if not all(isinstance(item, (str, int)) for item in items):
        return tree
    return [str(i).lower() if isinstance(i, bool) else str(i) for i in items]


def _build(kind: Any) -> Hook:  # type: ignore[explicit-any]  # any class of fields
    fields = kinds.fields_of(kind)
    unknowns = {
        key_of(f.name): None
        for f in fields
        if f.default is attrs.NOTHING and kinds.admits_none(f.type)
    }
    hooks = {
        f.name: override(
            rename=key_of(f.name),
            struct_hook=_lenient(_read_map if kinds.is_map(f.type) else _read_list)
            if f.metadata.get(LENIENT)
            else None,
        )
        for f in fields
    }
    build = make_dict_structure_fn(
        kind,
        _CONVERTER,
        _cattrs_forbid_extra_keys=True,
        _cattrs_use_linecache=False,
        _cattrs_detailed_validation=True,
        **hooks,  # type: ignore[arg-type]  # the library takes options and fields as one
    )

    def read(tree: object, _: object) -> object:
        if not isinstance(tree, Mapping):
            hint = ": leave the key out or write {}" if tree is None else ""
            raise Misfit("a mapping", tree, hint)
        return build({**unknowns, **tree}, kind)

    return read


def _converter() -> cattrs.Converter:
    made = cattrs.Converter(detailed_validation=True, forbid_extra_keys=True)
    made.register_structure_hook_factory(kinds.is_fields, _build)
    tests: tuple[tuple[Callable[[object], bool], Hook], ...] = (
        (kinds.is_list, _read_list),
        (kinds.is_map, _read_map),
        (kinds.is_choice, _read_choice),
        (kinds.is_literal, _read_literal),
        (kinds.is_written, _read_written),
        (kinds.is_enum, _read_enum),
        (kinds.is_anything, _read_tree),
    )
    for test, hook in tests:
        made.register_structure_hook_func(test, hook)
    for leaf, hook in _LEAVES.items():
        # The hook of a class serves its subclasses too, and enumerations are text or numbers.
        made.register_structure_hook(leaf, hook if leaf not in {str, int} else _or_enum(hook))
    return made


def _or_enum(hook: Hook) -> Hook:
    return lambda tree, kind: (_read_enum if kinds.is_enum(kind) else hook)(tree, kind)


_LEAVES: dict[object, Hook] = {
    str: _read_text,
    bool: _read_bool,
    int: _read_int,
    float: _read_float,
    Seconds: _read_seconds,
    Bytes: _read_bytes,
    datetime: _read_time,
}
_CONVERTER = _converter()
