"""What a kubelet believes about the health of devices. Not here: who tells it.

Source:
    kubernetes v1.37.2, pkg/kubelet/cm/dra/healthinfo.go; seen on 1.36 and 1.37.
"""

from collections.abc import Callable

from attrs import define, field, frozen

from accelkit.backends.wire.messages import drahealth

EXPIRES_S = 30
"""Where a driver says nothing about it."""
LONGEST = 1024
"""Bytes of a message in a pod's status."""
_CUT = 1021
_WORDS = {drahealth.HEALTHY: "Healthy", drahealth.UNHEALTHY: "Unhealthy"}
UNKNOWN = "Unknown"
Key = tuple[str, str, str]
"""Driver, pool and device."""


@frozen
class Heard:
    """The last word on a device."""

    health: str
    message: bytes
    """As it gets into a pod's status."""
    until: float


@define
class HealthCache:
    """The last word on every device, until it expires.

    Args:
        now: Monotonic seconds.
        scale: Multiplies what drivers say about expiry, as clocks of tests run faster.
    """

    now: Callable[[], float]
    scale: float = 1.0
    _heard: dict[Key, Heard] = field(factory=dict)

    def hear(self, driver: str, message: drahealth.NodeWatchResourcesResponse) -> None:
        """Take a response; devices that are not in it keep their word until that expires."""
        for one in message.devices:
            seconds = one.health_check_timeout_seconds
            lasts = (seconds if seconds > 0 else EXPIRES_S) * self.scale
            key = (driver, one.device.pool_name, one.device.device_name)
            word = _WORDS.get(one.health, UNKNOWN)
            self._heard[key] = Heard(word, cut(one.message), self.now() + lasts)

    def forget(self, driver: str) -> None:
        """A stream of the driver has ended, whichever it was."""
        for key in [key for key in self._heard if key[0] == driver]:
            del self._heard[key]

    def of(self, driver: str, pool: str, device: str) -> tuple[str, bytes]:
        """Health and message now."""
        found = self._heard.get((driver, pool, device))
        if found is None or found.until < self.now():
            return UNKNOWN, b""
        return found.health, found.message


def cut(message: str) -> bytes:
    """A message as a kubelet cuts it: by bytes, wherever that is."""
    raw = message.encode()
    return raw if len(raw) <= LONGEST else raw[:_CUT] + b"..."


def writable(message: bytes) -> bool:
    """Whether the API server takes the message: what is no UTF-8 grows there beyond the limit."""
    return len(message.decode("utf-8", "replace").encode()) <= LONGEST
