"""Claims that nobody will release: gone from the API server, and used by no pod here.

Not here: how they are released, and orphaned files.
"""

import logging
import random
from collections.abc import Awaitable, Callable, Iterable

from accelkit.agent.holders import Holders
from accelkit.agent.keeper import Keeper
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.clock import Clock
from accelkit.core.errors import ApiError, BackendError
from accelkit.core.kube import CLAIMS, KubePort

log = logging.getLogger(__name__)

SPREAD = (0.8, 1.2)
"""Of the period: a fleet that starts together does not ask together."""
AGAIN_S = 30.0
"""After a look that could not be finished, at the latest."""
NOT_THERE = 404
_LIVING = frozenset({EntryState.WORKING, EntryState.READY})
"""The others are being undone already."""


async def reconcile(  # noqa: PLR0917 - who is asked, and when
    keeper: Keeper,
    kube: Callable[[], KubePort | None],
    ask_holders: Callable[[], Awaitable[Holders]],
    leading: Callable[[], bool],
    period_s: Callable[[], float],
    clock: Clock,
) -> None:
    """Look every *period_s*, more or less, while leading; until cancelled.

    Args:
        keeper: Releases what was found twice in a row.
        kube: None: there is no API access, and only files are looked at.
        ask_holders: Asks the kubelet; where it does not answer, no claim is released.
        leading: Whether this instance leads.
        period_s: Of the policy.
        clock: Of the pauses.
    """
    complete = True
    while True:
        period = period_s() * random.uniform(*SPREAD)  # noqa: S311 - spreads nodes
        await clock.sleep(period if complete else min(period, AGAIN_S))
        if leading():
            complete = await _look(keeper, kube(), await ask_holders())


async def _look(keeper: Keeper, kube: KubePort | None, holders: Holders) -> bool:
    """Look once; whether it could be finished."""
    used = {
        (holding.holder.namespace or "", holding.holder.claim)
        for holding in holders.holdings
        if holding.holder.claim is not None
    }
    if kube is None or not holders.known:
        await keeper.reconcile((), used)
        return kube is None
    entries = [entry for entry in keeper.entries.values() if entry.state in _LIVING]
    try:
        gone = await _gone(kube, entries)
    except BackendError as error:
        log.warning("claims not looked up", extra={"error": str(error)})
        return False
    if gone:
        log.info("claims are gone", extra={"claims": sorted(gone)})
    await keeper.reconcile(gone, used)
    return True


async def _gone(kube: KubePort, entries: Iterable[LedgerEntry]) -> frozenset[str]:
    """Uids of those that the server does not have; a name may have another claim by now."""
    gone = set()
    for claim in (entry.claim for entry in entries):
        try:
            found = await kube.get(CLAIMS, claim.name, namespace=claim.namespace)
        except ApiError as error:
            if error.status != NOT_THERE:
                raise
            gone.add(claim.uid)
            continue
        meta = found.get("metadata")
        if isinstance(meta, dict) and meta.get("uid", claim.uid) != claim.uid:
            gone.add(claim.uid)
    return frozenset(gone)
