"""Files of Linux that many machines need: PCI functions, NUMA nodes. Not here: a vendor's own."""

from collections.abc import Iterator, Mapping

import attrs

from accelkit.core.errors import PluginContractError
from accelkit.testing.machines import Entry, File, Line, Link, Part

NUMA_NODES = 2
CPUS_PER_NODE = 8
KERNEL = "7.3.0"
"""Release of the simulated kernel: one that has whatever drivers have learnt to show."""
_NODES = "/sys/devices/system/node"


@attrs.frozen(kw_only=True)
class PciPlace:
    """Where a PCI function hangs."""

    address: str
    root: str
    """As in pci0000:40."""
    above: tuple[str, ...]
    """Addresses of the bridges above it, from the root down."""
    numa: int


def pci_place(position: int, index: int, count: int) -> PciPlace:
    """A place that no other *position* of the machine has.

    Two neighbouring positions share a switch and a root; the first half of a part's units hangs
    at NUMA node 0, the other half at node 1.

    Args:
        position: Of the unit in the machine: ``part.first + index``.
        index: Of the unit in its part.
        count: Units of the part.
    """
    domain, pair, side = position // 32, position % 32 // 2, position % 2
    bus = pair * 16
    return PciPlace(
        address=f"{domain:04x}:{bus + 3 + side:02x}:00.0",
        root=f"pci{domain:04x}:{bus:02x}",
        above=(
            f"{domain:04x}:{bus:02x}:01.0",
            f"{domain:04x}:{bus + 1:02x}:00.0",
            f"{domain:04x}:{bus + 2:02x}:{side:02x}.0",
        ),
        numa=index * NUMA_NODES // count,
    )


def part_place(part: Part, index: int) -> PciPlace:
    """The place of the unit at *index* of *part*: what is told of it, else a place of its own.

    Raises:
        PluginContractError: The part has no such unit.
    """
    if not 0 <= index < part.count:
        raise PluginContractError(
            f"a place is asked for unit {index} of {part.count}, counted from 0",
            plugin=part.vendor,
            remedy="take the index of a unit in its part; further functions of it have the same "
            "place with another address: attrs.evolve(place, address=...)",
        )
    place, told = pci_place(part.first + index, index, part.count), part.told.units[index]
    if near := told.address or (told.root or "").removeprefix("pci"):
        # What is not told of it and of what is above it must be of its domain.
        domain = near.partition(":")[0]
        root = f"pci{_moved(place.root.removeprefix('pci'), domain)}"
        above = tuple(_moved(bridge, domain) for bridge in place.above)
        place = PciPlace(
            address=told.address or _moved(place.address, domain),
            root=told.root or root,
            above=() if told.root else above,
            numa=place.numa,
        )
    return place if told.numa is None else attrs.evolve(place, numa=told.numa)


def _moved(address: str, domain: str) -> str:
    return f"{domain}:{address.partition(':')[2]}"


_EXTENDED, _MINORS_OF_UNIT = 192, 256


def extended_minor(part: Part, nth: int) -> int:
    """The minor of the render node at *nth*, from 0, of those that no part before *part* can have.

    However their units are cut. The card has the next one.

    Source:
        Linux, drivers/gpu/drm/drm_drv.c: from 192 on where there are more than 64 of a sort.
    """
    return _EXTENDED + _MINORS_OF_UNIT * part.first + 2 * nth


def pci_function(
    place: PciPlace,
    *,
    vendor: int,
    device: int,
    pci_class: int,
    driver: str | None = None,
    files: Mapping[str, str | bytes] | None = None,
) -> Iterator[Entry]:
    """A PCI function in sysfs, with the link below /sys/bus/pci/devices.

    Args:
        place: Where it hangs.
        vendor: PCI vendor id.
        device: PCI device id.
        pci_class: Three bytes, as in 0x030200.
        driver: Name of the bound driver; None: none.
        files: Further files of the function, by name.

    Source:
        Linux, Documentation/ABI/testing/sysfs-bus-pci.
    """
    folder = "/".join(("/sys/devices", place.root, *place.above, place.address))
    texts: dict[str, str | bytes] = {
        "vendor": f"0x{vendor:04x}\n",
        "device": f"0x{device:04x}\n",
        "class": f"0x{pci_class:06x}\n",
        "numa_node": f"{place.numa}\n",
        **(files or {}),
    }
    yield Link(path=f"/sys/bus/pci/devices/{place.address}", target=folder)
    for name, text in texts.items():
        yield File(path=f"{folder}/{name}", content=text)
    if driver is not None:
        yield File(path=f"/sys/bus/pci/drivers/{driver}/bind", mode=0o200)
        yield Link(path=f"{folder}/driver", target=f"/sys/bus/pci/drivers/{driver}")


def common_tree(nodes: int = NUMA_NODES) -> Iterator[Entry]:
    """What every machine has: NUMA nodes with CPUs, a kernel, and the list of device majors.

    Source:
        Linux, Documentation/ABI/stable/sysfs-devices-node; fs/proc/devices.c;
        Documentation/admin-guide/sysctl/kernel.rst.
    """
    yield File(path="/proc/sys/kernel/osrelease", content=f"{KERNEL}\n", mode=0o444)
    for name in ("online", "possible", "has_cpu", "has_memory"):
        yield File(path=f"{_NODES}/{name}", content=f"0-{nodes - 1}\n")
    for node in range(nodes):
        first = node * CPUS_PER_NODE
        far = ("10" if other == node else "21" for other in range(nodes))
        yield File(
            path=f"{_NODES}/node{node}/cpulist", content=f"{first}-{first + CPUS_PER_NODE - 1}\n"
        )
        yield File(path=f"{_NODES}/node{node}/distance", content=" ".join(far) + "\n")
    yield Line(path="/proc/devices", text="Character devices:")
    yield Line(path="/proc/devices", text="  1 mem")
