"""What containers need: device files of each chip, and for the set what it is. Not here: laws."""

from collections.abc import Callable, Mapping, Sequence

from accelkit import (
    ContainerEdits,
    Device,
    DeviceId,
    Edits,
    FrozenMap,
    Grant,
    Host,
    MissingParts,
    NotThere,
)
from accelkit.vendors.tpu.chips import Unready, nodes_of, shared_nodes
from accelkit.vendors.tpu.discovery import Inventory, chip_of, unready
from accelkit.vendors.tpu.environment import environment
from accelkit.vendors.tpu.facts import BY_NAME
from accelkit.vendors.tpu.slices import Said, Slice, Unknown, read_slice


def make_edits(host: Host, grant: Grant, said: Said, look: Callable[[], Inventory]) -> Edits:
    """Device files of every chip, and the variables that describe the set.

    Args:
        host: The door.
        grant: The set.
        said: What the operator says of the slice.
        look: Looks at all chips of the host, which is seldom needed.

    Raises:
        MissingParts: A device file is not there, or nobody says which slice the host is in.
        IllegalSet: libtpu runs no set of so many chips.
    """
    devices = tuple({granted.device.id: granted.device for granted in grant.granted}.values())
    for device in devices:
        _check_nodes(host, device)
    return Edits(
        each=FrozenMap({d.id: ContainerEdits(nodes=d.nodes) for d in devices}),
        whole=_described(host, devices, said, look) if devices else ContainerEdits(),
    )


def _check_nodes(host: Host, device: Device) -> None:
    """Check that the files are there and still the chip's: groups get numbers of others that went.

    Raises:
        MissingParts: They are not.
    """
    try:
        chip = chip_of(host, device)
        now = {*shared_nodes(chip), *nodes_of(host, chip)}
    except (NotThere, Unready) as error:
        raise MissingParts(str(error), remedy=error.remedy) from error
    known = {node.path for node in device.nodes}
    if missing := sorted(path for path in known if path not in now or not host.exists(path)):
        state = "not there" if missing[0] in now else "not its own any more"
        raise MissingParts(
            f"{device.id}: {', '.join(missing)} is {state}",
            remedy="if it does not come back, make a new virtual machine",
        )


def _described(
    host: Host, devices: Sequence[Device], said: Said, look: Callable[[], Inventory]
) -> ContainerEdits:
    found = _as_discovered(host, devices, said) or _as_it_is(host, devices, look())
    whole, indexes = found
    nodes = {d.locality.numa_node for d in devices if d.locality.numa_node is not None}
    return ContainerEdits(env=FrozenMap(environment(whole, indexes.values(), nodes)))


def _as_discovered(
    host: Host, devices: Sequence[Device], said: Said
) -> tuple[Slice, Mapping[DeviceId, int]] | None:
    """The slice, and each chip's index; None: discovery could not tell them."""
    facts = devices[0].attributes
    kind, chips = BY_NAME.get(str(facts.get("generation"))), facts.get("chipsPerHost")
    indexes = {d.id: i for d in devices if isinstance(i := d.attributes.get("index"), int)}
    if kind is None or not isinstance(chips, int) or len(indexes) != len(devices):
        return None
    try:
        return read_slice(host, kind, chips, said), indexes
    except Unknown as error:
        raise _unknown(devices, str(error)) from error


def _as_it_is(
    host: Host, devices: Sequence[Device], here: Inventory
) -> tuple[Slice, Mapping[DeviceId, int]]:
    if here.slice is None:
        raise _unknown(devices, here.unknown or "it is not there")
    if here.slice.hosts > 1 and not here.complete:
        raise MissingParts(
            f"{len(here.chips)} of {here.slice.chips} chips of this worker are there: "
            "its part of the slice cannot be used",
            remedy="make a new virtual machine",
        )
    if here.slice.hosts > 1 and unready(host, here):
        raise MissingParts(
            "a chip of this worker cannot be used: nor can its part of the slice",
            remedy="see what accelkit doctor says of the chip",
        )
    order = {address: i for i, chip in enumerate(here.chips) for address in chip.addresses}
    indexes = {d.id: order[min(d.aliases)] for d in devices if min(d.aliases, default="") in order}
    if len(indexes) != len(devices):
        raise MissingParts(f"{len(devices) - len(indexes)} of {len(devices)} chips are gone")
    return here.slice, indexes


def _unknown(devices: Sequence[Device], reason: str) -> MissingParts:
    return MissingParts(
        f"{devices[0].id}: {reason}",
        remedy="set topology, and chipsPerHost if need be, in the options of the vendor",
    )
