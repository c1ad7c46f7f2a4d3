"""What AWS publishes of its chips, as tables with their sources. Not here: anything that reads."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

PCI_VENDOR = 0x1D0F
"""PCI vendor id of Amazon. Source: aws-neuron-driver 2.24, neuron_device.h."""
PCI_CLASS = 0x0880
"""System peripheral, other. Source: lspci on inf2 and trn1."""
DRIVER = "neuron-driver"
"""Name of the PCI driver. Source: the same, neuron_pci.c."""
VERSION = "/sys/module/neuron/version"
"""Source: MODULE_VERSION in neuron_module.c."""
CHIPS = "/sys/devices/virtual/neuron_device"
"""A folder for each chip, neuron<N>; it has no parent, so that nothing leads to the PCI function.
Source: ncdev_init_device_node in neuron_cdev.c."""
CLASS = "/sys/class/neuron_device"
"""The same as links, beside what is told of the host as a whole. Source: the same."""
MOST_CHIPS, MOST_CORES = 64, 8
"""Of a host, and of a chip. Source: MAX_NEURON_DEVICE_COUNT and MAX_NC_PER_DEVICE."""
LNC_FILE = "/opt/aws/neuron/logical_nc_config"
LNC_VARIABLE = "NEURON_LOGICAL_NC_CONFIG"
"""How many physical cores are one logical core: 1 or 2, for the file and for processes.
Source: Neuron documentation, logical NeuronCore configuration."""
LNC_DEFAULT = 2
"""Source: the same."""
TOOL = "/opt/aws/neuron/bin/neuron-ls"
"""Of the package aws-neuronx-tools. Source: Neuron documentation, neuron-ls user guide."""
KERNEL_LOG = "look for neuron in the kernel log (dmesg)"
GIB = 1 << 30


@attrs.frozen(kw_only=True)
class Family:
    """One sort of chip."""

    name: str
    """As the driver calls it: arch_device_name_suffix, neuron_dhal_v2.c and neuron_dhal_v3.c."""
    pci: tuple[int, ...]
    """PCI device ids."""
    cores: int
    """Physical ones."""
    memory: int
    """Bytes of a chip."""
    lnc: bool
    """Whether two physical cores can be one logical core."""
    torus: bool
    """Sixteen of them are a torus of four by four; others are a ring."""
    arch: tuple[str, str]
    """Of chip and core, as sysfs writes them: arch_nd_type_suffix and arch_nc_type_suffix."""
    instance: str
    """arch_instance_suffix."""


INFERENTIA2 = Family(
    name="Inferentia2",
    pci=(0x7264,),
    cores=2,
    memory=32 * GIB,
    lnc=False,
    torus=False,
    arch=("NDv3", "NCv2"),
    instance="Inf2",
)
TRAINIUM1 = Family(
    name="Trainium1",
    pci=(0x7164,),
    cores=2,
    memory=32 * GIB,
    lnc=False,
    torus=True,
    arch=("NDv2", "NCv2"),
    instance="Trn1",
)
TRAINIUM2 = Family(
    name="Trainium2",
    pci=(0x7364,),
    cores=8,
    memory=96 * GIB,
    lnc=True,
    torus=True,
    arch=("NDv3", "NCv3"),
    instance="Trn2",
)
TRAINIUM3 = Family(
    name="Trainium3",
    pci=(0x7564, 0x7565),
    cores=8,
    memory=144 * GIB,
    lnc=True,
    torus=True,
    # Not verified: the source of a driver that knows it was not to be had.
    arch=("NDv4", "NCv4"),
    instance="Trn3",
)
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {family.name: family for family in (INFERENTIA2, TRAINIUM1, TRAINIUM2, TRAINIUM3)}
)
"""By name. Source: neuron_device.h; cores and memory from the Amazon EC2 instance tables."""
PCI_DEVICES = tuple(sorted(number for family in FAMILIES.values() for number in family.pci))

SIDE = 4
"""Chips in a row of a torus, and rows. Source: Neuron documentation, Trn1 architecture."""
ROW, TORUS = SIDE, SIDE * SIDE
BLOCKS = (1, ROW, 2 * ROW, TORUS)
"""Sizes of sets of Trainium chips that can run together: aligned blocks. Source: Neuron
documentation, distributed training on Trn1; device groups 1, 4, 8 and 16 of the DRA driver."""
FEW = (1, 2, 4, 8, TORUS)
"""The same on hosts with another number of Trainium chips. Not verified: no document says it."""
LONGEST = 16
"""Chips of the longest run that is listed on a longer ring; no instance has more than 12 on one."""


def neighbours(index: int) -> tuple[int, int, int, int]:
    """Numbers of the chips beside chip *index* of a torus: above, left, below, right.

    Source:
        neuron-ls on trn1.32xlarge, in the Neuron documentation.
    """
    first, place = index - index % TORUS, index % TORUS
    row, column = divmod(place, SIDE)
    return (
        first + (row - 1) % SIDE * SIDE + column,
        first + row * SIDE + (column - 1) % SIDE,
        first + (row + 1) % SIDE * SIDE + column,
        first + row * SIDE + (column + 1) % SIDE,
    )
