"""What orchestrators ask for and what containers get. Not here: who decides, and the record."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import attrs

from accelkit.core.model import Device, DeviceId, DeviceNode, sorted_nodes
from accelkit.core.policy import Divide, Sharing, Timeslice
from accelkit.core.values import Enforcement, FrozenMap, Source, freeze

OWN_MOUNT_OPTIONS = ("ro", "nosuid", "nodev", "bind")


@attrs.frozen(kw_only=True, field_transformer=freeze, order=True)
class Mount:
    """A host directory or file in a container."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = OWN_MOUNT_OPTIONS
    kind: str | None = None

    @property
    def read_only(self) -> bool:
        return "ro" in self.options


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Hook:
    """A program that the container runtime calls."""

    name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout_s: int | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class ContainerEdits:
    """What a container needs, as the Container Device Interface knows it."""

    env: FrozenMap[str, str] = FrozenMap()
    nodes: tuple[DeviceNode, ...] = attrs.field(default=(), converter=sorted_nodes)
    mounts: tuple[Mount, ...] = ()
    """In mounting order."""
    hooks: tuple[Hook, ...] = ()
    gids: tuple[int, ...] = ()
    joined: FrozenMap[str, str] = FrozenMap()
    """Variables that list a set: where one answer serves the set, the devices' values are joined
    with commas in grant order, over *env* of the same name; in CDI they are left out."""

    def __bool__(self) -> bool:
        return self != ContainerEdits()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Edits:
    """Edits of a set: for each device, and once for the set."""

    each: FrozenMap[DeviceId, ContainerEdits] = FrozenMap()
    whole: ContainerEdits = ContainerEdits()


@attrs.frozen(kw_only=True, field_transformer=freeze, order=True)
class Piece:
    """One device, or one share of it, in an allocation."""

    device: DeviceId
    request: str = ""
    share: str | None = None
    amounts: FrozenMap[str, int] = attrs.field(default=FrozenMap(), order=False)
    admin: bool = False
    offer: str = ""
    """Under which it was had; filled in when it is prepared."""
    tolerates: tuple[str, ...] = attrs.field(default=(), eq=False, order=False)
    """What may be wrong with the device for whom it is, see `TOLERATES_ALL`; not kept."""


TOLERATES_ALL = "*"
"""In place of codes of conditions: whatever it is."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class PodRef:
    uid: str
    namespace: str
    name: str


@attrs.frozen(kw_only=True, field_transformer=freeze)
class ClaimRef:
    uid: str
    namespace: str
    name: str


CLAIM_CONFIG = "ClaimConfig"
"""Kind of a user's configuration block in a claim."""


class SetOf(StrEnum):
    """What the containers of a claim name: then it is known which devices are one set."""

    REQUEST = "request"
    CLAIM = "claim"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class AskedSharing:
    """What a claim asks of the sharing of its devices; None: as the offer says."""

    timeslice: Timeslice | None = None
    enforce: Enforcement | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class ClaimBody:
    """A user's block, as it stands in the claim."""

    api_version: str
    kind: str
    set: SetOf | None = None
    sharing: AskedSharing = AskedSharing()
    vendor: Mapping[str, object] = attrs.field(factory=dict, hash=False)
    """Read as the vendor's own class later."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class ClaimConfig:
    """A configuration block that reaches a claim."""

    source: Source
    requests: tuple[str, ...] = ()
    """Empty: all of them. ``main`` stands for ``main/sub``, too."""
    body: ClaimBody


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Allocation:
    """What a claim got."""

    claim: ClaimRef
    driver: str
    pieces: tuple[Piece, ...]
    configs: tuple[ClaimConfig, ...] = ()
    """Those of the class before those of the claim; later ones win."""
    pods: tuple[PodRef, ...] = ()
    extended: str | None = None
    """The resource name, for a claim that the scheduler made for an extended resource."""
    drivers: FrozenMap[str, str] = FrozenMap()
    """Names of all drivers from which it has devices, by vendor."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Granted:
    """A piece with its device."""

    device: Device
    request: str = ""
    share: str | None = None
    amounts: FrozenMap[str, int] = FrozenMap()
    admin: bool = False


