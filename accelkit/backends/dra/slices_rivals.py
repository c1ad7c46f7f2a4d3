"""Who else changes our slices, and when we answer. Not here: the answer."""

from collections.abc import Iterable

import attrs

from accelkit.backends.dra.slices_settings import Patience
from accelkit.backends.dra.stored import Stored


@attrs.define
class Rivals:
    """A kubelet that starts removes all slices of its node; others should change none."""

    patience: Patience
    _left: dict[str, str] | None = None
    """Version of each slice as we found or left it; None: we have not looked yet."""
    _since: float | None = None
    """When we saw that they are not as we left them."""
    _wiped: bool = False
    _times: list[float] = attrs.Factory(list)
    """When others began to change them."""

    def look(self, stored: Iterable[Stored], now_s: float, registered_s: float | None) -> None:
        """See whether slices that should be otherwise are as we left them.

        Args:
            stored: How they are.
            now_s: Monotonic seconds.
            registered_s: When the kubelet registered the driver last; None: never.
        """
        versions = _versions(stored)
        if self._left is None or versions == self._left or self._since is not None:
            return
        recently = registered_s is not None and now_s - registered_s <= self.patience.wiped_for_s
        self._since = now_s
        self._wiped = recently and not self._left.keys() <= versions.keys()
        if not self._wiped:
            self._times.append(now_s)

    def settled(self, stored: Iterable[Stored]) -> None:
        """They are as we want them now."""
        self._left, self._since = _versions(stored), None

    def answer_at(self, registered_s: float | None) -> float:
        """When to put right what others did; zero: they did nothing."""
        if self._since is None:
            return 0.0
        if self._wiped:
            since = self._since + self.patience.settle_s
            return max(since, (registered_s or 0.0) + self.patience.wipe_s)
        return self._since + self.patience.repair_s

    def stopped_until(self, now_s: float) -> float | None:
        """Until when we write nothing, because somebody else does all the time; None: we write."""
        self._times = [t for t in self._times if now_s < t + self.patience.rivals_for_s]
        if len(self._times) < self.patience.rivals:
            return None
        return self._times[-1] + self.patience.rivals_for_s


def _versions(stored: Iterable[Stored]) -> dict[str, str]:
    return {one.name: one.version for one in stored}
