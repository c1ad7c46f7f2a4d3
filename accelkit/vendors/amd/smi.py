"""What AMD's own library adds to a GPU that files do not name. Never whether there is one.

Virtual functions and Radeon have no field-replaceable unit to read: the library may know a name
and a serial number all the same.
"""

from collections.abc import Iterator, Mapping

import attrs

from accelkit import Device, FrozenMap, FunctionTable, Host, LibraryMissing
from accelkit.vendors.amd.card import said

MODULE = "amdsmi"
_FACTS = (("productName", "market_name"), ("serial", "asic_serial"))
"""Attributes, and what the library calls them."""
_UNKNOWN = frozenset({"n/a", "0x0", "0", "none", "unknown"})

Told = Mapping[str, Mapping[str, str]]
"""Attributes by PCI address."""


def read_names(host: Host) -> Told:
    """What the library says of each GPU; empty: there is no library, or it fails.

    Opened and closed at once: whoever keeps it open holds the GPUs.
    """
    try:
        smi = host.module(MODULE)
    except LibraryMissing:
        return {}
    try:
        smi.amdsmi_init()
    except Exception:  # noqa: BLE001 - the binding raises of many kinds, and has none in common
        return {}
    try:
        return dict(_told(smi))
    except Exception:  # noqa: BLE001 - the same
        return {}
    finally:
        _shut_down(smi)


def enriched(device: Device, told: Told) -> Device:
    """*device* with what it does not say itself."""
    names = told.get(device.locality.pci_address or "", {})
    # A partition has what its GPU has, but for what is the GPU's own.
    alike = {key: text for key, text in names.items() if device.parent is None or key != "serial"}
    more = {key: text for key, text in alike.items() if key not in device.attributes}
    if not more:
        return device
    return attrs.evolve(device, attributes=FrozenMap({**device.attributes, **more}))


def _told(smi: FunctionTable) -> Iterator[tuple[str, Mapping[str, str]]]:
    for handle in smi.amdsmi_get_processor_handles():
        address = str(smi.amdsmi_get_gpu_device_bdf(handle)).lower()
        asic = smi.amdsmi_get_gpu_asic_info(handle)
        found = {
            name: text
            for name, key in _FACTS
            if (text := said(str(asic.get(key, "")))) and text.lower() not in _UNKNOWN
        }
        # Of a GPU that is cut, functions stand for partitions: no PCI function has their address.
        yield address, found


def _shut_down(smi: FunctionTable) -> None:
    try:
        smi.amdsmi_shut_down()
    except Exception:  # noqa: BLE001 - the same; and there is nothing more to be done
        return
