"""Edits that were made before anybody asks for them. Not here: who makes them."""

from collections.abc import Iterable, Mapping

import attrs

from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import Device, DeviceId
from accelkit.core.policy import Offer, Sharing
from accelkit.core.values import FrozenMap, Standing

Offered = Mapping[DeviceId, tuple[Device, Offer]]
"""Devices that are offered, with their terms."""
_Key = tuple[DeviceId, str, Sharing]


def bare(device: Device) -> Device:
    """*device* without what the core says of it: that does not change what containers need."""
    return attrs.evolve(device, conditions=(), standing=Standing.PRESENT)


@attrs.frozen
class _Attempt:
    device: Device
    software: FrozenMap[str, str]
    edits: ContainerEdits | None
    """None: they could not be made."""


class MadeEdits:
    """Edits of one vendor's devices, each for the terms that it was made for.

    A device that changes hands may have them for its old and its new terms for a while.
    """

    def __init__(self) -> None:
        self._attempts: dict[_Key, _Attempt] = {}

    def get(self, device: DeviceId, terms: Offer) -> ContainerEdits | None:
        """What a container needs for *device* on *terms*; None: it was not or cannot be made."""
        attempt = self._attempts.get(_key(device, terms))
        return attempt.edits if attempt else None

    def tried(self, device: DeviceId, terms: Offer) -> bool:
        """Whether they were made, or could not be."""
        return _key(device, terms) in self._attempts

    def current(self, device: Device, terms: Offer, software: FrozenMap[str, str]) -> bool:
        """Whether what was made is of the device and the software as they are now."""
        attempt = self._attempts.get(_key(device.id, terms))
        return (
            attempt is not None
            and attempt.edits is not None
            and (attempt.device, attempt.software) == (bare(device), software)
        )

    def keep(
        self,
        device: Device,
        terms: Offer,
        software: FrozenMap[str, str],
        edits: ContainerEdits | None,
    ) -> None:
        """Keep *edits*, or that they could not be made: what was made before may be wrong now."""
        self._attempts[_key(device.id, terms)] = _Attempt(bare(device), software, edits)

    def forget_all_but(self, *offered: Offered) -> Iterable[DeviceId]:
        """Forget what none of *offered* has, and return which devices are in none of them."""
        kept = {_key(i, terms) for several in offered for i, (_, terms) in several.items()}
        gone = {key[0] for key in self._attempts} - {key[0] for key in kept}
        self._attempts = {key: a for key, a in self._attempts.items() if key in kept}
        return gone


def _key(device: DeviceId, terms: Offer) -> _Key:
    # What a vendor is told of an offer; which devices it selects is none of its business.
    return (device, terms.name, terms.sharing)
