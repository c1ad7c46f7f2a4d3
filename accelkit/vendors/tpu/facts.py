"""What is known of TPU generations, as tables with their sources. Not here: anything that reads."""

from types import MappingProxyType

import attrs

PCI_VENDOR = 0x1AE0
"""Google. Source: the PCI id repository, https://pci-ids.ucw.cz. Its NVMe (0x001f) and gVNIC
(0x0042) functions have the same vendor and are no TPUs."""
GIB = 1 << 30
VFIO_DRIVER = "vfio-pci"
CONTAINER = "/dev/vfio/vfio"
"""Every user of a VFIO group opens it, too. Source: Linux, Documentation/driver-api/vfio.rst."""
TPU_ENV = "/etc/tpu/tpu-env"
"""What the slice of a host is. Source: kubernetes-sigs/dra-driver-google-tpu, August 2026, which
looks there before it asks the metadata server and the labels of the node."""

SHAPES = MappingProxyType({1: (1, 1, 1), 2: (1, 2, 1), 4: (2, 2, 1), 8: (2, 4, 1)})
"""How many chips a container may have of a host, and which block of the torus they are.

Source: the same driver, chips of a host by dimension; libtpu refuses other counts.
"""


@attrs.frozen(kw_only=True)
class Generation:
    """What all chips of one generation have in common."""

    name: str
    slug: str
    """In TPU_ACCELERATOR_TYPE."""
    device: int
    """PCI device id."""
    subsystem: int | None = None
    """PCI subsystem device id, where generations share a device id."""
    vfio: bool = True
    """Its chips are VFIO groups; else they have a driver of their own that makes /dev/accelN."""
    functions: int = 1
    """PCI functions of a chip: each is a core."""
    cores: int = 1
    """What frameworks count as devices of a chip."""
    counted: int = 1
    """By how much a chip counts in TPU_ACCELERATOR_TYPE."""
    memory: int
    """Bytes of a chip."""
    dimensions: int
    """Of its torus."""
    per_host: tuple[int, ...] = tuple(SHAPES)
    """How many chips hosts are made with, ascending."""
    ring: int | None = None
    """A dimension of so many chips wraps around; None: all do, or none (see *CUBE*)."""
    bandwidth: int | None = None
    """Of one link in each direction, bytes a second; None: not known."""

    @property
    def product(self) -> str:
        return f"TPU{self.name}" if self.name[0].isdecimal() else f"TPU {self.name}"


CUBE = 4
"""Chips that each dimension of a three-dimensional slice must have for any to wrap around, and for
links to be spared. Source: the same driver."""
_GB = 1_000_000_000

GENERATIONS = (
    Generation(
        name="v2", slug="v2", device=0x0027, subsystem=0x004E, vfio=False, cores=2, counted=2,
        memory=16 * GIB, dimensions=2, ring=16,
    ),
    Generation(
        name="v3", slug="v3", device=0x0027, subsystem=0x004F, vfio=False, cores=2, counted=2,
        memory=32 * GIB, dimensions=2,
    ),
    Generation(
        name="v4", slug="v4", device=0x005E, vfio=False, counted=2,
        memory=32 * GIB, dimensions=3, per_host=(4,),
    ),
    Generation(
        name="v5e", slug="v5litepod", device=0x0063,
        memory=16 * GIB, dimensions=2, per_host=(1, 4, 8), ring=16, bandwidth=50 * _GB,
    ),
    Generation(
        name="v5p", slug="v5p", device=0x0062, counted=2,
        memory=95 * GIB, dimensions=3, per_host=(4,), bandwidth=100 * _GB,
    ),
    Generation(
        name="v6e", slug="v6e", device=0x006F,
        memory=32 * GIB, dimensions=2, per_host=(1, 4, 8), ring=16, bandwidth=100 * _GB,
    ),
    Generation(
        name="7x", slug="tpu7x", device=0x0076, functions=2, cores=2, counted=2,
        memory=192 * GIB, dimensions=3, per_host=(4,), bandwidth=100 * _GB,
    ),
)  # fmt: skip
"""Source: tpu-info 0.14 (ids, memory, devices of a chip, functions of a chip); the DRA driver
(slugs, counts, wrapping); Jouppi et al., "TPU v4", 2023 (v2 and v3 are tori of two dimensions);
https://docs.cloud.google.com/tpu/docs, "System architecture" (bandwidth: both directions of a chip,
over four links in a plane and six in a cube); machine types of Google Kubernetes Engine (chips of a
host, from v4 on).

Not verified: wrapping of v2 and 7x; that a chip of 7x counts twice (it does in scripts that people
publish, and by the driver's general rule).
"""


BY_NAME = MappingProxyType({generation.name: generation for generation in GENERATIONS})


STATUS = MappingProxyType(
    {
        "DEAD": "chip-dead",
        "LAMED": "chip-lamed",
        "DRIVER_EXITING": "driver-leaving",
    }
)
"""What the driver of /dev/accelN calls a chip that is not ALIVE, and what it is called here.

Source: Linux 5.10, drivers/staging/gasket/gasket_sysfs.c and gasket_core.h, the framework of that
driver; file status beside the accelN of a function.
"""