def _grant_order(granted: Iterable[Granted]) -> tuple[Granted, ...]:
    # Runtimes enumerate devices by PCI address; variables that number devices must agree with them.
    return tuple(
        sorted(
            granted,
            key=lambda g: (
                g.device.locality.pci_address or "~",
                g.device.id,
                g.share or "",
                g.request,
            ),
        )
    )


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Grant:
    """An allocation as a vendor sees it: the set of devices of one consumer.

    *granted* is ordered by PCI address, then id: the one order of a set.
    """

    owner: str
    granted: tuple[Granted, ...] = attrs.field(converter=_grant_order)
    sharing: Sharing = Sharing()
    config: object | None = None
    pods: tuple[PodRef, ...] = ()
    scratch: str | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Setting:
    """Something that must be true of the hardware while a grant lives; can be undone."""

    device: DeviceId | None
    key: str
    value: str


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Answer:
    """One prepared device, as the kubelet is told."""

    device: DeviceId
    requests: tuple[str, ...]
    share: str | None = None
    cdi_ids: tuple[str, ...]


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Prepared:
    claim: ClaimRef
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Sample:
    """One measured value of a standard metric."""

    device: DeviceId | None
    metric: str
    value: float
    labels: FrozenMap[str, str] = FrozenMap()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Finding:
    """What a vendor found wrong with a host."""

    symptom: str
    suspect: str
    proof: str
    remedy: str
    sure: bool = False


def merged(one: ContainerEdits, other: ContainerEdits) -> ContainerEdits:
    """Both edits in one container; of variables with one name the *other*'s."""
    if not one:
        return other
    return ContainerEdits(
        env=FrozenMap({**one.env, **other.env}),
        nodes=(*one.nodes, *other.nodes),
        mounts=(*one.mounts, *other.mounts),
        hooks=(*one.hooks, *other.hooks),
        gids=tuple(sorted({*one.gids, *other.gids})),
        joined=FrozenMap({**one.joined, **other.joined}),
    )


def equal_share(capacity: Mapping[str, int], sharing: Sharing) -> FrozenMap[str, int]:
    """What each of several equal users gets of *capacity*; empty where nothing is divided.

    Memory comes in whole units of *sharing*, or as it is where that is less than one.
    """
    if sharing.divide is not Divide.EQUAL or sharing.shares == 1:
        return FrozenMap()
    parts = {name: total // sharing.shares for name, total in capacity.items()}
    if "memory" in parts:
        parts["memory"] = parts["memory"] // sharing.unit * sharing.unit or parts["memory"]
    return FrozenMap(parts)


def join_edits(edits: Edits, order: Iterable[DeviceId]) -> ContainerEdits:
    """One answer for the whole set, where one answer serves it.

    Args:
        edits: Of the devices of the set, and of the set itself.
        order: The devices in grant order; a device that holds several shares counts once.

    Returns:
        Everything of *each* in that order, then *whole*; repeated parts once; ``joined`` folded
        into ``env``.
    """
    parts = [edits.each[i] for i in dict.fromkeys(order) if i in edits.each]
    joined: dict[str, list[str]] = {}
    for part in parts:
        for name, value in part.joined.items():
            joined.setdefault(name, []).append(value)
    parts.append(edits.whole)
    env: dict[str, str] = {}
    for part in parts:
        env.update(part.env)
    env.update({name: ",".join(values) for name, values in joined.items()})
    return ContainerEdits(
        env=FrozenMap(env),
        nodes=tuple(n for p in parts for n in p.nodes),
        mounts=tuple(dict.fromkeys(m for p in parts for m in p.mounts)),
        hooks=tuple(dict.fromkeys(h for p in parts for h in p.hooks)),
        gids=tuple(sorted({g for p in parts for g in p.gids})),
    )
