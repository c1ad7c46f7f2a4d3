"""What is known about Intel GPUs, as data. Not here: what a host shows.

Rows and values marked unverified are in nobody's documents that could be read here.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import attrs

PCI_VENDOR = 0x8086
VGA, DISPLAY = 0x0300, 0x0380
"""PCI Code and ID Assignment Specification 1.11, section 1.4: VGA, and other display controllers;
data center GPUs are the latter."""

I915, XE = "i915", "xe"
DRIVERS = (I915, XE)
"""Linux, drivers/gpu/drm/i915 and drivers/gpu/drm/xe."""
PASSED_ON = frozenset({"vfio-pci", "xe-vfio-pci", "pci-stub"})
"""Whoever binds a GPU to these means to give it to a virtual machine: it is not ours."""

DRM_MAJOR = 226
"""Linux, Documentation/admin-guide/devices.txt."""
MEI_MAJOR = 236
"""Given at run time; any will do for a simulated machine."""

DRI = "/dev/dri"
BY_PATH = f"{DRI}/by-path"
"""Links that udev makes: pci-ADDRESS-card and pci-ADDRESS-render."""

MOST_VFS = 127
"""More than a device can have slots; sysfs-bus-pci, sriov_totalvfs: what a function can have."""

HOT_C = 100
"""From here on Intel's device plugin takes a GPU for sick, unless it is told otherwise (its flags
-temp-limit, -gpu-temp-limit and -memory-temp-limit)."""

GIB = 1 << 30


@attrs.frozen(kw_only=True)
class Model:
    """What a PCI device id stands for."""

    name: str
    family: str
    memory: tuple[int, ...] = ()
    """Bytes of its own memory by the maker's data sheet, ascending where boards differ; empty: not
    known, or it has none."""
    tiles: int = 1
    integrated: bool = False
    """Part of a processor: it has no memory, temperatures or health of its own."""


def _models(
    family: str, *rows: tuple[str, str, str], tiles: int = 1, integrated: bool = False
) -> Iterator[tuple[int, Model]]:
    for ids, name, sizes in rows:
        memory = tuple(int(size) * GIB for size in sizes.split())
        model = Model(name=name, family=family, memory=memory, tiles=tiles, integrated=integrated)
        for number in ids.split():
            yield int(number, 16), model


def _table(*groups: Iterable[tuple[int, Model]]) -> Mapping[int, Model]:
    return MappingProxyType({number: model for group in groups for number, model in group})


MODELS = _table(
    _models(
        "Arc A-Series",
        ("56a0", "Arc A770", "8 16"),
        ("56a1", "Arc A750", "8"),
        ("56a2", "Arc A580", "8"),
        ("56a5", "Arc A380", "6"),
        ("56a6", "Arc A310", "4"),
    ),
    _models(
        "Arc Pro A-Series",
        ("56b0", "Arc Pro A30M", "4"),
        ("56b1", "Arc Pro A40/A50", "6"),
        ("56b2", "Arc Pro A60M", "8"),
        ("56b3", "Arc Pro A60", "12"),
    ),
    _models("Data Center Flex", ("56c0", "Flex 170", "16"), ("56c1", "Flex 140", "6")),
    _models("Data Center Max", ("0bd0 0bd5 0b69", "Max 1550", "128"), tiles=2),
    _models("Data Center Max", ("0bd6", "Max 1450", "128"), tiles=2),
    _models("Data Center Max", ("0bd9 0bda 0bdb", "Max 1100", "48")),
    _models("Arc B-Series", ("e20b", "Arc B580", "12"), ("e20c", "Arc B570", "10")),
    _models(
        "Arc Pro B-Series",
        ("e211", "Arc Pro B60", "24"),
        ("e212", "Arc Pro B50", "16"),
        ("e222", "Arc Pro B65", ""),
        ("e223", "Arc Pro B70", ""),
    ),
    _models(
        "Arc B-Series",
        ("b080 b082 b084 b086", "Arc B390", ""),
        ("b081 b083 b085 b087", "Arc B370", ""),
        integrated=True,
    ),
    _models(
        "Iris Xe and UHD",
        ("4626", "Alder Lake-P", ""),
        ("a7a0", "Raptor Lake-P", ""),
        ("7d67", "Arrow Lake-S", ""),
        integrated=True,
    ),
)
"""By PCI device id.

Source:
    Ids, names and families: the model table of intel-resource-drivers-for-kubernetes. Memory: data
    sheets at ark.intel.com, of boards as Intel sells them; a driver that says how much there is
    wins. Tiles of the Max 1450: unverified.
"""


def model_of(device: int) -> Model:
    """The model with the PCI device id *device*; one that nobody has listed is called by it."""
    return MODELS.get(device) or Model(name=f"GPU {device:04x}", family="unknown")
