"""What connects GPUs: xGMI as KFD tells it, and PCIe switches. Not here: where a GPU hangs."""

from collections.abc import Iterable, Iterator, Mapping

from accelkit import Device, DeviceId, Group, Host, Link, LinkKind, NotThere, switch_links
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.card import nodes_by_address
from accelkit.vendors.amd.kfd import NODES, numbers, read_topology

XGMI = 11
"""Linux, drivers/gpu/drm/amd/amdkfd/kfd_crat.h, CRAT_IOLINK_TYPE_XGMI."""
_MEGA = 1_000_000
_MOST_LINKS = 16


def read_links(host: Host, devices: Iterable[Device]) -> Iterator[Link]:
    """Links between whole GPUs of *devices*; partitions have those of their GPU."""
    wholes = {
        d.locality.pci_address: d.id
        for d in devices
        if d.parent is None and d.locality.pci_address is not None
    }
    yield from _fabric(host, wholes)
    yield from switch_links(host, wholes, maker=facts.PCI_VENDOR)


def hives(devices: Iterable[Device]) -> Iterator[Group]:
    """GPUs that xGMI connects."""
    found: dict[str, list[DeviceId]] = {}
    for device in devices:
        if device.parent is None and (hive := device.attributes.get("hiveId")) is not None:
            found.setdefault(str(hive), []).append(device.id)
    for hive, members in sorted(found.items()):
        if len(members) > 1:
            yield Group(kind="hive", name=hive, members=tuple(sorted(members)))


def _fabric(host: Host, wholes: Mapping[str, DeviceId]) -> Iterator[Link]:
    nodes = nodes_by_address(read_topology(host).nodes, wholes)
    owners = {
        node.number: address
        for address, parts in nodes.items()
        for node in parts.values()
        if address in wholes
    }
    found: dict[tuple[DeviceId, DeviceId], list[tuple[int, int]]] = {}
    for address in sorted(wholes.keys() & nodes.keys()):
        first = next(iter(nodes[address].values()))
        for to, least, most in _xgmi_of(host, first.number):
            if (other := owners.get(to)) is not None and other != address:
                one, two = sorted((wholes[address], wholes[other]))
                found.setdefault((one, two), []).append((_count(least, most), most))
    for (one, two), told in sorted(found.items()):
        bandwidths = [most for _, most in told if most]
        yield Link.between(
            one,
            two,
            LinkKind.DIRECT,
            count=min(count for count, _ in told),
            bandwidth=min(bandwidths) * _MEGA if bandwidths else None,
        )


def _xgmi_of(host: Host, node: int) -> Iterator[tuple[int, int, int]]:
    """Where xGMI links of a KFD node lead, with least and most MB/s."""
    folder = f"{NODES}/{node}/io_links"
    for name in host.names(folder):
        try:
            link = numbers(host.read(f"{folder}/{name}/properties"))
        except NotThere:
            continue
        if link.get("type") == XGMI and "node_to" in link:
            yield link["node_to"], link.get("min_bandwidth", 0), link.get("max_bandwidth", 0)


def _count(least: int, most: int) -> int:
    """How many links: *least* is what one carries, *most* all together.

    Source: Linux, amdgpu_amdkfd.c, amdgpu_amdkfd_get_xgmi_bandwidth_mbytes.
    """
    if not least or most % least or most // least > _MOST_LINKS:
        return 1
    return max(1, most // least)
