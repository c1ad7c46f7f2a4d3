"""One call of a plugin, and what may be believed of its answer.

Not here: deadlines and threads, which are the lane's, and what several vendors say together.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import combinations
from typing import TypeVar

import attrs

from accelkit.core.allocation import ContainerEdits, Edits, Grant, Granted, equal_share
from accelkit.core.answers import (
    check_edits,
    checked,
    checked_conditions,
    checked_devices,
    checked_software,
)
from accelkit.core.damping import NODE_MISSING
from accelkit.core.errors import (
    AllocationError,
    MissingParts,
    PartitionError,
    PluginContractError,
    PluginError,
    SourceError,
)
from accelkit.core.evidence import of_device
from accelkit.core.foreign import code_of, remedy_of, text_of, with_way
from accelkit.core.host import Host
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    DeviceNode,
    Evidence,
    Group,
    Link,
    Problem,
    Unreadable,
    VendorReport,
    contradictions,
)
from accelkit.core.pci import cpu_nodes
from accelkit.core.policy import Offer
from accelkit.core.values import (
    PCIE_KINDS,
    FrozenMap,
    LinkKind,
    Severity,
    Standing,
    freeze,
)
from accelkit.core.vendor import SupportsGroups, SupportsHealth, SupportsLinks, Vendor

MOST_LINKED = 64
"""Up to so many whole devices the core derives links: their number grows with the square."""
LINKS = "links"
"""Subject of the problem that a vendor's links could not be read."""
GROUPS = "groups"
"""The same of its groups."""
SOFTWARE = "software"
"""The same of its software versions."""
UNMONITORED = "unmonitored"
"""INFO condition: the vendor cannot tell how the device is."""

_KIND_WORDS = {"c": "character", "b": "block"}

T = TypeVar("T")


@attrs.frozen(kw_only=True, field_transformer=freeze)
class HealthReading:
    """What one vendor said about the health of its devices."""

    vendor: str
    conditions: FrozenMap[DeviceId, tuple[Condition, ...]] = FrozenMap()
    """Of every device that could be asked."""
    failed: FrozenMap[DeviceId, Problem] = FrozenMap()
    """Devices that could not be asked, and why."""
    problems: tuple[Problem, ...] = ()
    """Of the vendor as a whole."""
    unheard: bool = False
    """Its events cannot be heard, so that what it says of its devices may not be all."""


def read_inventory(vendor: Vendor, host: Host) -> VendorReport:
    """Ask *vendor* what is there, and check that the answer can be true.

    Never raises for a fault of the plugin or the hardware: the report says it instead. How long it
    took is the caller's to add.

    Args:
        vendor: Whom to ask.
        host: The door, which should refuse writing.

    Returns:
        ``answered`` is False where *discover* failed or the answer contradicts itself. Links,
        groups or software that could not be read are a problem of that subject alone. Devices
        carry the condition ``node-missing`` where one of their files is missing.
    """
    found = _ask(vendor, None, lambda: checked_devices(vendor, vendor.discover(host)))
    if isinstance(found, Problem):
        return VendorReport(vendor=vendor.name, answered=False, problems=(found,))
    devices = as_found(host, found[0])
    problems = [_unreadable(vendor.name, u) for u in found[1]]
    links = _facts(problems, _ask(vendor, LINKS, lambda: _links(vendor, host, devices)), ())
    groups = _facts(problems, _ask(vendor, GROUPS, lambda: _groups(vendor, devices)), ())
    software = _facts(
        problems, _ask(vendor, SOFTWARE, lambda: _software(vendor, host)), FrozenMap()
    )
    if wrong := contradictions(devices, links, groups):
        bug = _problem(vendor.name, None, PluginContractError("; ".join(wrong)))
        return VendorReport(vendor=vendor.name, answered=False, problems=(bug,))
    wrong_of = cache(partial(_node_wrong, host))  # many devices share a file
    return VendorReport(
        vendor=vendor.name,
        answered=True,
        devices=tuple(_with_nodes(wrong_of, device, problems) for device in devices),
        links=(*links, *derived_links(devices, links)),
        groups=groups,
        problems=problems,
        software=software,
    )


def as_found(host: Host, devices: Iterable[Device]) -> tuple[Device, ...]:
    """*devices* without what only the core may say, on NUMA nodes that *host* lists."""
    nodes = frozenset(cpu_nodes(host))
    return tuple(_as_found(device, nodes) for device in devices)


