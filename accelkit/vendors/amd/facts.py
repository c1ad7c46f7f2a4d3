"""What AMD's hardware and driver are, as tables. Not here: what a host shows of them.

Source of ids and names: the NodeFeatureRule of AMD's GPU Operator. Source of partitions: Linux,
drivers/gpu/drm/amd/amdgpu/aqua_vanjaram.c, which serves gfx942 and gfx950.
"""

from collections.abc import Mapping
from types import MappingProxyType

PCI_VENDOR = 0x1002
CLASSES = (0x0300, 0x0302, 0x0380, 0x1200)
"""Displays, and processing accelerators as newer Instinct are (PCI Code and ID Assignment
Specification 1.11)."""
DRIVER = "amdgpu"
FOREIGN_DRIVERS = frozenset({"vfio-pci", "pci-pf-stub", "pci-stub", "gim", "xen-pciback"})
"""Who has a GPU on purpose that is not for containers: virtual machines, mostly."""

MODULE = "/sys/module/amdgpu"
KFD = "/sys/devices/virtual/kfd/kfd"
"""Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c; /sys/class/kfd/kfd leads there."""
KFD_NODE = "/dev/kfd"
KFD_PROCESSES = f"{KFD}/proc"
"""One folder for each process that uses KFD (since Linux 5.9)."""
CLASS_DRM = "/sys/class/drm"

NAMES: Mapping[int, str] = MappingProxyType(
    {
        0x66A0: "AMD Instinct MI60 / MI50",
        0x66A1: "AMD Instinct MI60 / MI50",
        0x738C: "AMD Instinct MI100",
        0x738E: "AMD Instinct MI100",
        0x7408: "AMD Instinct MI250X",
        0x740C: "AMD Instinct MI250",
        0x740F: "AMD Instinct MI210",
        0x7410: "AMD Instinct MI210 VF",
        0x74A0: "AMD Instinct MI300A",
        0x74A1: "AMD Instinct MI300X",
        0x74A2: "AMD Instinct MI308X",
        0x74A5: "AMD Instinct MI325X",
        0x74A8: "AMD Instinct MI308X HF",
        0x74A9: "AMD Instinct MI300X HF",
        0x74B5: "AMD Instinct MI300X VF",
        0x74B6: "AMD Instinct MI308X VF",
        0x74B9: "AMD Instinct MI325X VF",
        0x74BC: "AMD Instinct MI308X HF VF",
        0x74BD: "AMD Instinct MI300X HF VF",
        0x75A0: "AMD Instinct MI350X",
        0x75A3: "AMD Instinct MI355X",
        0x75B0: "AMD Instinct MI350X VF",
        0x75B3: "AMD Instinct MI355X VF",
        0x73A1: "AMD Radeon Pro V620",
        0x73A2: "AMD Radeon Pro W6900X",
        0x73A3: "AMD Radeon Pro W6800",
        0x73AB: "AMD Radeon Pro W6800X",
        0x73AE: "AMD Radeon Pro V620 VF",
        0x73AF: "AMD Radeon RX 6900 XT",
        0x73BF: "AMD Radeon RX 6800 / 6900",
        0x7448: "AMD Radeon Pro W7900",
        0x7449: "AMD Radeon Pro W7800 48GB",
        0x744A: "AMD Radeon Pro W7900 Dual Slot",
        0x744B: "AMD Radeon Pro W7900D",
        0x744C: "AMD Radeon RX 7900",
        0x745E: "AMD Radeon Pro W7800",
        0x7460: "AMD Radeon Pro V710",
        0x7461: "AMD Radeon Pro V710 VF",
        0x7550: "AMD Radeon RX 9070",
        0x7551: "AMD Radeon AI PRO R9700",
        0x7590: "AMD Radeon RX 9060 XT",
    }
)
"""Products by PCI device id. A virtual function has no name of its own on the host."""
VIRTUAL = frozenset(
    {0x7410, 0x74B5, 0x74B6, 0x74B9, 0x74BC, 0x74BD, 0x75B0, 0x75B3, 0x73AE, 0x7461}
)
"""Ids of virtual functions."""
COMPLEXES: Mapping[int, int] = MappingProxyType(
    {
        **dict.fromkeys((0x74A1, 0x74A5, 0x74A9, 0x74B5, 0x74B9, 0x74BD), 8),
        **dict.fromkeys((0x75A0, 0x75A3, 0x75B0, 0x75B3), 8),
        **dict.fromkeys((0x74A2, 0x74A8, 0x74B6, 0x74BC), 4),
        0x74A0: 6,
    }
)
"""Accelerator complexes (XCC) of a GPU by PCI device id."""

SPX = "SPX"
COMPUTE = ("SPX", "DPX", "TPX", "QPX", "CPX")
MEMORY: Mapping[str, int] = MappingProxyType({f"NPS{n}": n for n in (1, 2, 3, 4, 6, 8)})
"""Memory ranges of a GPU by mode."""
_GFX950 = 90500

_COUNTS = MappingProxyType({"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4})
_RANGES = MappingProxyType(
    {
        "SPX": frozenset({"NPS1"}),
        "DPX": frozenset({"NPS1", "NPS2"}),
        "TPX": frozenset({"NPS1", "NPS4"}),
        "QPX": frozenset({"NPS1", "NPS4"}),
        "CPX": frozenset({"NPS1", "NPS4"}),
    }
)


def count_of(compute: str, complexes: int) -> int:
    """How many partitions a GPU with so many complexes has in a compute mode."""
    return _COUNTS.get(compute, complexes)


def compute_modes(complexes: int) -> tuple[str, ...]:
    """Compute modes of a GPU with so many complexes."""
    able = {
        "SPX": complexes > 1,
        "DPX": complexes % 4 == 0,
        "TPX": complexes % 3 == 0,
        "QPX": complexes % 8 == 0,
        "CPX": complexes > 1,
    }
    return tuple(mode for mode in COMPUTE if able[mode] and complexes > 1)


def go_together(compute: str, memory: str, gfx: int, *, virtual: bool) -> bool:
    """Whether the driver takes a compute mode in a memory mode."""
    if memory == "NPS2" and (
        (compute in {"QPX", "CPX"} and gfx == _GFX950) or (compute == "CPX" and virtual)
    ):
        return True
    return memory in _RANGES.get(compute, frozenset())


def target_of(gfx: int) -> str | None:
    """The name that compilers know: 90402 is gfx942, 90010 is gfx90a.

    Source: libhsakmt, topology.c, gfx_target_version.
    """
    major, minor, step = gfx // 10000, gfx // 100 % 100, gfx % 100
    return f"gfx{major}{minor:x}{step:x}" if 0 < gfx < 1_000_000 else None
