"""The driver's files of a card."""

from accelkit import Device


def file_of(device: Device, name: str) -> str:
    """The file *name* of the card that *device* is, or is a half of."""
    return f"/sys/bus/pci/devices/{device.locality.pci_address}/{name}"
