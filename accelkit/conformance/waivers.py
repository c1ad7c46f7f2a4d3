"""Failures that somebody has answered for: conformance.toml. Not here: verdicts."""

import tomllib
from collections.abc import Collection, Iterator
from datetime import date
from pathlib import Path

import attrs

from accelkit.core.errors import ConfigError

FILE = "conformance.toml"
"""Looked for in the working directory."""
_EXAMPLE = '[[waive]] with id = "H03", reason = "..." and expires = 2027-01-31'


@attrs.frozen(kw_only=True)
class Waiver:
    """One check may fail until a day."""

    id: str
    reason: str
    expires: date
    """The last day."""


def read_waivers(path: Path, known: Collection[str]) -> tuple[Waiver, ...]:
    """The waivers in *path*.

    Args:
        path: A TOML file with a list of tables ``waive``.
        known: Ids of the checks that there are.

    Raises:
        ConfigError: It cannot be read, or something in it is wrong; all of it at once.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([(str(path), f"cannot be read: {error}")]) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([(str(path), f"is not TOML: {error}")]) from error
    items = tree.pop("waive", [])
    problems = [(key, "is not known here") for key in tree]
    found: list[Waiver] = []
    if not isinstance(items, list):
        items, problems = [], [*problems, ("waive", "must be a list of tables")]
    for index, item in enumerate(items):
        wrong = list(_problems(item, known))
        problems += [(f"waive[{index}]", text) for text in wrong]
        if not wrong:
            found.append(Waiver(**item))
    ids = [waiver.id for waiver in found]
    problems += [(i, "is waived twice") for i in sorted({i for i in ids if ids.count(i) > 1})]
    if problems:
        raise ConfigError(problems, remedy=f"write {_EXAMPLE}")
    return tuple(found)


def _problems(item: object, known: Collection[str]) -> Iterator[str]:
    if not isinstance(item, dict) or item.keys() != {"id", "reason", "expires"}:
        yield "must have id, reason and expires, and nothing else"
        return
    if item["id"] not in known:
        yield f"there is no check {item['id']}"
    if not (isinstance(item["reason"], str) and item["reason"].strip()):
        yield "the reason must be a sentence"
    if type(item["expires"]) is not date:
        yield "expires must be a date, as 2027-01-31"
