"""Products of the simulated machine, as a table. Not here: the vendor, which reads it all.

Sizes that nobody has observed are assumed: see docs/decisions.md.
"""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

MIB = 1 << 20


@attrs.frozen(kw_only=True)
class Product:
    """One product."""

    name: str
    """As its FRU says it; empty: it has none."""
    pci_device: int
    virtual: int | None = None
    """PCI device id of its virtual functions."""
    pci_class: int = 0x120000
    gfx: int
    """As KFD writes it."""
    compute_units: int
    simds: int = 4
    """Of a compute unit."""
    memory: int
    """Bytes."""
    complexes: int = 1
    memory_modes: tuple[str, ...] = ()
    hive: int = 0
    """GPUs that xGMI connects, all to all."""
    link: int = 64000
    """MB/s of one xGMI link."""
    pair: int = 1
    """Links between the two GPUs of a package."""
    ras: bool = True
    """Counts errors of its memory."""


PRODUCTS: Mapping[str, Product] = MappingProxyType(
    {
        "mi300x": Product(
            name="AMD Instinct MI300X OAM",
            pci_device=0x74A1,
            virtual=0x74B5,
            gfx=90402,
            compute_units=304,
            memory=196592 * MIB,
            complexes=8,
            memory_modes=("NPS1", "NPS4"),
            hive=8,
        ),
        "mi325x": Product(
            name="AMD Instinct MI325X OAM",
            pci_device=0x74A5,
            virtual=0x74B9,
            gfx=90402,
            compute_units=304,
            memory=262128 * MIB,
            complexes=8,
            memory_modes=("NPS1", "NPS4"),
            hive=8,
        ),
        "mi355x": Product(
            name="AMD Instinct MI355X OAM",
            pci_device=0x75A3,
            virtual=0x75B3,
            gfx=90500,
            compute_units=256,
            memory=294896 * MIB,
            complexes=8,
            memory_modes=("NPS1", "NPS2"),
            hive=8,
        ),
        "mi300a": Product(
            name="AMD Instinct MI300A",
            pci_device=0x74A0,
            gfx=90402,
            compute_units=228,
            memory=131056 * MIB,
            complexes=6,
            memory_modes=("NPS1",),
            hive=4,
        ),
        "mi250x": Product(
            name="AMD Instinct MI250X (MCM) OAM AC MBA",
            pci_device=0x7408,
            pci_class=0x038000,
            gfx=90010,
            compute_units=110,
            memory=65520 * MIB,
            hive=8,
            link=50000,
            pair=4,
        ),
        "mi210": Product(
            name="AMD Instinct MI210",
            pci_device=0x740F,
            virtual=0x7410,
            pci_class=0x038000,
            gfx=90010,
            compute_units=104,
            memory=65520 * MIB,
            hive=4,
            link=50000,
        ),
        "rx7900": Product(
            name="",
            pci_device=0x744C,
            pci_class=0x030000,
            gfx=110000,
            compute_units=96,
            simds=2,
            memory=24560 * MIB,
            ras=False,
        ),
    }
)
