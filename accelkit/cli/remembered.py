"""What agents of this boot wrote down, read and left as it is. Not here: what is believed now."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from accelkit.agent.cutting_steps import made_before
from accelkit.agent.disk import HostDisk
from accelkit.agent.heard import Told
from accelkit.agent.judged import Course, verdicts
from accelkit.agent.keeper_holdings import holdings_of, made_by, stuck_in
from accelkit.agent.knowledge import Claimed
from accelkit.agent.ledger import Ledger
from accelkit.agent.memory import NO_BOOT, MadeFor, Memory
from accelkit.agent.problems import AGENT, Problems
from accelkit.core.claims import LedgerEntry
from accelkit.core.clock import Clock
from accelkit.core.errors import LedgerError
from accelkit.core.model import DeviceId
from accelkit.core.values import freeze
from accelkit.core.view import View

UNREAD = "holders-unknown"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Remembered:
    """What lasts of a boot."""

    claimed: Claimed = Claimed()
    entries: tuple[LedgerEntry, ...] = ()
    """All claims that can be read, by uid."""
    made: frozenset[DeviceId] = frozenset()
    """Partitions that were made for the policy."""
    view: View = View()
    """Devices, verdicts and assignments as they were believed last."""
    edits: tuple[MadeFor, ...] = ()
    told: Told = Told()
    """What was heard."""


class _Looking(HostDisk):
    """Files that are read: locks, and so all that needs one, are left to agents."""

    def lock(self, path: Path) -> int | None:  # noqa: ARG002 - whichever it is
        return None


def remembered(run: str, boot: str, node: str, clock: Clock, problems: Problems) -> Remembered:
    """What agents with the run directory *run* wrote down in *boot*; nothing, if there were none.

    What cannot be read is noted in *problems*.
    """
    directory = Path(run) / (boot or NO_BOOT)
    ledger = Ledger(Path(run), boot or NO_BOOT, writer="", clock=clock, disk=_Looking())
    try:
        ledger.refresh()
    except LedgerError as error:
        problems.note(AGENT, UNREAD, "claims", str(error), "look as root")
        return Remembered()
    for one in ledger.unread:
        problems.note(AGENT, one.error.code, one.uid, str(one.error), one.error.remedy)
    memory = Memory(directory, "", problems)
    view, edits = memory.recall(node)
    course = memory.course() or Course()
    return Remembered(
        claimed=Claimed(holdings=holdings_of(ledger), made=made_by(ledger), stuck=stuck_in(ledger)),
        entries=_sorted(ledger.entries),
        made=made_before(directory),
        view=attrs.evolve(view, verdicts=verdicts(course, clock.monotonic())),
        edits=edits,
        told=course.told,
    )


def _sorted(entries: Mapping[str, LedgerEntry]) -> tuple[LedgerEntry, ...]:
    return tuple(entries[uid] for uid in sorted(entries))
