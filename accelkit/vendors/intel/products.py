"""Products of the simulated machine, as data. Not here: what the plugin knows of models."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from accelkit.vendors.intel import facts


@attrs.frozen(kw_only=True)
class Product:
    """One product of the machine."""

    device: int
    """PCI device id."""
    pci_class: int
    driver: str
    """That the kernel binds unless it is told otherwise."""
    memory: int
    """Bytes."""
    tiles: int = 1
    vfs: int = 0
    """Virtual functions that it can have."""
    tells_health: bool = False
    """Whether xe shows gpu_health for it."""


_DATA_CENTER, _GRAPHICS = 0x038000, 0x030000

PRODUCTS: Mapping[str, Product] = MappingProxyType(
    {
        "flex-170": Product(
            device=0x56C0,
            pci_class=_DATA_CENTER,
            driver=facts.I915,
            memory=16 * facts.GIB,
            vfs=31,
        ),
        "max-1550": Product(
            device=0x0BD5,
            pci_class=_DATA_CENTER,
            driver=facts.I915,
            memory=128 * facts.GIB,
            tiles=2,
            vfs=62,
        ),
        "arc-a770": Product(
            device=0x56A0, pci_class=_GRAPHICS, driver=facts.I915, memory=16 * facts.GIB
        ),
        "arc-b580": Product(
            device=0xE20B, pci_class=_GRAPHICS, driver=facts.XE, memory=12 * facts.GIB
        ),
        "arc-pro-b60": Product(
            device=0xE211,
            pci_class=_GRAPHICS,
            driver=facts.XE,
            memory=24 * facts.GIB,
            vfs=24,
            tells_health=True,
        ),
    }
)
"""How many virtual functions there can be is unverified for all of them, as is which of them show
gpu_health."""
