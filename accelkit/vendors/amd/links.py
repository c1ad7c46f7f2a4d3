"""What connects GPUs: xGMI as KFD tells it, and PCIe switches. Not here: where a GPU hangs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from accelkit import Device, DeviceId, Group, Host, Link, LinkKind, NotThere
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.card import nodes_by_address
from accelkit.vendors.amd.kfd import NODES, numbers, read_topology

XGMI = 11
"""Linux, drivers/gpu/drm/amd/amdkfd/kfd_crat.h, CRAT_IOLINK_TYPE_XGMI."""
_MEGA = 1_000_000
_MOST_LINKS = 16
_FUNCTIONS = "/sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def read_links(host: Host, devices: Iterable[Device]) -> Iterator[Link]:
    """Links between whole GPUs of *devices*; partitions have those of their GPU."""
    wholes = {
        d.locality.pci_address: d.id
        for d in devices
        if d.parent is None and d.locality.pci_address is not None
    }
    yield from _fabric(host, wholes)
    yield from _switches(host, wholes)


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


def _switches(host: Host, wholes: Mapping[str, DeviceId]) -> Iterator[Link]:
    """PCIe switches that two GPUs share; the core knows host bridges and NUMA nodes itself."""
    bridges = {address: _bridges(host, address) for address in sorted(wholes)}
    for one, two in combinations(bridges, 2):
        shared = _shared(bridges[one], bridges[two])
        if shared:
            rest = max(len(bridges[one]), len(bridges[two])) - shared
            kind = LinkKind.SWITCH if rest <= 1 else LinkKind.BRIDGE
            yield Link.between(wholes[one], wholes[two], kind)


def _shared(one: tuple[str, ...], two: tuple[str, ...]) -> int:
    pairs = zip(one, two, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))


def _bridges(host: Host, address: str) -> tuple[str, ...]:
    """PCIe bridges above a GPU, from the root down, without the two that are a part of it."""
    try:
        parts = host.resolve(f"{_FUNCTIONS}/{address}").split("/")
    except NotThere:
        return ()
    above = [part for part in parts[:-1] if _ADDRESS.fullmatch(part)]
    while above and _is_amd(host, above[-1]):
        above.pop()
    return tuple(above)


def _is_amd(host: Host, address: str) -> bool:
    try:
        return int(host.read(f"{_FUNCTIONS}/{address}/vendor"), 16) == facts.PCI_VENDOR
    except (NotThere, ValueError):
        return False
