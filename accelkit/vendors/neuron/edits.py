"""What containers need: device files, and which cores they may use. Not here: legal sets."""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from accelkit import (
    ConfigRefused,
    ContainerEdits,
    Device,
    DeviceId,
    Edits,
    FrozenMap,
    Grant,
    Host,
    IllegalSet,
    MissingParts,
    Mount,
)
from accelkit.vendors.neuron import chips, facts
from accelkit.vendors.neuron.devices import name_of
from accelkit.vendors.neuron.lnc import VALUES

VISIBLE = "NEURON_RT_VISIBLE_CORES"
"""A core or a range of cores, numbered over the chips that the container has.
Source: Neuron documentation, Neuron Runtime configuration."""


@attrs.frozen(kw_only=True)
class NeuronClaim:
    """The user's block in a claim."""

    logical_neuron_core: int | None = None
    """Physical cores that are one logical core, for whole chips; None: as the host is set."""


def edits_of(host: Host, grant: Grant) -> Edits:
    """Nodes and the size of logical cores for each device; the visible cores for the set.

    Raises:
        MissingParts: A device file is missing, or another chip has it now.
        ConfigRefused: The devices have no logical cores of the size that the claim asks for.
        IllegalSet: The runtime cannot be told of the set.
        SourceError: It cannot be known now which chip has which file.
    """
    devices = tuple({g.device.id: g.device for g in grant.granted}.values())
    if not devices:
        return Edits()
    asked = grant.config.logical_neuron_core if isinstance(grant.config, NeuronClaim) else None
    for root in {device.root: device for device in devices}.values():
        _check_chip(host, root)
    sizes = {device.id: _size(device, asked) for device in devices}
    if len({*sizes.values()}) > 1:
        raise IllegalSet(
            "chips with logical cores of different sizes cannot be told apart in one container",
            remedy="take chips of one sort",
        )
    return Edits(
        each=FrozenMap({d.id: _each(host, d, sizes[d.id], asked) for d in devices}),
        whole=ContainerEdits(env=FrozenMap({VISIBLE: visible_cores(devices, sizes)})),
    )


def _check_chip(host: Host, device: Device) -> None:
    """Check that the file of *device* still is that of its chip."""
    missing = next((n.on_host for n in device.nodes if not host.exists(n.on_host)), None)
    if missing is not None or not device.nodes:
        raise MissingParts(
            f"{device.root}: {missing or 'its device file'} is not there",
            remedy="modprobe neuron; " + facts.KERNEL_LOG,
        )
    index = chips.index_of(device.handle)
    serial = None if index is None else chips.read_serial(host, index)
    if serial is None or name_of(serial) != device.root.name:
        raise MissingParts(
            f"{device.root}: another chip is {device.handle} now",
            remedy="try again: the devices are read anew",
        )


def _size(device: Device, asked: int | None) -> int | None:
    """Physical cores that are a logical core in the container; None: always one."""
    now = device.attributes.get("logicalNeuronCore")
    if asked is None or asked == now:
        return now if isinstance(now, int) else None
    if asked not in VALUES or (now is None and asked != 1):
        raise ConfigRefused(
            f"{device.id} has no logical cores of {asked} physical ones",
            remedy="logicalNeuronCore: 1 or 2, and 2 only on Trainium2 and newer",
        )
    if device.parent is not None and now is not None:
        raise ConfigRefused(
            f"{device.id} is a logical core of {now} physical ones, and cannot be one of {asked}",
            remedy="ask for whole chips, or let the operator set the mode of the node",
        )
    return None if now is None else asked


def _each(host: Host, device: Device, size: int | None, asked: int | None) -> ContainerEdits:
    if size is None:
        return ContainerEdits(nodes=device.nodes)
    mounts: Sequence[Mount] = ()
    if asked is None and host.exists(facts.LNC_FILE):
        # Tools in the container look there.
        mounts = [Mount(host_path=facts.LNC_FILE, container_path=facts.LNC_FILE)]
    return ContainerEdits(
        env=FrozenMap({facts.LNC_VARIABLE: str(size)}), nodes=device.nodes, mounts=tuple(mounts)
    )


def visible_cores(devices: Iterable[Device], sizes: Mapping[DeviceId, int | None]) -> str:
    """The cores of *devices* as the runtime in a container with their chips numbers them.

    Raises:
        IllegalSet: They are not one range.
    """
    wanted: dict[int, set[int]] = {}
    counts: dict[int, int] = {}
    for device in devices:
        index, size = chips.index_of(device.handle) or 0, sizes[device.id] or 1
        cores = device.attributes.get("coreCount")
        counts[index] = (cores if isinstance(cores, int) else 0) // size
        place = device.placement
        own = range(counts[index]) if place is None else [place.start // place.size]
        wanted.setdefault(index, set()).update(own)
    first, numbers = 0, []
    for index in sorted(wanted):
        numbers += [first + core for core in sorted(wanted[index])]
        first += counts[index]
    if not numbers or numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        listed = ",".join(map(str, numbers)) or "none"
        raise IllegalSet(
            f"the runtime takes one range of cores, and these are {listed}",
            remedy="take neighbouring cores of one chip, or all cores of chips",
        )
    last = numbers[-1]
    return str(last) if len(numbers) == 1 else f"{numbers[0]}-{last}"
