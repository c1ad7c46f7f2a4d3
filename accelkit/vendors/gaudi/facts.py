"""What is known of Gaudi accelerators and their driver, as tables with their sources.

Not here: anything that reads a host.
"""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from accelkit import Severity

PCI_VENDOR = 0x1DA3
"""Habana Labs. Source: Linux, drivers/accel/habanalabs/common/habanalabs_drv.c."""
ACCELERATOR = 0x1200
"""Processing accelerators. Source: PCI Code and ID Assignment Specification 1.11, section 1.19."""
DRIVER = "habanalabs"
FOREIGN_DRIVERS = frozenset({"vfio-pci", "pci-stub"})
"""Whoever binds a card to these means to give it to a virtual machine: it is not ours."""

_GIB = 1 << 30
_GBE = 1_000_000_000 // 8
"""Bytes a second of one gigabit Ethernet."""


@attrs.frozen(kw_only=True)
class Generation:
    """What all cards of one generation have in common."""

    name: str
    memory: int
    """Bytes of HBM."""
    ports: int
    """Ethernet ports of one module to each other module of its board."""
    port: int
    """Bytes a second of a port, each direction."""


_GAUDI = Generation(name="Gaudi", memory=32 * _GIB, ports=1, port=100 * _GBE)
_GAUDI2 = Generation(name="Gaudi2", memory=96 * _GIB, ports=3, port=100 * _GBE)
_GAUDI3 = Generation(name="Gaudi3", memory=128 * _GIB, ports=3, port=200 * _GBE)
# Of Gaudi3: Intel Gaudi 3 white paper, "Networking": 24 ports of 200 GbE, 3 to each of 7 peers.
# Of Gaudi2 and Gaudi: their data sheets as commonly quoted, not read again. The memory is what
# hl-smi shows as total; that of the variants B to E is assumed to be the same.

GENERATIONS: Mapping[int, Generation] = MappingProxyType(
    {
        **dict.fromkeys((0x1000, 0x1001, 0x1010, 0x1011), _GAUDI),
        0x1020: _GAUDI2,
        **dict.fromkeys((0x1030, 0x1060, 0x1061, 0x1062, 0x1063), _GAUDI3),
    }
)
"""By PCI device id. Source: Intel resource drivers for Kubernetes 0.11, pkg/gaudi/device."""

PCIE_CARDS = ("HL-288", "HL-338")
"""Boards that are PCIe cards, as ``device_type`` ends with; all others are modules of a baseboard.

Source: driver 1.22, sysfs.c, device_type_show; HL-288 is Gaudi2, HL-338 is Gaudi3.
"""
FULL_NETWORK = frozenset({"GAUDI", "GAUDI SEC", "GAUDI2", "GAUDI2B", "GAUDI2C", "GAUDI3"})
"""Types whose ports are as the table of generations says; others' are not published."""
BOARD, QUAD = 8, 4
"""Modules of a baseboard; PCIe cards that a top board joins.

Source: Intel Gaudi documentation, "Gaudi Architecture" and "PCIe Top Board".
"""
SET_SIZES = (2, 4)
"""Sizes of sets below a whole board that the maker supports: {0,1}, {2,3} ... and {0..3}, {4..7}.

Source: Intel Gaudi documentation, "Multiple Workloads on a Single Docker".
"""
MOST_MODULES = 256
"""Larger module ids are taken as rubbish; boards have 0 to 7."""
STATUS: Mapping[str, tuple[str, Severity] | None] = MappingProxyType(
    {
        "operational": None,
        # After each use of a Gaudi2 or later, for seconds: whoever opens the card is told to wait.
        "in reset after device release": ("released", Severity.INFO),
        "in reset": ("in-reset", Severity.FATAL),
        "needs reset": ("needs-reset", Severity.FATAL),
        "in device creation": ("starting", Severity.FATAL),
        "disabled": ("disabled", Severity.FATAL),
        "malfunction": ("disabled", Severity.FATAL),
    }
)
"""Condition by the word in ``status``, in lower case.

Source: Linux, drivers/accel/habanalabs/common/habanalabs_drv.c, create_hdev;
Documentation/ABI/testing/sysfs-driver-habanalabs for malfunction.
"""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "released": "The card is being reset after its last user, and will be ready in seconds.",
        "in-reset": "The driver is resetting the card.",
        "needs-reset": "The card must be reset before it can be used.",
        "starting": "The driver has not finished starting the card.",
        "disabled": "The driver has given up the card.",
        "status-unknown": "The driver tells a status that is not known here.",
        "was-reset": "The card had hard resets since the driver was loaded.",
        "pcie-narrow": "The PCIe link has fewer lanes than both ends could have.",
        "pcie-slow": "The PCIe link is slower than both ends could be.",
        "port-down": "Some ports to other nodes have no link, while others have.",
    }
)
"""Codes of what is read from files; those of the kernel log are in messages.py."""

GAUDINET = "/etc/habanalabs/gaudinet.json"
"""Addresses of the scale-out ports. Source: Intel network operator, Gaudi scale-out."""
HOOKS = ("/usr/bin/habana-container-hook", "/usr/local/habana/bin/habana-container-hook")
"""Moves network interfaces into containers; the second is where OpenShift has it.

Source: Intel resource drivers for Kubernetes 0.11, pkg/gaudi/device.
"""
