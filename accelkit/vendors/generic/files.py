"""Paths and globs of rules, as files of the host. Not here: what they are for."""

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import lru_cache

import attrs

from accelkit import DeviceNode, Host, NotThere, Stat
from accelkit.vendors.generic.options import SIGNS, Match, MountRule, NodeRule, Rule

NODES = frozenset({"c", "b"})
"""Kinds of file that are device nodes."""


@attrs.define
class Files:
    """What a host has during one call: nothing is looked at twice."""

    host: Host
    _folders: dict[str, tuple[str, ...]] = attrs.field(factory=dict, init=False)
    _looks: dict[str, Stat | None] = attrs.field(factory=dict, init=False)
    _ends: dict[str, str] = attrs.field(factory=dict, init=False)

    def nodes(self, pattern: str) -> tuple[str, ...]:
        """Device nodes that a path or glob names, ascending; a star stays within one folder."""
        return tuple(path for path in self._named(pattern) if self.is_node(path))

    def others(self, pattern: str) -> tuple[str, ...]:
        """The same of files that are no device nodes."""
        there = ((path, self.look(path)) for path in self._named(pattern))
        return tuple(path for path, found in there if found and found.kind not in NODES)

    def all_of(self, part: NodeRule | MountRule, pattern: str) -> tuple[str, ...]:
        """What *pattern* names of what *part* is about."""
        return self.nodes(pattern) if isinstance(part, NodeRule) else self.others(pattern)

    def of_turn(self, part: NodeRule | MountRule, turn: int) -> str | None:
        """The match of a part with a limit for the device that has this *turn*, from 0 on."""
        there = self.all_of(part, part.path)
        return there[turn % len(there)] if turn < len(there) * (part.limit or 0) else None

    def look(self, path: str) -> Stat | None:
        if path not in self._looks:
            self._looks[path] = self.host.stat(path)
        return self._looks[path]

    def is_node(self, path: str) -> bool:
        found = self.look(path)
        return found is not None and found.kind in NODES

    def real(self, path: str) -> str:
        """What is at the end of the links at *path*."""
        if path not in self._ends:
            try:
                self._ends[path] = self.host.resolve(path)
            except NotThere:
                self._ends[path] = path
        return self._ends[path]

    def is_folder(self, path: str) -> bool:
        found = self.look(path)
        return found is not None and found.kind == "d"

    def node(self, path: str, container_path: str, permissions: str) -> DeviceNode:
        """The node at *path*, for the container; whatever link leads to it."""
        found, real = self.look(path), self.real(path)
        place = placed(container_path, path)
        return DeviceNode(
            path=place,
            host_path=None if real == place else real,
            permissions=permissions,
            kind="c" if found is None else found.kind,
        )

    def _named(self, pattern: str) -> list[str]:
        """Paths that *pattern* may name; of one without signs it is not known whether it is."""
        found = [""]
        for part in pattern.strip("/").split("/"):
            if any(sign in part for sign in SIGNS):
                fits = _fitting(part)
                found = [f"{f}/{name}" for f in found for name in self._names(f) if fits(name)]
            else:
                found = [f"{f}/{part}" for f in found]
        return found

    def _names(self, folder: str) -> tuple[str, ...]:
        if folder not in self._folders:
            # No value that is sent anywhere can have a name that no text can.
            there = self.host.names(folder or "/")
            self._folders[folder] = tuple(name for name in there if name.isprintable())
        return self._folders[folder]


@lru_cache(maxsize=256)
def _fitting(part: str) -> Callable[[str], object]:
    """Whether a name fits a part of a glob; a star does not stand for a dot at the beginning."""
    whole = translate(part)
    return re.compile(whole if part.startswith(".") else rf"(?!\.){whole}").match


def placed(container_path: str, path: str) -> str:
    """Where a container finds what the host has at *path*."""
    if container_path.endswith("/"):
        return f"{container_path}{path.rpartition('/')[2]}"
    return container_path or path


def filled(match: Match, path: str, places: Iterable[str]) -> Iterator[str]:
    """*path* with the place of each device of a set filled in."""
    for place in places:
        bus, _, port = place.partition("-")
        text = path
        for name, value in (("{address}", place), ("{bus}", bus), ("{port}", port)):
            text = text.replace(name, value) if name in match.placeholders else text
        yield text


def patterns(rule: Rule, parts: Iterable[NodeRule | MountRule], places: Iterable[str]) -> list[str]:
    """The paths and globs of *parts* for a device at *places*, once each."""
    known = list(places)
    every = (text for part in parts for text in filled(rule.matches[0], part.path, known))
    return list(dict.fromkeys(every))
