"""Who holds what on a node, from its agent or by a look of one's own. Not here: any output."""

from datetime import datetime
from typing import TYPE_CHECKING

import attrs

from accelkit.core.errors import TransportError
from accelkit.core.values import freeze

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accelkit.cli.options import Asked
    from accelkit.core.claims import LedgerEntry
    from accelkit.core.model import Holding, Problem

UNKNOWN = "holders-unknown"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Held:
    """A device, or a share of it, and who has it."""

    device: str
    share: str | None = None
    namespace: str | None = None
    pod: str | None = None
    container: str | None = None
    claim: str | None = None
    state: str | None = None
    """How far its claim got; None: it is no claim that was written down."""
    process: str | None = None
    """Id of a process that nobody gave it to."""
    through: str
    since: datetime | None = None
    """When its claim came into its state."""


def holders(asked: "Asked") -> tuple[Held, ...]:
    """Everybody who holds a device of the node that *asked* names.

    Its agent is asked if there is one; else vendors, the kubelet and what was written down are.

    Raises:
        TransportError: It cannot be known.
    """
    from accelkit.cli.asking import agent_of  # noqa: PLC0415 - help does without
    from accelkit.cli.reading import look  # noqa: PLC0415 - see above

    agent = agent_of(asked)
    if agent is not None:
        view = agent.view()
        return _held(view.holdings, agent.claims(), agent.problems())
    found = look(asked)
    if not found.holders_known:
        _refuse("there is no agent, and the kubelet does not say")
    return _held(found.view.holdings, found.claims, found.view.snapshot.problems)


def _held(
    holdings: "Iterable[Holding]",
    claims: "Iterable[LedgerEntry]",
    problems: "Iterable[Problem]",
) -> tuple[Held, ...]:
    for problem in problems:
        if problem.code == UNKNOWN:
            _refuse(problem.reason)
    entries = {entry.claim.uid: entry for entry in claims}
    found = (_one(holding, entries.get(holding.holder.uid or "")) for holding in holdings)
    return tuple(sorted(found, key=lambda one: (one.device, one.share or "", one.claim or "")))


def _one(holding: "Holding", entry: "LedgerEntry | None") -> Held:
    from accelkit.core.values import HolderKind  # noqa: PLC0415 - help does without

    who = holding.holder
    unread = who.uid if who.kind is HolderKind.CLAIM else None
    return Held(
        device=str(holding.device),
        share=holding.share,
        namespace=who.namespace,
        pod=who.pod,
        container=who.container,
        claim=who.claim or unread,
        state=None if entry is None else entry.state.value,
        process=who.uid if who.kind is HolderKind.FOREIGN else None,
        through=holding.through,
        since=None if entry is None else entry.since,
    )


def _refuse(why: str) -> None:
    raise TransportError(
        f"it cannot be known who holds devices: {why}",
        remedy="start the kubelet or the agent, and ask as root",
    )