def _as_found(device: Device, nodes: frozenset[int]) -> Device:
    # The kubelet turns pods away for good whose device is on a NUMA node that it does not list.
    said = device.locality
    numa = said.numa_node if said.numa_node in nodes else None
    near = tuple(node for node in said.near_nodes if node in nodes)
    if (device.conditions, device.standing) == ((), Standing.PRESENT) and (
        (said.numa_node, said.near_nodes) == (numa, near)
    ):
        return device
    return attrs.evolve(
        device,
        conditions=(),
        standing=Standing.PRESENT,
        locality=attrs.evolve(said, numa_node=numa, near_nodes=near),
    )


def read_conditions(
    vendor: Vendor, host: Host, devices: Iterable[Device], evidence: Iterable[Evidence]
) -> HealthReading:
    """Ask *vendor* how *devices* are; a device that cannot be asked costs only itself.

    Args:
        vendor: Whom to ask; without the health ability each device is ``unmonitored``.
        host: The door, which should refuse writing.
        devices: Of this vendor, parents among them; stale ones, too.
        evidence: Of every vendor.
    """
    by_id = {d.id: d for d in devices}
    if not isinstance(vendor, SupportsHealth):
        alone = Condition(
            code=UNMONITORED,
            severity=Severity.INFO,
            message=f"{vendor.name} cannot tell how its devices are",
        )
        return HealthReading(
            vendor=vendor.name, conditions=FrozenMap(dict.fromkeys(by_id, (alone,)))
        )
    kept = tuple(evidence)
    told: dict[DeviceId, tuple[Condition, ...]] = {}
    failed: dict[DeviceId, Problem] = {}
    for device in by_id.values():
        known = of_device(kept, device, by_id.get(device.parent) if device.parent else None)
        answer = _ask(vendor, device.id.name, partial(_told, vendor, host, device, known))
        if isinstance(answer, Problem):
            failed[device.id] = answer
        else:
            told[device.id] = answer
    return HealthReading(vendor=vendor.name, conditions=FrozenMap(told), failed=FrozenMap(failed))


def device_edits(vendor: Vendor, host: Host, device: Device, terms: Offer) -> ContainerEdits:
    """What a container needs for *device* alone, offered on *terms*.

    Raises:
        MissingParts: A node or file is not there.
        SourceError: Could not be known now.
        PluginError: The vendor answered what it must not.
    """
    amounts = equal_share(device.capacity, terms.sharing)
    grant = Grant(
        owner=terms.name,
        granted=(Granted(device=device, amounts=amounts),),
        sharing=terms.sharing,
    )
    return grant_edits(vendor, host, grant).each[device.id]


def grant_edits(vendor: Vendor, host: Host, grant: Grant) -> Edits:
    """What containers need for the set *grant*, with paths as the container runtime finds them.

    Returns:
        ``each`` names every device of the set and no other.

    Raises:
        AllocationError: The vendor refused the set; MissingParts where a file is missing.
        SourceError: Could not be known now.
        PluginError: The vendor answered what it must not.
    """
    with contract(vendor, "edits"):
        edits = vendor.edits(host, grant)
    check_edits(vendor, grant, edits)
    parts = (*edits.each.values(), edits.whole)
    own = grant.scratch or ""
    missing = [
        path
        for part in parts
        for path in _host_paths(part)
        if not (_is_in(own, path) or host.exists(path))
    ]
    if missing:
        raise MissingParts(
            f"{vendor.name}: {missing[0]} is needed in containers and is not there",
            remedy="check that the driver is installed completely",
        )
    return Edits(
        each=FrozenMap({i: outside(host, e, own) for i, e in edits.each.items()}),
        whole=outside(host, edits.whole, own),
    )


@contextmanager
def contract(vendor: Vendor, call: str) -> Iterator[None]:
    """Let errors through that a plugin may raise; all others are its bug.

    Raises:
        PluginError: *call* raised something else.
    """
    try:
        yield
    except (AllocationError, PartitionError, SourceError, PluginError):
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{call} of {vendor.name}: {with_way(error)}",
            plugin=vendor.name,
            remedy=_bug(vendor.name),
        ) from error


def outside(host: Host, edits: ContainerEdits, own: str = "") -> ContainerEdits:
    """*edits* with every host path as the container runtime finds it.

    The agent's *own* folder is not reached through the host, and has its name for everybody.
    """
    return attrs.evolve(
        edits,
        nodes=tuple(_outside_node(host, node) for node in edits.nodes),
        mounts=tuple(
            mount
            if _is_in(own, mount.host_path)
            else attrs.evolve(mount, host_path=host.outside(mount.host_path))
            for mount in edits.mounts
        ),
        hooks=tuple(attrs.evolve(h, path=host.outside(h.path)) for h in edits.hooks),
    )


