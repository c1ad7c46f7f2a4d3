"""What connects GPUs: NVLink, its switches, PCIe. Not here: how links are weighed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import attrs

from accelkit import Device, DeviceId, Link, LinkKind, SourceError
from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.fabric import Fabric, read_fabric
from accelkit.vendors.nvidia.nvml import Handle, Nvml
from accelkit.vendors.nvidia.reading import address_of


@attrs.frozen(kw_only=True)
class Ports:
    """The NVLinks of one GPU, as it sees them."""

    peers: Mapping[str, int]
    """Working links by the PCI address of the GPU at the other end."""
    dead: Mapping[str, int]
    """Links that do not work, the same way."""
    switched: int
    """Working links to switches."""
    dark: int
    """Links that do not work, wherever they lead."""
    bandwidth: int | None
    """Bytes a second of one link, each direction."""
    fabric: Fabric | None


def read_links(nvml: Nvml, devices: Iterable[Device]) -> Iterator[Link]:
    """Links between whole *devices*; one that cannot be asked has none.

    Where two GPUs count differently, the lower count is believed.
    """
    whole = [d for d in devices if d.parent is None and d.handle and d.locality.pci_address]
    handles: dict[DeviceId, Handle] = {}
    ports: dict[DeviceId, Ports] = {}
    for device in whole:
        try:
            handles[device.id] = nvml.ask("nvmlDeviceGetHandleByUUID", device.handle)
            ports[device.id] = read_ports(nvml, handles[device.id])
        except SourceError:
            continue  # its health says what is wrong with it
    for one, other in combinations([d for d in whole if d.id in ports], 2):
        yield from _nvlinks(one, ports[one.id], other, ports[other.id])
        yield from _bus(nvml, one.id, handles[one.id], other.id, handles[other.id])


def read_ports(nvml: Nvml, handle: Handle) -> Ports:
    """All NVLinks of one GPU."""
    peers: Counter[str] = Counter()
    dead: Counter[str] = Counter()
    switched = dark = 0
    version: int | None = None
    for port in range(facts.MOST_NVLINKS):
        active = nvml.maybe("nvmlDeviceGetNvLinkState", handle, port)
        if active is None:
            break
        dark += not active
        remote = nvml.maybe("nvmlDeviceGetNvLinkRemoteDeviceType", handle, port)
        if remote == facts.REMOTE_SWITCH:
            switched += bool(active)
        elif remote in {None, facts.REMOTE_GPU}:
            pci = nvml.maybe("nvmlDeviceGetNvLinkRemotePciInfo", handle, port)
            if pci is not None:
                (peers if active else dead)[address_of(pci)] += 1
        if active:
            version = nvml.maybe("nvmlDeviceGetNvLinkVersion", handle, port)
    return Ports(
        peers=peers,
        dead=dead,
        switched=switched,
        dark=dark,
        bandwidth=None if version is None else facts.NVLINK_BANDWIDTH.get(version),
        fabric=read_fabric(nvml, handle) if switched else None,
    )


def _nvlinks(one: Device, mine: Ports, other: Device, theirs: Ports) -> Iterator[Link]:
    if count := min(_seen(mine.peers, other), _seen(theirs.peers, one)):
        yield _link(one, other, LinkKind.DIRECT, count, mine.bandwidth)
    elif count := min(
        _seen(mine.peers, other) + _seen(mine.dead, other),
        _seen(theirs.peers, one) + _seen(theirs.dead, one),
    ):
        yield _link(one, other, LinkKind.DIRECT, count, mine.bandwidth, up=False)
    count = min(mine.switched, theirs.switched)
    if count and _one_fabric(mine.fabric, theirs.fabric):
        ready = all(f is None or f.ready for f in (mine.fabric, theirs.fabric))
        yield _link(one, other, LinkKind.FABRIC, count, mine.bandwidth, up=ready)


def _one_fabric(mine: Fabric | None, theirs: Fabric | None) -> bool:
    """Whether two GPUs are in the same partition of the switches, as far as they say."""
    if mine is None or theirs is None or not (mine.ready and theirs.ready):
        return True
    return mine.clique == theirs.clique


def _seen(ends: Mapping[str, int], device: Device) -> int:
    return ends.get(device.locality.pci_address or "", 0)


def _link(
    one: Device,
    other: Device,
    kind: LinkKind,
    count: int,
    bandwidth: int | None,
    *,
    up: bool = True,
) -> Link:
    total = None if bandwidth is None else bandwidth * count
    return Link.between(one.id, other.id, kind, count=count, bandwidth=total, up=up)


def _bus(
    nvml: Nvml,
    one: DeviceId,
    handle: Handle,
    other: DeviceId,
    other_handle: Handle,
) -> Iterator[Link]:
    try:
        level = nvml.maybe("nvmlDeviceGetTopologyCommonAncestor", handle, other_handle)
    except SourceError:
        return
    kind = facts.ANCESTORS.get(level)
    if kind is not None:
        yield Link.between(one, other, kind)
