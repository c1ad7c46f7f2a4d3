"""Finds devices in CDI directories and merges their edits, as container runtimes do.

Not here: what a file may hold, and containers.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import field, frozen

from accelkit.conformance.sims.dra import specs
from accelkit.conformance.sims.dra.specs import Json, objects

SUFFIXES = (".json", ".yaml")
"""Of the files that runtimes read. YAML is read where it is JSON, which it may be."""


class Unresolvable(Exception):
    """No container can be made; the text is a runtime's."""


@frozen
class Spec:
    """One file."""

    path: Path
    tree: Json = field(repr=False)
    faults: tuple[str, ...] = ()
    """Why a reader refuses it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The full names of its devices."""
        kind = str(self.tree.get("kind", ""))
        return tuple(f"{kind}={d.get('name')}" for d in objects(self.tree.get("devices")))


@frozen
class Injected:
    """What a container gets."""

    env: tuple[tuple[str, str], ...] = ()
    """(name, value), sorted."""
    nodes: tuple[tuple[str, str], ...] = ()
    """(path in the container, path on the host), sorted."""
    mounts: tuple[tuple[str, str], ...] = ()
    """The same."""
    hooks: tuple[str, ...] = ()
    """Paths on the host, in order."""
    clashes: tuple[str, ...] = ()
    """What one device set and another set otherwise; the later wins."""


def read_specs(directories: Iterable[Path]) -> list[Spec]:
    """Every file of the directories, the one with less weight first; none is looked into twice."""
    paths = (path for directory in directories for path in sorted(directory.glob("*")))
    read = (_read(path) for path in paths if path.suffix in SUFFIXES)
    return [spec for spec in read if spec is not None]


def _read(path: Path) -> Spec | None:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return Spec(path, {}, (f"it cannot be read: {error}",))
    why = tuple(specs.faults(tree))
    return Spec(path, tree if isinstance(tree, dict) else {}, why)


def inject(directories: Sequence[Path], names: Iterable[str]) -> Injected:
    """What a container gets that asks for the devices *names*.

    Args:
        directories: The one with more weight last.
        names: ``vendor/class=device``, in order.

    Raises:
        Unresolvable: One is in no file, or in two of a directory.
    """
    files = [spec for spec in read_specs(directories) if not spec.faults]
    wanted = list(dict.fromkeys(names))
    chosen = {name: _file_of(name, files) for name in wanted}
    lacking = [name for name, found in chosen.items() if found is None]
    if lacking:
        listed = ", ".join(lacking)
        raise Unresolvable(f"CDI device injection failed: unresolvable CDI devices {listed}")
    merged = _Merged()
    applied: set[Path] = set()
    for name in wanted:
        spec = chosen[name]
        assert spec is not None
        if spec.path not in applied:
            applied.add(spec.path)
            merged.add(spec.tree.get("containerEdits"))
        for device in objects(spec.tree.get("devices")):
            if device.get("name") == name.partition("=")[2]:
                merged.add(device.get("containerEdits"))
    return merged.result()


def _file_of(name: str, files: Sequence[Spec]) -> Spec | None:
    holding = [spec for spec in files if name in spec.names]
    if not holding:
        return None
    last = holding[-1]
    rivals = [spec for spec in holding if spec.path.parent == last.path.parent]
    return last if len(rivals) == 1 else None


class _Merged:
    """Edits, one after another."""

    def __init__(self) -> None:
        self._env: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._mounts: dict[str, str] = {}
        self._hooks: list[str] = []
        self._clashes: list[str] = []

    def add(self, edits: object) -> None:
        if not isinstance(edits, dict):
            return
        for text in (t for t in _list(edits.get("env")) if isinstance(t, str)):
            name, _, value = text.partition("=")
            self._set(self._env, name, value, "variable")
        for node in objects(edits.get("deviceNodes")):
            path = str(node.get("path"))
            self._set(self._nodes, path, str(node.get("hostPath") or path), "device node")
        for mount in objects(edits.get("mounts")):
            at, host = str(mount.get("containerPath")), str(mount.get("hostPath"))
            self._set(self._mounts, at, host, "mount")
        self._hooks += [str(hook.get("path")) for hook in objects(edits.get("hooks"))]

    def _set(self, held: dict[str, str], name: str, value: str, what: str) -> None:
        if held.get(name, value) != value:
            self._clashes.append(f"{what} {name} is {held[name]} for one device, {value} for next")
        held[name] = value

    def result(self) -> Injected:
        return Injected(
            tuple(sorted(self._env.items())),
            tuple(sorted(self._nodes.items())),
            tuple(sorted(self._mounts.items())),
            tuple(self._hooks),
            tuple(self._clashes),
        )


def _list(found: object) -> Iterator[object]:
    return iter(found if isinstance(found, list) else ())
