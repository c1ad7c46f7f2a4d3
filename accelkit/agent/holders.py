"""Who holds what, as the kubelet said last. Not here: how it is asked, and what else holds."""

from collections.abc import Awaitable, Callable

from accelkit.agent.problems import AGENT, Problems
from accelkit.core.errors import AccelkitError
from accelkit.core.model import DeviceId, Holding
from accelkit.core.view import View

HoldingsReader = Callable[[View], Awaitable[tuple[Holding, ...]]]
"""Holdings of a view's devices, as the kubelet says; raises TransportError or another
AccelkitError."""


class Holders:
    """Asks, and keeps the last answer while there is none.

    Args:
        reader: None: nobody can be asked, and devices change hands at once.
        problems: Where it is noted that there is no answer.
    """

    def __init__(self, reader: HoldingsReader | None, problems: Problems) -> None:
        self.holdings: tuple[Holding, ...] = ()
        """What was said last, sorted."""
        self.known = reader is None
        """Whether there was an answer the last time."""
        self._reader = reader
        self._problems = problems

    async def ask(self, view: View) -> None:
        """Learn who holds devices of *view*; what was said of others stays."""
        if self._reader is None:
            return
        try:
            holdings = await self._reader(view)
        except AccelkitError as error:
            self.known = False
            remedy = error.remedy or "start the kubelet"
            self._problems.note(AGENT, "holders-unknown", "", str(error), remedy)
            return
        self.known = True
        self._problems.solve(AGENT, "holders-unknown", "")
        others = (h for h in self.holdings if h.device not in view.devices)
        self.holdings = tuple(sorted((*others, *holdings), key=_order))


def _order(holding: Holding) -> tuple[DeviceId, tuple[str, ...]]:
    who = holding.holder
    parts = (holding.share, holding.through, who.namespace, who.pod, who.container, who.claim)
    return holding.device, tuple(part or "" for part in parts)
