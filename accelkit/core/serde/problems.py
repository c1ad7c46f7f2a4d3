"""What cattrs raised, as paths and sentences."""

from collections.abc import Iterator

import attrs
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)

from accelkit.core.errors import AccelkitError, ConfigError
from accelkit.core.serde.keys import child, did_you_mean, key_of


def problems_of(error: BaseException, path: str) -> Iterator[tuple[str, str]]:
    """(path, text) for each leaf of *error*, in the order of fields, unknown keys last."""
    path = _place(error, path)
    if isinstance(error, BaseValidationError):
        for part in error.exceptions:
            yield from problems_of(part, path)
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [key_of(f.name) for f in attrs.fields(error.cl)]
        for key in sorted(error.extra_fields, key=str):
            yield child(path, key), f"unknown key{did_you_mean(key, known)}"
    elif isinstance(error, ConfigError):
        for place, text in error.problems:
            yield path + place.removeprefix("$"), text
    elif isinstance(error, KeyError) and path.endswith(child("", *error.args)):
        yield path, "missing"
    else:
        yield path, _sentence(error)


def _place(error: BaseException, path: str) -> str:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return child(path, key_of(note.name))
        if isinstance(note, IterableValidationNote):
            return child(path, note.index)
    return path


def _sentence(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    remedy = error.remedy if isinstance(error, AccelkitError) else ""
    return f"{text}; {remedy}" if remedy else text
