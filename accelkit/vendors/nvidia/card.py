"""A GPU that is about to be cut, asked for what is on it now. Not here: cutting it."""

from collections.abc import Iterator

import attrs

from accelkit import Device, Placement
from accelkit.vendors.nvidia import mig
from accelkit.vendors.nvidia.devices import uuid_of
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml
from accelkit.vendors.nvidia.reading import read_memory

_COMPUTE_PROFILES = 9 + 3  # nvml.h, NVML_COMPUTE_INSTANCE_PROFILE_COUNT, and some for later drivers
_SHARED_ENGINES = 0  # nvml.h, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED


@attrs.frozen(kw_only=True)
class Card:
    """A GPU that can be cut, asked now."""

    nvml: Nvml
    handle: Handle = attrs.field(repr=False)
    cut: mig.Cut
    name: str
    """For people."""

    def at(self, placement: Placement) -> mig.Instance | None:
        """What is exactly there."""
        return next(
            (i for i in self.all() if (i.profile, i.start) == (placement.profile, placement.start)),
            None,
        )

    def overlapping(self, placement: Placement) -> list[mig.Instance]:
        """Whatever has one of the same slots."""
        wanted = set(placement.slots)
        sizes = {p.name: p.size for p in self.cut.profiles}
        return [i for i in self.all() if wanted & set(range(i.start, i.start + sizes[i.profile]))]

    def all(self) -> tuple[mig.Instance, ...]:
        """Every partition, by first slot."""
        return mig.steady(lambda: mig.read_instances(self.nvml, self.handle, self.cut))


def handle_of(nvml: Nvml, device: Device) -> Handle:
    """The GPU that *device* is, or is a part of.

    Raises:
        NvmlError: With NOT_FOUND where there is none, and whatever else can be wrong.
    """
    return nvml.ask("nvmlDeviceGetHandleByUUID", uuid_of(device.root.name))


def card_of(nvml: Nvml, device: Device) -> Card:
    """The same, and how it can be cut."""
    handle = handle_of(nvml, device)
    cut = mig.read_cut(nvml, handle, read_memory(nvml, handle) or 0)
    return Card(nvml=nvml, handle=handle, cut=cut, name=str(device.root))


def words(placement: Placement) -> str:
    """*placement* for people."""
    return f"{placement.profile} at slot {placement.start}"


def compute_profiles(nvml: Nvml, instance: Handle) -> Iterator[Answer]:
    """Sizes of compute instances that a GPU instance can have."""
    for index in range(_COMPUTE_PROFILES):
        info = nvml.maybe(
            "nvmlGpuInstanceGetComputeInstanceProfileInfo",
            instance,
            index,
            _SHARED_ENGINES,
            version=1,
        )
        if info is not None:
            yield info
