"""T: what connects devices and where they hang. Not here: which are chosen by it (T10, T11)."""

import re
from collections.abc import Iterator
from itertools import combinations

from accelkit.conformance.bench import PluginBench, Rig
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.doors import Shuffled
from accelkit.conformance.model import Badge, Check, Feature, Unanswered
from accelkit.core.model import Device, DeviceId, Link
from accelkit.core.partitioning.rules import fixed_cut
from accelkit.core.pci import cpu_nodes, numa_of, pcie_root
from accelkit.core.values import PCIE_KINDS, LinkKind
from accelkit.core.vendor import SupportsGroups, SupportsLinks

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")


def _raw(rig: Rig, devices: tuple[Device, ...]) -> tuple[Link, ...]:
    assert isinstance(rig.vendor, SupportsLinks)
    try:
        return tuple(rig.vendor.links(rig.door, devices))
    except Exception as error:
        raise Unanswered(f"links: {type(error).__name__}: {error}") from error


def _sort(link: Link) -> str:
    return "PCIe" if link.kind in PCIE_KINDS else str(link.kind)


def symmetric(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    seen: dict[tuple[DeviceId, DeviceId, str], Link] = {}
    for link in _raw(rig, rig.devices()):
        key = (link.a, link.b, _sort(link))
        if key in seen:
            counts = f"of {seen[key].count} and {link.count} lanes"
            yield f"{link.a} and {link.b} have two {_sort(link)} links {counts}"
        seen[key] = link


def no_self_links(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    for link in _raw(rig, rig.devices()):
        if link.a.name == link.b.name or link.a == link.b:
            yield f"{link.a} is linked to itself"


def known_ends(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    for asked in (devices, devices[:-1], ()):
        ids = {d.id for d in asked}
        for link in _raw(rig, asked):
            strangers = {link.a, link.b} - ids
            if strangers:
                yield f"{min(strangers)} is linked, and is none of the {len(asked)} asked for"


def numa(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    nodes = cpu_nodes(rig.host)
    for device in rig.raw():
        node = device.locality.numa_node
        if node is not None and node not in nodes:
            yield f"{device.id} is at NUMA node {node}, which has no CPUs here"


def well_formed(bench: PluginBench) -> Iterator[str]:
    for device in bench.rig().raw():
        at = device.locality
        if at.pci_address is not None and not _ADDRESS.fullmatch(at.pci_address):
            yield f"{device.id}: {at.pci_address!r} is not a PCI address like 0000:3b:00.0"
        if at.pcie_root is not None and not _ROOT.fullmatch(at.pcie_root):
            yield f"{device.id}: {at.pcie_root!r} is not a PCIe root like pci0000:3a"


def inherited(bench: PluginBench) -> Iterator[str]:
    devices = bench.rig(cut=True).devices()
    by_id = {d.id: d for d in devices}
    for part in (d for d in devices if d.parent is not None):
        if part.locality != by_id[part.root].locality:
            yield f"{part.id} hangs elsewhere than its parent"


def sane(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    for link in _raw(rig, rig.devices()):
        pair = f"the link of {link.a} and {link.b}"
        kind: object = link.kind
        if not isinstance(kind, LinkKind):
            yield f"{pair} is a {kind!r}, which is no kind of link"
        if link.count < 1:
            yield f"{pair} has {link.count} lanes"
        if link.bandwidth is not None and link.bandwidth < 0:
            yield f"{pair} carries {link.bandwidth} bytes a second"


def stable(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    first = set(_raw(rig, devices))
    other = bench.plugin()
    assert isinstance(other, SupportsLinks)
    other_door = Shuffled(rig.door, bench.rng)
    for again in (_raw(rig, devices), tuple(other.links(other_door, devices[::-1]))):
        for link in sorted(first ^ set(again), key=str)[:3]:
            yield f"the {link.kind} link of {link.a} and {link.b} is not told every time"


def tree(bench: PluginBench) -> Iterator[str]:
    devices = bench.rig(cut=True).devices()
    by_id = {d.id: d for d in devices}
    for part in (d for d in devices if d.parent is not None):
        parent = by_id.get(part.root)
        if parent is None:
            yield f"{part.id} hangs at {part.parent}, which is not there"
        elif parent.parent is not None:
            yield f"{part.id} hangs at {parent.id}, which is a partition itself"
        # Those that come with a mode may be there for good: then counters keep them apart.
        elif parent.usable and not fixed_cut(parent, part.profile or ""):
            yield f"{parent.id} is cut, and may be handed out whole as well"


def connected(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig(count=8)
    devices = rig.devices()
    links = [link for link in _raw(rig, devices) if link.kind not in PCIE_KINDS and link.up]
    linked = {frozenset((link.a, link.b)) for link in links}
    roots = {device.id: device.root for device in devices}
    assert isinstance(rig.vendor, SupportsGroups)
    for group in rig.vendor.groups(devices):
        # Partitions are linked as the devices are that they are cut out of.
        members = tuple(dict.fromkeys(roots.get(member, member) for member in group.members))
        inside = [frozenset(pair) for pair in combinations(members, 2)]
        # Makers without links between devices may have groups all the same.
        if links and len(members) > 1 and not _is_one({*inside} & linked, members):
            yield f"the group {group.name} is not connected by the links of its members"


def _is_one(edges: set[frozenset[DeviceId]], members: tuple[DeviceId, ...]) -> bool:
    reached, before = {members[0]}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {i for edge in edges if edge & reached for i in edge}
    return reached >= set(members)


def as_the_kernel_says(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    for device in rig.raw():
        at = device.locality
        if at.near_nodes and at.near_nodes[0] != at.numa_node:
            yield f"{device.id}: the nearest NUMA nodes do not begin with its own"
        if at.pci_address is None or not rig.host.exists(f"/sys/bus/pci/devices/{at.pci_address}"):
            continue
        node, root = numa_of(rig.host, at.pci_address), pcie_root(rig.host, at.pci_address)
        if at.numa_node not in {None, node}:
            yield f"{device.id} is at NUMA node {at.numa_node}, the kernel says {node}"
        if at.pcie_root not in {None, root}:
            yield f"{device.id} is below {at.pcie_root}, the kernel says {root}"


_BADGE = (Badge.TOPOLOGY,)
CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "T01",
        "Two devices have one link of a sort, whichever is asked.",
        symmetric,
        SupportsLinks,
        badges=_BADGE,
    ),
    in_process(
        "T02", "No device is linked to itself.", no_self_links, SupportsLinks, badges=_BADGE
    ),
    in_process(
        "T03",
        "Links name only devices that were asked for.",
        known_ends,
        SupportsLinks,
        badges=_BADGE,
    ),
    in_process("T04", "NUMA nodes are nodes with CPUs, or unknown.", numa, badges=_BADGE),
    in_process(
        "T05", "PCI addresses and PCIe roots are spelt as sysfs does.", well_formed, badges=_BADGE
    ),
    in_process(
        "T06", "Partitions hang where their parent does.", inherited, Feature.CUT, badges=_BADGE
    ),
    in_process(
        "T07",
        "Links have a known kind, lanes and no negative bandwidth.",
        sane,
        SupportsLinks,
        badges=_BADGE,
    ),
    in_process(
        "T08",
        "Links are the same every time they are asked for.",
        stable,
        SupportsLinks,
        badges=_BADGE,
    ),
    in_process(
        "T09",
        "Partitions hang at whole devices, which are then not handed out whole.",
        tree,
        Feature.CUT,
        badges=_BADGE,
    ),
    in_process(
        "T12",
        "The members of a group are connected.",
        connected,
        SupportsLinks,
        SupportsGroups,
        badges=_BADGE,
        must=False,
    ),
    in_process(
        "T13",
        "NUMA node and PCIe root are what the kernel says, each by itself.",
        as_the_kernel_says,
        badges=_BADGE,
        must=False,
    ),
)