def derived_links(devices: Iterable[Device], links: Iterable[Link]) -> tuple[Link, ...]:
    """Links that follow from where whole devices hang, for pairs without a PCIe link in *links*.

    HOST for one PCIe root, else SOCKET for one NUMA node; none if there are more than MOST_LINKED
    devices.
    """
    whole = sorted((d for d in devices if d.parent is None), key=lambda d: d.id)
    if len(whole) > MOST_LINKED:
        return ()
    given = {(link.a, link.b) for link in links if link.kind in PCIE_KINDS}
    pairs = (pair for pair in combinations(whole, 2) if (pair[0].id, pair[1].id) not in given)
    return tuple(
        Link(a=one.id, b=other.id, kind=kind)
        for one, other in pairs
        if (kind := _hanging(one, other)) is not None
    )


def _hanging(one: Device, other: Device) -> LinkKind | None:
    a, b = one.locality, other.locality
    if a.pcie_root is not None and a.pcie_root == b.pcie_root:
        return LinkKind.HOST
    if a.numa_node is not None and a.numa_node == b.numa_node:
        return LinkKind.SOCKET
    return None


def _ask(vendor: Vendor, subject: str | None, call: Callable[[], T]) -> T | Problem:
    """The answer of *call*, or the problem that kept it from coming."""
    try:
        return call()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
        return _problem(vendor.name, subject, error)


def _problem(vendor: str, subject: str | None, error: BaseException) -> Problem:
    if isinstance(error, SourceError):
        return Problem(
            vendor=vendor,
            subject=subject,
            code=code_of(error),
            reason=text_of(error),
            remedy=remedy_of(error),
        )
    return Problem(
        vendor=vendor,
        subject=subject,
        code=PluginError.code,
        reason=with_way(error),
        remedy=_bug(vendor),
    )


def _bug(vendor: str) -> str:
    return f"report it to the author of the plugin for {vendor}"


def _facts(problems: list[Problem], answer: T | Problem, nothing: T) -> T:
    """*answer*, or *nothing* where it is a problem, which is noted."""
    if isinstance(answer, Problem):
        problems.append(answer)
        return nothing
    return answer


def _unreadable(vendor: str, one: Unreadable) -> Problem:
    return Problem(
        vendor=vendor, subject=one.subject, code=one.code, reason=one.reason, remedy=one.remedy
    )


def _links(vendor: Vendor, host: Host, devices: tuple[Device, ...]) -> tuple[Link, ...]:
    if not isinstance(vendor, SupportsLinks):
        return ()
    return checked(vendor, Link, vendor.links(host, devices))


def _groups(vendor: Vendor, devices: tuple[Device, ...]) -> tuple[Group, ...]:
    if not isinstance(vendor, SupportsGroups):
        return ()
    return checked(vendor, Group, vendor.groups(devices))


def _software(vendor: Vendor, host: Host) -> FrozenMap[str, str]:
    return FrozenMap(checked_software(vendor, vendor.software(host)))


def _told(
    vendor: Vendor, host: Host, device: Device, known: tuple[Evidence, ...]
) -> tuple[Condition, ...]:
    assert isinstance(vendor, SupportsHealth)
    return checked_conditions(vendor, device, vendor.conditions(host, device, known))


def _with_nodes(
    wrong_of: Callable[[str, str], str], device: Device, problems: list[Problem]
) -> Device:
    """*device* with a condition for a file that is missing."""
    try:
        wrong = [said for node in device.nodes if (said := wrong_of(node.on_host, node.kind))]
    except SourceError as error:
        problems.append(_problem(device.id.vendor, device.id.name, error))
        return device
    if not wrong:
        return device
    missing = Condition(code=NODE_MISSING, severity=Severity.FATAL, message="; ".join(wrong))
    return attrs.evolve(device, conditions=(missing,))


def _node_wrong(host: Host, path: str, kind: str) -> str:
    found = host.stat(path)
    if found is None:
        return f"{path} is not there"
    return "" if found.kind == kind else f"{path} is not a {_KIND_WORDS[kind]} device"


def _outside_node(host: Host, node: DeviceNode) -> DeviceNode:
    there = host.outside(node.on_host)
    return node if there == node.on_host else attrs.evolve(node, host_path=there)


def _is_in(folder: str, path: str) -> bool:
    """Whether *path* is *folder* or below it; nothing is in a folder without a name."""
    return bool(folder) and f"{path}/".startswith(f"{folder}/")


def _host_paths(edits: ContainerEdits) -> Iterator[str]:
    yield from (node.on_host for node in edits.nodes)
    yield from (mount.host_path for mount in edits.mounts)
    yield from (hook.path for hook in edits.hooks)
