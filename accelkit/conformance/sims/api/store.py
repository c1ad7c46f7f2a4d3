"""Objects, and the changes that led to them. Not here: who may change what.

An object in the store is never changed, only replaced: whoever holds one holds it as it was.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping

from attrs import frozen

from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.values import names_of, part
from accelkit.core.kube import ChangeKind

Object = Mapping[str, object]
Key = tuple[str, str, str]
"""Collection, namespace and name."""


@frozen(kw_only=True)
class Written:
    """One change: what was there before, and what is there now."""

    version: int
    key: Key
    before: Object | None
    after: Object | None

    @property
    def kind(self) -> ChangeKind:
        if self.before is None:
            return ChangeKind.ADDED
        return ChangeKind.DELETED if self.after is None else ChangeKind.MODIFIED


class Store:
    """The objects of a cluster, with one counter of versions for all.

    Args:
        history: How many changes can be looked back; a watch from before them has to start anew.
    """

    def __init__(self, history: int) -> None:
        self.version = 1
        self._objects: dict[Key, Object] = {}
        self._history: deque[Written] = deque(maxlen=history)
        self._forgotten = 0
        """The version of the latest change that is not in the history any more."""
        self.news = asyncio.Event()
        """Set by the next change, which puts a new one here."""

    @property
    def oldest(self) -> int:
        """The version from which every change is known."""
        return self._forgotten

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self._objects.get((kind.collection, namespace, name))

    def all(self) -> Iterator[Object]:
        """Every object of every kind."""
        return iter(tuple(self._objects.values()))

    def items(self, kind: Kind, namespace: str = "", version: int | None = None) -> list[Object]:
        """The objects of a kind by namespace and name, at present or at an earlier *version*.

        The version is one from `oldest` on.
        """
        found = {key: item for key, item in self._objects.items() if key[0] == kind.collection}
        for written in reversed(self._history):
            if version is None or written.version <= version:
                break
            if written.key[0] == kind.collection:
                found.pop(written.key, None)
                if written.before is not None:
                    found[written.key] = written.before
        inside = (key for key in sorted(found) if namespace in {"", key[1]})
        return [found[key] for key in inside]

    def put(self, kind: Kind, item: Object) -> Object:
        """Keep *item* instead of what has its name; returns it with its new version."""
        key = (kind.collection, *names_of(item))
        meta = {**part(item, "metadata"), "resourceVersion": str(self.version + 1)}
        stored = {**item, "metadata": _ordered(meta)}
        self._record(key, stored)
        return stored

    def remove(self, kind: Kind, item: Object) -> Object:
        """Let go of an object; returns its last state, with the version of its end."""
        meta = {**part(item, "metadata"), "resourceVersion": str(self.version + 1)}
        self._record((kind.collection, *names_of(item)), None)
        return {**item, "metadata": meta}

    def _record(self, key: Key, after: Object | None) -> None:
        self.version += 1
        if len(self._history) == self._history.maxlen:
            self._forgotten = self._history[0].version if self._history else self.version
        before = self._objects.pop(key, None)
        if after is not None:
            self._objects[key] = after
        self._history.append(Written(version=self.version, key=key, before=before, after=after))
        self.nudge()

    def nudge(self) -> None:
        """Let everybody who waits look again."""
        news, self.news = self.news, asyncio.Event()
        news.set()

    def since(self, kind: Kind, version: int) -> list[Written]:
        """The changes of a kind after *version*, the oldest first."""
        found = []
        for written in reversed(self._history):
            if written.version <= version:
                break
            if written.key[0] == kind.collection:
                found.append(written)
        return found[::-1]

    def forget(self) -> None:
        """Forget every change: whoever knows an earlier version has to start anew."""
        self.version += 1
        self._forgotten = self.version
        self._history.clear()
        self.nudge()


def _ordered(meta: Object) -> Object:
    """*meta* in a server's order: a version stands behind the uid."""
    order = ("name", "generateName", "namespace", "uid", "resourceVersion")
    first = {name: meta[name] for name in order if name in meta}
    return {**first, **{name: value for name, value in meta.items() if name not in order}}
