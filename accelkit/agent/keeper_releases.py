"""Releases that fail: told, tried again ever more rarely, and given up. Not here: the undoing."""

from collections.abc import Callable, Collection

import attrs

from accelkit.agent.keeper_means import Means, Patience, Tell
from accelkit.agent.keeper_undo import UNDOING, undo
from accelkit.agent.problems import Problems
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import AccelkitError, PrepareFailed
from accelkit.core.foreign import in_words

KEEPER = "keeper"
"""Owner of the keeper's problems."""
PAUSES_S = (1.0, 60.0)
"""Shortest and longest pause between two tries that nobody asked for."""


@attrs.define
class _Failing:
    name: str
    since: float
    pause_s: float
    due: float


class Releases:
    """Undoes claims, and keeps in mind which could not be undone.

    Args:
        drivers: Ours: what a claim without an entry may have left is looked for under their names.
        give_up_after_s: How long a release may fail before it is answered as done.
    """

    def __init__(
        self,
        means: Means,
        drivers: Callable[[], Collection[str]],
        give_up_after_s: Callable[[], float],
        tell: Tell,
        problems: Problems,
    ) -> None:
        self._means = means
        self._drivers = drivers
        self._give_up_after_s = give_up_after_s
        self._tell = tell
        self._problems = problems
        self._failing: dict[str, _Failing] = {}

    def due(self) -> tuple[str, ...]:
        """Claims that are left half undone, and whose next try has come."""
        entries = self._means.ledger.entries
        for uid in self._failing.keys() - entries.keys():  # another instance has done it
            self._over(uid)
        now = self._means.clock.monotonic()
        return tuple(
            uid
            for uid, entry in entries.items()
            if entry.state in UNDOING
            and (uid not in self._failing or self._failing[uid].due <= now)
        )

    async def undo(self, uid: str) -> None:
        """Undo a claim that is held; one of which there is no entry is fine.

        Raises:
            AccelkitError: It could not be undone yet; not once it was given up.
        """
        entry = self._means.ledger.look(uid)
        if entry is None:
            for driver in self._drivers():
                self._means.files.remove(driver, uid)
            self._means.ledger.remove_scratch(uid)
            self._means.drop(uid)
            self._over(uid)
            return
        try:
            await undo(self._means, entry, Patience(self._means.clock))
        except AccelkitError as error:
            self._failed(entry, error)
        except Exception as error:  # noqa: BLE001 - a bug must not keep a claim for ever
            self._failed(entry, PrepareFailed(f"undoing it broke: {in_words(error)}"))
        else:
            self._over(uid)

    def _failed(self, entry: LedgerEntry, error: AccelkitError) -> None:
        """Note that *entry* could not be undone; raise *error* unless it is given up."""
        uid = entry.claim.uid
        now = self._means.clock.monotonic()
        shortest, longest = PAUSES_S
        name = f"{entry.claim.namespace}/{entry.claim.name}"
        failing = self._failing.setdefault(uid, _Failing(name, now, shortest, now))
        failing.due = now + failing.pause_s
        failing.pause_s = min(2 * failing.pause_s, longest)
        text = f"claim {name} cannot be undone: {error}"
        self._problems.note(KEEPER, "release-failing", name, text, error.remedy)
        left = self._means.ledger.entries.get(uid, entry)
        if left.state is not EntryState.STUCK:
            self._tell("ReleaseFailing", text, claim=entry.claim)
            if now - failing.since < self._give_up_after_s():
                raise error
            self._means.put(attrs.evolve(left, state=EntryState.STUCK))
            given_up = f"claim {name} was given up, and its devices stay taken: {error}"
            self._tell("ReleaseStuck", given_up, claim=entry.claim)

    def _over(self, uid: str) -> None:
        if (failing := self._failing.pop(uid, None)) is not None:
            self._problems.solve(KEEPER, "release-failing", failing.name)
