"""Slices as the server has them, what we have just written included. Not here: writing."""

from collections.abc import Iterable

import attrs

from accelkit.backends.dra.stored import Stored, read_slice, version_of
from accelkit.core.kube import Json

ECHO_S = 10.0
"""How long the answer to a write counts more than a list that does not show it."""


@attrs.frozen
class _Answer:
    stored: Stored | None
    """What a write made of an object; None: it is gone."""
    before: frozenset[str]
    """Versions that a list may still show; empty text: that it is not there."""
    until: float


@attrs.define
class Seen:
    """By name. What a list shows may be older than what we wrote ourselves."""

    listed: bool = False
    """False: nothing was heard of the server yet."""
    _shown: dict[str, Stored] = attrs.Factory(dict)
    _answers: dict[str, _Answer] = attrs.Factory(dict)

    def show(self, items: Iterable[tuple[str, Json]], now_s: float) -> None:
        """Take all that a list or a watch shows, by name."""
        self._shown = {
            name: known
            if (known := self._shown.get(name)) is not None and known.version == version_of(item)
            else read_slice(item)
            for name, item in items
        }
        self.listed = True
        self._settle(now_s)

    def answer(self, name: str, stored: Stored | None, now_s: float) -> None:
        """Take what a write made of the object, or a question found."""
        earlier = self._answers.get(name)
        before = {self._version(name)}
        if earlier is not None:
            before |= earlier.before | {earlier.stored.version if earlier.stored else ""}
        self._answers[name] = _Answer(stored, frozenset(before), now_s + ECHO_S)

    def of(self, driver: str, now_s: float) -> tuple[Stored, ...]:
        """The slices of *driver*, by name."""
        self._settle(now_s)
        found = self._shown | {
            name: answer.stored for name, answer in self._answers.items() if answer.stored
        }
        gone = {name for name, answer in self._answers.items() if answer.stored is None}
        return tuple(
            found[name] for name in sorted(found.keys() - gone) if found[name].driver == driver
        )

    def _settle(self, now_s: float) -> None:
        """Forget answers that are shown by now, or should be."""
        self._answers = {
            name: answer
            for name, answer in self._answers.items()
            if self._version(name) in answer.before and now_s < answer.until
        }

    def _version(self, name: str) -> str:
        shown = self._shown.get(name)
        return "" if shown is None else shown.version
