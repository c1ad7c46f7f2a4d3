"""What allocated claims hold. Not here: what is published."""

from collections.abc import Iterable
from fractions import Fraction

from attrs import field, frozen

from accelkit.conformance.sims.api.quantity import amount
from accelkit.conformance.sims.api.values import amounts, parts, text
from accelkit.conformance.sims.scheduler.pools import DeviceId, Json


@frozen
class Held:
    """Devices that are taken, whole and in shares."""

    whole: set[DeviceId] = field(factory=set)
    shared: dict[DeviceId, dict[str, Fraction]] = field(factory=dict)
    """What shares take of each device's capacities; a device with shares is always in here."""

    @classmethod
    def by(cls, claims: Iterable[Json]) -> "Held":
        """What *claims* hold; admin access holds nothing."""
        held = cls()
        for claim in claims:
            for result in parts(claim, "status", "allocation", "devices", "results"):
                if not result.get("adminAccess"):
                    held.add(result)
        return held

    def add(self, result: Json) -> None:
        device = text(result, "driver"), text(result, "pool"), text(result, "device")
        if "shareID" not in result:
            self.whole.add(device)
            return
        used = self.shared.setdefault(device, {})
        for name, value in amounts(result, "consumedCapacity").items():
            used[name] = used.get(name, Fraction(0)) + amount(value)

    def takes_counters(self, device: DeviceId) -> bool:
        """Whether a device's counters are taken; by shares they are taken once."""
        return device in self.whole or device in self.shared
