"""Which device somebody means, and in which order people see them. Not here: what is done then."""

from collections.abc import Iterable
from difflib import get_close_matches

from accelkit.core.errors import ConfigError, UnknownDevice
from accelkit.core.model import Device
from accelkit.core.view import View


def find(view: View, text: str) -> Device:
    """The device with the id, the name, an alias or the PCI address *text*.

    Raises:
        UnknownDevice: There is none.
        ConfigError: Several vendors have one.
    """
    found = [device for device in view.snapshot.devices if text in _names(device)]
    exact = [device for device in found if str(device.id) == text]
    if len(found) == 1 or exact:
        return (exact or found)[0]
    if found:
        several = ", ".join(str(device.id) for device in found)
        raise ConfigError([(text, f"several devices are called so: {several}")])
    known = sorted({name for device in view.snapshot.devices for name in _names(device)})
    close = get_close_matches(text, known, n=1)
    hint = f", did you mean {close[0]}?" if close else ""
    raise UnknownDevice(f"there is no device {text} here{hint}", remedy="see: accelkit devices")


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """What stands between the commas of *texts*, once each."""
    words = (word.strip() for text in texts for word in text.split(","))
    return tuple(dict.fromkeys(filter(None, words)))


def in_order(devices: Iterable[Device]) -> tuple[Device, ...]:
    """*devices* as the maker's tools list them: by PCI address; those without one by id."""
    return tuple(
        sorted(
            devices,
            key=lambda d: (
                d.id.vendor,
                d.locality.pci_address is None,
                d.locality.pci_address or "",
                d.id,
            ),
        )
    )


def _names(device: Device) -> frozenset[str]:
    pci = device.locality.pci_address if device.parent is None else None
    return frozenset({str(device.id), device.id.name, *device.aliases, *((pci,) if pci else ())})
