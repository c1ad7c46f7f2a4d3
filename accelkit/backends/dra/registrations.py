"""When the kubelet registered each driver. Not here: how drivers make themselves known."""

import attrs


@attrs.define
class Registrations:
    """Told by whoever answers the kubelet, asked by whoever writes slices.

    A kubelet that starts removes all slices of its node some moments after it has registered the
    drivers, so that what is written then is lost.
    """

    _times: dict[str, list[float]] = attrs.Factory(dict)

    def note(self, driver: str, now_s: float) -> None:
        """The kubelet has accepted *driver*, at *now_s* of the node's monotonic clock."""
        self._times[driver] = [*self._times.get(driver, [])[:1], now_s]

    def last(self, driver: str) -> float | None:
        """When it did so last; None: never."""
        times = self._times.get(driver)
        return times[-1] if times else None

    def again(self, driver: str) -> bool:
        """Whether it did so more than once: it was started anew."""
        return len(self._times.get(driver, [])) > 1
