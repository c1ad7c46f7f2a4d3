"""GPUs and MIG instances as devices of the model. Not here: how they were read."""

from accelkit import (
    Device,
    DeviceNode,
    Host,
    Locality,
    Mode,
    PciFunction,
    Profile,
    Vendor,
    Version,
    dns_label,
)
from accelkit.vendors.nvidia import mig, nodes
from accelkit.vendors.nvidia.reading import Gpu


def name_of(uuid: str) -> str:
    """A GPU's name: its UUID, which is the same wherever the card is plugged in."""
    return dns_label(uuid)


def uuid_of(name: str) -> str:
    """NVML's spelling of the UUID in a GPU's name."""
    return "GPU-" + name.removeprefix("gpu-")


VOLTA = 7
"""Major compute capability of the first GPUs with time slices that can be set, and with MPS."""


def since_volta(device: Device) -> bool:
    """Whether it is a GPU of Volta or newer."""
    capability = device.attributes.get("cudaComputeCapability")
    return isinstance(capability, Version) and capability.major >= VOLTA


def gpu_device(
    vendor: Vendor, host: Host, gpu: Gpu, cut: mig.Cut, function: PciFunction | None
) -> Device:
    """The whole GPU; not usable as it stands while its MIG mode is set."""
    place = Locality(pci_address=gpu.address) if function is None else function.locality
    return vendor.device(
        name_of(gpu.uuid),
        kind="gpu",
        product=gpu.product,
        usable=not gpu.mig,
        locality=place,
        nodes=[
            DeviceNode(path=nodes.gpu_path(gpu.minor)),
            *nodes.control_nodes(host),
            *nodes.drm_nodes(function),
        ],
        attributes=gpu.facts,
        own={"uuid", "serial"},
        capacity={} if gpu.memory is None else {"memory": gpu.memory},
        slots=cut.slots,
        counters=cut.counters,
        profiles=cut.profiles,
        modes=_modes(gpu),
        mode=None if gpu.mig is None else (mig.MIG if gpu.mig else mig.WHOLE),
        aliases={gpu.uuid, gpu.address},
        handle=gpu.uuid,
    )


def _modes(gpu: Gpu) -> tuple[Mode, ...]:
    if gpu.mig is None:
        return ()
    return (Mode(name=mig.MIG, live=gpu.live), Mode(name=mig.WHOLE, live=gpu.live))


def instance_device(
    vendor: Vendor, host: Host, parent: Device, gpu: Gpu, instance: mig.Instance
) -> Device:
    """A partition of *parent*; without a MIG device that is all of it it is not usable.

    Raises:
        NotThere: The kernel module shows no right to it: it is just being made or unmade.
    """
    uuid = instance.uuid
    # No other partition can draw.
    graphics = [n for n in parent.nodes if n.path.startswith(nodes.GRAPHICS)]
    return vendor.partition(
        parent,
        _profile(parent, instance),
        instance.start,
        usable=uuid is not None,
        nodes=[
            DeviceNode(path=nodes.gpu_path(gpu.minor)),
            *nodes.control_nodes(host),
            *nodes.instance_nodes(host, gpu.minor, instance.gi, instance.ci),
            *(graphics if instance.profile.endswith("+gfx") else ()),
        ],
        aliases=() if uuid is None else (uuid,),
        handle=uuid,
    )


def instance_name(vendor: Vendor, parent: Device, instance: mig.Instance) -> str:
    """What `instance_device` calls it."""
    return vendor.partition(parent, _profile(parent, instance), instance.start).id.name


def _profile(parent: Device, instance: mig.Instance) -> Profile:
    return next(profile for profile in parent.profiles if profile.name == instance.profile)
