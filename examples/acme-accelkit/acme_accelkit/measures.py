"""What the sensors of a card measure."""

from collections.abc import Iterable, Iterator

from accelkit import Device, FrozenMap, Host, Sample, SourceError, SupportsTelemetry, Vendor
from acme_accelkit.files import file_of


class Measures(Vendor, SupportsTelemetry):
    """Temperature and power of whole cards; a sensor that cannot be read measures nothing."""

    def samples(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Sample]:
        for card in (device for device in devices if device.parent is None):
            yield from _one(host, card, "temp1_input", 1e-3, "hw_temperature_celsius", sensor="gpu")
            yield from _one(host, card, "power1_input", 1e-6, "hw_power_watts")


def _one(
    host: Host, card: Device, file: str, unit: float, metric: str, **labels: str
) -> Iterator[Sample]:
    try:
        value = int(host.read(file_of(card, file))) * unit
    except (SourceError, ValueError):
        return
    if 0 <= value < 10_000:
        yield Sample(device=card.id, metric=metric, value=value, labels=FrozenMap(labels))
