"""What vendors were told in this boot, as all instances of it know. Not here: what it means."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import attrs

from accelkit.core.evidence import Key, key_of, merge, record
from accelkit.core.model import Event, Evidence
from accelkit.core.values import FrozenMap, freeze

MOST_CLEARED = 256
"""So many are known to other instances; earlier ones they have seen long since."""
NEVER = -1
"""Before the first number of a source."""


@attrs.frozen
class Numbered:
    """Which of a source's signals it was; it counts them through a boot."""

    source: str
    number: int


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Cleared:
    """What an operator said is gone."""

    vendor: str
    subject: str
    code: str

    @property
    def key(self) -> Key:
        """Of the entry that it was."""
        return self.vendor, self.subject, self.code


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Told:
    """All that lasts of it."""

    evidence: tuple[Evidence, ...] = ()
    numbers: FrozenMap[str, int] = FrozenMap()
    """Of each vendor and source that numbers what it says in a boot: the last that became
    evidence; vendors need not hear at one pace."""
    cleared: tuple[Cleared, ...] = ()
    """The latest, in order."""
    clears: int = 0
    """How many there were in all."""


class Heard:
    """Writes events down, each once, whoever hears them again."""

    def __init__(self) -> None:
        self.told = Told()
        self._again: dict[str, int] = {}
        self._last: dict[str, int] = {}

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return self.told.evidence

    def recall(self, told: Told) -> None:
        """Begin with what an earlier instance wrote down."""
        self.told = told
        self._again = dict(told.numbers)

    def join(self, told: Told) -> bool:
        """Take over what the instance that leads wrote down; whether that is any news.

        What an operator cleared there is gone here, too; what only this instance heard stays.
        """
        ours, cleared = self.told, told.clears - self.told.clears
        gone = {one.key for one in told.cleared[-cleared:]} if cleared > 0 else set()
        left = (e for e in ours.evidence if key_of(e) not in gone)
        self.told = attrs.evolve(
            told if cleared > 0 else ours,
            evidence=merge(told.evidence, left),
            numbers=_latest(ours.numbers, told.numbers),
        )
        return self.told.evidence != ours.evidence

    def take(
        self,
        vendor: str,
        events: Iterable[Event],
        now: datetime,
        *,
        now_s: float | None = None,
        serious: Collection[str] = (),
        at: Numbered | None = None,
    ) -> None:
        """Write *events* of *vendor* down.

        Args:
            vendor: Who told.
            events: In the order in which they came.
            now: When that was.
            now_s: The same in monotonic seconds.
            serious: Codes of entries that are the last to be dropped where there are too many.
            at: Which signal they were made of, if it may be heard again.
        """
        several = tuple(events)
        if at is not None:
            source = f"{vendor}/{at.source}"
            if at.number < self._last.get(source, NEVER):
                self._again.pop(source, None)  # it counts anew: a simulated machine was booted
            self._last[source] = at.number
            before = self._again.get(source, NEVER)
            if at.number <= before:
                several = tuple(e for e in several if not self._known(vendor, e))
            latest = FrozenMap({**self.told.numbers, source: max(at.number, before)})
            self.told = attrs.evolve(self.told, numbers=latest)
        evidence = record(self.told.evidence, vendor, several, now, serious, now_s=now_s)
        self.told = attrs.evolve(self.told, evidence=evidence)

    def _known(self, vendor: str, event: Event) -> bool:
        """Whether an earlier instance wrote *event* down; it may be cleared by now."""
        key = (vendor, event.subject or "", event.code)
        known = {*map(key_of, self.told.evidence), *(one.key for one in self.told.cleared)}
        return key in known

    def clear(self, gone: Collection[Evidence]) -> None:
        """Forget *gone*: an operator says that it is."""
        keys = sorted(map(key_of, gone))
        several = tuple(Cleared(vendor=v, subject=s, code=c) for v, s, c in keys)
        self.told = attrs.evolve(
            self.told,
            evidence=tuple(e for e in self.told.evidence if key_of(e) not in keys),
            cleared=(*self.told.cleared, *several)[-MOST_CLEARED:],
            clears=self.told.clears + len(several),
        )


def _latest(one: Mapping[str, int], other: Mapping[str, int]) -> FrozenMap[str, int]:
    return FrozenMap(
        (source, max(one.get(source, NEVER), other.get(source, NEVER))) for source in {*one, *other}
    )
