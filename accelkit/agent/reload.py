"""The policy file as it is on disk: text to a policy. Not here: what a policy may say."""

import stat
from collections.abc import Callable
from pathlib import Path

import yaml

try:
    from yaml import CSafeLoader as SafeLoader  # ten times as fast
except ImportError:  # pragma: no cover - PyYAML was built without libyaml
    from yaml import SafeLoader  # type: ignore[assignment]  # the same but for its speed

from accelkit.core.errors import ConfigError
from accelkit.core.policy import Policy
from accelkit.core.policy_check import parse_policy

SIZE_LIMIT = 1 << 20
"""Bytes. A policy of a whole fleet is some ten thousand."""
DEPTH_LIMIT = 32
"""Mappings and lists in each other."""
NUMBER_LIMIT = 64
"""Characters of a number. Python refuses to write what is much longer."""


def read_policy_file(path: str | Path) -> Policy:
    """Read the policy at *path*: YAML or JSON; an empty file is all defaults.

    Only what is spelt wrong is found here; *policy_problems* looks at what it says.

    Raises:
        ConfigError: The file cannot be read, or is no policy; all that is wrong with it.
    """
    return parse_policy(read_tree(path))


def read_tree(path: str | Path) -> object:
    """What the file at *path* says, as ``json.loads`` would give it; None: nothing.

    Raises:
        ConfigError: It cannot be read.
    """
    return load_yaml(_text(Path(path)), str(path))


def load_yaml(text: str, name: str = "$") -> object:
    """The one document in *text*, as ``json.loads`` would give it.

    Refuses what only YAML can say: keys given twice, anchors, aliases and tags, several documents.

    Args:
        text: YAML; JSON is YAML, too.
        name: What errors call it.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        _refuse_tricks(text, name)
        tree: object = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        raise ConfigError([(_at(name, error.problem_mark), _reason(error))]) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        place = f"{name}, line {line}, column {column}"
        raise ConfigError([(place, f"{error.character:#06x} is no letter of YAML")]) from error
    except yaml.YAMLError as error:
        raise ConfigError([(name, f"not YAML: {' '.join(str(error).split())}")]) from error
    return tree


def _text(path: Path) -> str:
    try:
        kind = path.stat()
        if not stat.S_ISREG(kind.st_mode):
            raise ConfigError([(str(path), "not a file")], remedy="name a file of YAML")
        with path.open("rb") as file:
            raw = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise ConfigError([(str(path), f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        raise ConfigError([(repr(str(path)), f"cannot be a path: {error}")]) from error
    if len(raw) > SIZE_LIMIT:
        raise ConfigError([(str(path), f"longer than {SIZE_LIMIT >> 10} KiB")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([(str(path), f"not UTF-8 at byte {error.start}")]) from error


def _refuse_tricks(text: str, name: str) -> None:
    """Look at the text's events before anything is built of them."""
    depth = 0
    for event in yaml.parse(text, Loader=SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if refused := _trick(event, depth):
            raise ConfigError([(_at(name, event.start_mark), refused)])


def _trick(event: yaml.Event, depth: int) -> str | None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        return "anchors and aliases are not read"
    if tag := getattr(event, "tag", None):
        return f"the tag {tag} is not read"
    if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
        return "merge keys are not read"
    return f"nested more than {DEPTH_LIMIT} deep" if depth > DEPTH_LIMIT else None


class _Loader(SafeLoader):
    """Refuses keys that are no text, as JSON does, and those given twice."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    seen: dict[object, object] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            quotes = f": put {key_node.value} in quotes" if key_node.id == "scalar" else ""
            raise yaml.MarkedYAMLError(
                problem=f"a key must be text{quotes}", problem_mark=key_node.start_mark
            )
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark
            )
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


def _scalar(
    read: Callable[[SafeLoader, yaml.ScalarNode], object], what: str
) -> Callable[[_Loader, yaml.ScalarNode], object]:
    """*read* for what looks like a *what*, and may be none."""

    def construct(loader: _Loader, node: yaml.ScalarNode) -> object:
        try:
            if len(node.value) <= NUMBER_LIMIT:
                return read(loader, node)
            wrong = f"{len(node.value)} characters are no {what}"
        except (ValueError, OverflowError):
            wrong = f"{node.value} is no {what}"
        raise yaml.MarkedYAMLError(
            problem=f"{wrong}; text that looks like one must be in quotes",
            problem_mark=node.start_mark,
        )

    return construct


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
for _tag, _read, _what in (
    ("int", SafeLoader.construct_yaml_int, "number"),
    ("float", SafeLoader.construct_yaml_float, "number"),
    ("timestamp", SafeLoader.construct_yaml_timestamp, "date"),
):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _scalar(_read, _what))


def _at(name: str, mark: object) -> str:
    line, column = getattr(mark, "line", None), getattr(mark, "column", None)
    return (
        name if line is None or column is None else f"{name}, line {line + 1}, column {column + 1}"
    )


def _reason(error: yaml.MarkedYAMLError) -> str:
    return " ".join(str(part) for part in (error.context, error.problem) if part)
