"""What containers need: device files of each chip, and for the set what it is. Not here: laws."""

from collections.abc import Iterable

from accelkit import ContainerEdits, Device, Edits, FrozenMap, Grant, Host, MissingParts
from accelkit.vendors.tpu.discovery import Inventory
from accelkit.vendors.tpu.environment import environment


def make_edits(host: Host, grant: Grant, here: Inventory) -> Edits:
    """Device files of every chip, and the variables that describe the set.

    Raises:
        MissingParts: A device file is not there, or nobody says which slice the host is in.
        IllegalSet: libtpu runs no set of so many chips.
    """
    devices = tuple({granted.device.id: granted.device for granted in grant.granted}.values())
    for device in devices:
        _check_nodes(host, device)
    return Edits(
        each=FrozenMap({d.id: ContainerEdits(nodes=d.nodes) for d in devices}),
        whole=_described(devices, here) if devices else ContainerEdits(),
    )


def _check_nodes(host: Host, device: Device) -> None:
    if missing := [node.path for node in device.nodes if not host.exists(node.path)]:
        raise MissingParts(
            f"{device.id}: {', '.join(missing)} is not there",
            remedy="see `accelkit doctor`; a new virtual machine may help",
        )


def _described(devices: Iterable[Device], here: Inventory) -> ContainerEdits:
    wanted = tuple(devices)
    if here.slice is None:
        raise MissingParts(
            f"{wanted[0].id}: {here.unknown or 'it is not there'}",
            remedy="set topology, and chipsPerHost if need be, in the options of the vendor",
        )
    order = {address: i for i, chip in enumerate(here.chips) for address in chip.addresses}
    indexes = {order[a] for d in wanted for a in d.aliases if a in order}
    if len(indexes) != len(wanted):
        raise MissingParts(f"{len(wanted) - len(indexes)} of {len(wanted)} chips are gone")
    nodes = {d.locality.numa_node for d in wanted if d.locality.numa_node is not None}
    return ContainerEdits(env=FrozenMap(environment(here.slice, indexes, nodes)))
