"""What the kernel says about PCI functions, NUMA nodes and device majors; and quantities.

Not here: what a vendor makes of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import attrs

from accelkit.core.errors import ModelError, NotThere, SourceError
from accelkit.core.host import Host
from accelkit.core.model import DeviceId, Link, Locality
from accelkit.core.units import parse_quantity
from accelkit.core.values import LinkKind
from accelkit.core.vendor import PciMatch

FUNCTIONS = "/sys/bus/pci/devices"
"""Linux, Documentation/ABI/testing/sysfs-bus-pci."""
NODES = "/sys/devices/system/node"
"""Linux, Documentation/ABI/stable/sysfs-devices-node."""

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def is_pci_address(text: str) -> bool:
    """Whether *text* is dddd:bb:dd.f in lower case; a domain may have more digits than four."""
    return _ADDRESS.fullmatch(text) is not None


# pci_bus_get_domain_nr and the bus number, as drivers/pci/probe.c names host bridges.
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_NODE = re.compile(r"node(\d+)")
_ID = re.compile(r"0x[0-9a-f]{1,6}")
_TOTAL_ERRORS = re.compile(r"^TOTAL_ERR_\w+ ([0-9]{1,20})$", re.ASCII | re.MULTILINE)


@attrs.frozen(kw_only=True)
class PciFunction:
    """One PCI function, and the files that the kernel and its driver show for it."""

    address: str
    """dddd:bb:dd.f in lower case."""
    host: Host = attrs.field(repr=False, eq=False)

    def path(self, name: str) -> str:
        """The host path of its file *name*."""
        return f"{FUNCTIONS}/{self.address}/{name}"

    def has(self, name: str) -> bool:
        """Whether the kernel or the driver shows a file *name* for it."""
        return self.host.exists(self.path(name))

    def read(self, name: str) -> str:
        """The text of its file *name*.

        Raises:
            NotThere: There is no such file.
            SourceError: It cannot be read.
        """
        return self.host.read(self.path(name))

    def id(self, name: str) -> int:
        """The number in its file *name*: vendor, device, subsystem_device, class and the like.

        Raises:
            NotThere: There is no such file.
            SourceError: It cannot be read, or has no such number.
        """
        text = self.read(name)
        found = _id(text)
        if found is None:
            raise SourceError(
                f"{self.path(name)}: {text[:20]!r} is no id",
                remedy="look at the kernel's log; unbind and bind the driver, or reboot",
            )
        return found

    @property
    def driver(self) -> str | None:
        """The kernel driver that it is bound to; None: none."""
        try:
            return self.host.resolve(self.path("driver")).rpartition("/")[2]
        except NotThere:
            return None

    def errors(self) -> Mapping[str, int]:
        """Errors on its PCIe link, by kind: correctable, nonfatal, fatal; only what is told.

        Source:
            Linux, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats.
        """
        found: dict[str, int] = {}
        for kind in ("correctable", "nonfatal", "fatal"):
            try:
                text = self.read(f"aer_dev_{kind}")
            except SourceError:
                continue
            if (total := _TOTAL_ERRORS.search(text)) is not None:
                found[kind] = int(total[1])
        return found

    @property
    def locality(self) -> Locality:
        """Where it hangs, as far as it is told: no device is lost for what is not."""
        node = numa_of(self.host, self.address)
        return Locality(
            pci_address=self.address,
            pcie_root=pcie_root(self.host, self.address),
            numa_node=node,
            near_nodes=() if node is None else near_nodes(self.host, node),
        )


def pci_functions(host: Host, match: Iterable[PciMatch]) -> tuple[PciFunction, ...]:
    """PCI functions that one of *match* describes, by address.

    A function that goes while it is looked at, or that answers nonsense, is left out.
    """
    wanted = tuple(match)
    found = (
        PciFunction(address=address, host=host)
        for address in host.names(FUNCTIONS)
        if _ADDRESS.fullmatch(address)
    )
    return tuple(function for function in found if _matches(function, wanted))


def _id(text: str) -> int | None:
    found = _ID.fullmatch(text.strip())
    return int(found[0], 16) if found else None


def _matches(function: PciFunction, wanted: tuple[PciMatch, ...]) -> bool:
    try:
        vendor = _id(function.read("vendor"))
        # Hosts have hundreds of functions, and nearly all are other vendors'.
        if not (ours := [match for match in wanted if match.vendor == vendor]):
            return False
        device, whole_class = (_id(function.read(name)) for name in ("device", "class"))
    except NotThere:
        return False
    if device is None or whole_class is None:
        return False
    return any(
        (not match.devices or device in match.devices)
        and (not match.classes or whole_class >> 8 in match.classes)
        for match in ours
    )


def pcie_root(host: Host, address: str) -> str | None:
    """The host bridge above a PCI function, as in pci0000:40; None: it does not say.

    Source:
        The path of the function below /sys/devices.
    """
    try:
        parts = host.resolve(f"{FUNCTIONS}/{address}").split("/")
    except SourceError:
        return None
    return next((part for part in parts if _ROOT.fullmatch(part)), None)


def switch_links(host: Host, places: Mapping[str, DeviceId], *, maker: int) -> Iterator[Link]:
    """Links of devices below one PCIe switch or several; host bridges are known without them.

    Args:
        host: The door.
        places: Devices by the PCI address of their function.
        maker: PCI vendor id of the devices: up to two bridges of it right above a device are a
            part of its board, and not of the way to others.
    """
    above = {address: _bridges(host, address, maker) for address in sorted(places)}
    for one, two in combinations(above, 2):
        pairs = zip(above[one], above[two], strict=False)
        shared = 0
        for a, b in pairs:
            if a != b:
                break
            shared += 1
        if shared:
            rest = max(len(above[one]), len(above[two])) - shared
            kind = LinkKind.SWITCH if rest <= 1 else LinkKind.BRIDGE
            yield Link.between(places[one], places[two], kind)


_OWN_BRIDGES = 2


def _bridges(host: Host, address: str, maker: int) -> list[str]:
    """Addresses of the bridges above a function, from the root down, without those of its board."""
    try:
        parts = host.resolve(f"{FUNCTIONS}/{address}").split("/")
    except SourceError:
        return []
    above = [part for part in parts[:-1] if _ADDRESS.fullmatch(part)]
    for _ in range(_OWN_BRIDGES):
        if len(above) > 1 and _made_by(host, above[-1], maker):
            above.pop()
    return above


def _made_by(host: Host, address: str, maker: int) -> bool:
    try:
        return _id(host.read(f"{FUNCTIONS}/{address}/vendor")) == maker
    except SourceError:
        return False


def numa_of(host: Host, address: str) -> int | None:
    """The NUMA node of a PCI function; None: not known, or a node without CPUs.

    Source:
        numa_node in sysfs; -1 means that the firmware did not say.
    """
    try:
        node = int(host.read(f"{FUNCTIONS}/{address}/numa_node"))
    except (SourceError, ValueError):
        return None
    return node if _has_cpus(host, node) else None


def cpu_nodes(host: Host) -> tuple[int, ...]:
    """NUMA nodes that have CPUs, ascending; empty: the kernel knows no nodes, or does not say."""
    return tuple(node for node in _nodes(host) if _has_cpus(host, node))


def near_nodes(host: Host, node: int) -> tuple[int, ...]:
    """*node*, then the nodes with CPUs that are as near to it as it is to itself, ascending.

    Source:
        distance in sysfs: one number for each node, ascending, 10 for itself (ACPI SLIT).
    """
    nodes = _nodes(host)
    far = _text(host, f"node{node}/distance").split()
    if node not in nodes or len(far) != len(nodes):
        return (node,)
    by_node = dict(zip(nodes, far, strict=True))
    as_near = (n for n in nodes if n != node and by_node[n] == by_node[node])
    return (node, *(n for n in as_near if _has_cpus(host, n)))


def _nodes(host: Host) -> list[int]:
    try:
        names = host.names(NODES)
    except SourceError:
        return []
    return sorted(int(m[1]) for name in names if (m := _NODE.fullmatch(name)))


def _has_cpus(host: Host, node: int) -> bool:
    return bool(_text(host, f"node{node}/cpulist"))


def _text(host: Host, name: str) -> str:
    try:
        return host.read(f"{NODES}/{name}").strip()
    except SourceError:
        return ""


def char_major(host: Host, name: str) -> int | None:
    """The number that the kernel gave the character devices called *name*; None: none now.

    Source:
        /proc/devices, up to the line that begins the block devices (proc_devices(5)).
    """
    for line in host.read("/proc/devices").splitlines():
        if line.startswith("Block"):
            break
        number, _, found = line.strip().partition(" ")
        if found == name and number.isdecimal():
            return int(number)
    return None


def quantity(text: str) -> int:
    """A Kubernetes quantity in whole base units: "1Ki" is 1024, "5k" is 5000.

    Raises:
        ModelError: It is not a quantity, not whole, negative, or more than 64 bits hold.
    """
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise ModelError(
            f"{text!r} is not a quantity: {error}", remedy="write a number and a suffix, as 40Gi"
        ) from error


__all__ = [
    "PciFunction",
    "char_major",
    "cpu_nodes",
    "near_nodes",
    "numa_of",
    "pci_functions",
    "pcie_root",
    "quantity",
    "switch_links",
]
