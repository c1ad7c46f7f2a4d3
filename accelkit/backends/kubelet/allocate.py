"""What a container gets for the ids that the kubelet chose. Not here: the socket, the deadline."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from accelkit.backends.kubelet.document import BACKEND, Entry
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.core.allocation import (
    ContainerEdits,
    Edits,
    Grant,
    Granted,
    Piece,
    equal_share,
    join_edits,
)
from accelkit.core.backend import NodePort
from accelkit.core.cdi import has_part, static_id
from accelkit.core.errors import DeviceUnavailable, MissingParts, UnknownDevice
from accelkit.core.model import Device, DeviceId
from accelkit.core.policy import Inject, Offer
from accelkit.core.view import View

log = logging.getLogger(__name__)

Described = Callable[[DeviceId, ContainerEdits], bool]
"""Whether the container runtime finds a device, with these edits, under its CDI name."""


async def allocate(
    resource: str,
    ids: Iterable[str],
    entries: Mapping[str, Entry],
    node: NodePort,
    described: Described,
) -> dp.ContainerAllocateResponse:
    """Hand out *ids* of *resource* to one container.

    Raises:
        UnknownDevice: An id that is not in the list.
        DeviceUnavailable: One that is listed as unhealthy.
        MissingParts: A name that would mean nothing to the container runtime.
        AccelkitError: Whatever the node says about them.
    """
    chosen = [_available(resource, ident, entries) for ident in sorted(set(ids))]
    terms = next((terms for _, terms in chosen), None)
    if terms is None:
        return dp.ContainerAllocateResponse()
    view = node.view()
    pieces = [_piece(resource, entry, terms, view) for entry, terms in chosen]
    edits = await node.admit(terms.name, pieces)
    order = _in_grant_order({entry.device for entry, _ in chosen}, view)
    if terms.inject is Inject.CDI:
        return _named(edits, order, described)
    return answer(join_edits(edits, order))


def answer(edits: ContainerEdits, cdi_devices: Iterable[str] = ()) -> dp.ContainerAllocateResponse:
    """*edits* as the kubelet takes them; it knows neither hooks nor groups."""
    if edits.hooks or edits.gids:
        log.warning(
            "hooks and groups left out",
            extra={"hooks": [hook.path for hook in edits.hooks], "groups": edits.gids},
        )
    return dp.ContainerAllocateResponse(
        envs=dict(edits.env),
        mounts=[
            dp.Mount(
                container_path=mount.container_path,
                host_path=mount.host_path,
                read_only=mount.read_only,
            )
            for mount in edits.mounts
        ],
        devices=[
            dp.DeviceSpec(
                container_path=node.path, host_path=node.on_host, permissions=node.permissions
            )
            for node in edits.nodes
        ],
        cdi_devices=[dp.CDIDevice(name=name) for name in cdi_devices],
    )


def dropped(view: View) -> Mapping[str, str]:
    """Offers with devices that need more than such an answer can say, with a sentence for each."""
    short: dict[str, list[DeviceId]] = {}
    for device, assignment in sorted(view.assignments.items()):
        terms, edits = assignment.terms, view.edits.get(device)
        if terms is None or terms.through != BACKEND or terms.inject is not Inject.DIRECT:
            continue
        if edits is not None and (edits.hooks or edits.gids):
            short.setdefault(terms.name, []).append(device)
    return {name: _lacks(devices) for name, devices in short.items()}


def _lacks(devices: Sequence[DeviceId]) -> str:
    more = f" and {len(devices) - 1} more" if len(devices) > 1 else ""
    return f"containers get neither hooks nor groups, which {devices[0]}{more} should come with"


def _available(resource: str, ident: str, entries: Mapping[str, Entry]) -> tuple[Entry, Offer]:
    entry = entries.get(ident)
    if entry is None:
        raise UnknownDevice(f"{resource} has no device {ident!r}", remedy="see `accelkit devices`")
    if entry.why or entry.terms is None:
        raise DeviceUnavailable(
            f"{ident} of {resource} is not to be had: {entry.why}", remedy="see `accelkit devices`"
        )
    return entry, entry.terms


def _piece(resource: str, entry: Entry, terms: Offer, view: View) -> Piece:
    device = view.devices.get(entry.device)
    amounts = equal_share({} if device is None else device.capacity, terms.sharing)
    return Piece(device=entry.device, request=resource, share=entry.share, amounts=amounts)


def _in_grant_order(ids: Iterable[DeviceId], view: View) -> tuple[DeviceId, ...]:
    devices: list[Device] = [view.devices[ident] for ident in ids if ident in view.devices]
    grant = Grant(owner="", granted=tuple(Granted(device=device) for device in devices))
    return tuple(one.device.id for one in grant.granted)


def _named(
    edits: Edits, order: Iterable[DeviceId], described: Described
) -> dp.ContainerAllocateResponse:
    """Names for the devices, and directly what concerns the set, which no file describes."""
    names = []
    for device in order:
        needed = edits.each.get(device, ContainerEdits())
        if not has_part(needed):
            continue
        if not described(device, needed):
            raise MissingParts(
                f"{device}: its CDI file does not say what its container needs",
                remedy="see the problem cdi-file",
            )
        names.append(static_id(device.vendor, device.name))
    return answer(edits.whole, names)
