"""MIG: the profiles of a GPU and the instances on it. Not here: making and unmaking them."""

import ctypes
import re
from collections.abc import Callable, Iterator
from math import ceil
from typing import TypeVar

import attrs

from accelkit import FrozenMap, NotThere, Profile
from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml, NvmlError, Rubbish
from accelkit.vendors.nvidia.reading import number, text

MIG, WHOLE = "mig", "whole"
"""The modes of a GPU that can be cut."""

_INDEXES = 0x12 + 4  # nvml.h, NVML_GPU_INSTANCE_PROFILE_COUNT, and some for later drivers
_EXTRA = {7: "+me", 8: "+me", 0xA: "+gfx", 0xB: "+gfx", 0xC: "+gfx", 0xD: "-me", 0xE: "-me"} | {
    0xF: "+me.all",
    0x10: "+me.all",
    0x11: "+gfx",
}  # nvml.h, NVML_GPU_INSTANCE_PROFILE_*
_NAME = re.compile(r"(?:MIG )?(\d+g\.\d+gb(?:[+-][a-z.]+)?)")
MOST_SLOTS = 64
_LOOKS = 3

T = TypeVar("T")
_ENGINES = {
    "multiprocessors": ("sm", "multiprocessorCount"),
    "copyEngines": ("ce", "copyEngineCount"),
    "decoders": ("dec", "decoderCount"),
    "encoders": ("enc", "encoderCount"),
    "jpegEngines": ("jpeg", "jpegCount"),
    "ofaEngines": ("ofa", "ofaCount"),
}
"""Capacity: its counter, its field in nvml.h, nvmlGpuInstanceProfileInfo_t."""


@attrs.frozen(kw_only=True)
class Cut:
    """How a GPU can be cut."""

    profiles: tuple[Profile, ...] = ()
    ids: dict[int, str] = attrs.field(factory=dict)
    """Profile names by the ids that instances carry."""
    slots: int = 0
    counters: dict[str, int] = attrs.field(factory=dict)

    def named(self, profile: str) -> Profile:
        return next(p for p in self.profiles if p.name == profile)

    def number(self, profile: str) -> int | None:
        """The driver's id of a profile; None: this GPU has none of that name."""
        return next((number for number, name in self.ids.items() if name == profile), None)


@attrs.frozen(kw_only=True)
class Instance:
    """One GPU instance."""

    gi: int
    ci: int | None
    """Of the one compute instance; None: there is none, or several."""
    profile: str
    start: int
    uuid: str | None
    """Of the MIG device that is the whole instance; None: nothing can run on all of it."""
    parts: int
    """Compute instances."""


def read_cut(nvml: Nvml, handle: Handle, memory: int) -> Cut:
    """The profiles of a GPU and where they can be; in ascending order of the maker's index.

    One that makes no sense is left out: the GPU can still be had whole.
    """
    profiles: list[Profile] = []
    ids: dict[int, str] = {}
    for index in range(_INDEXES):
        try:
            found = _read_profile(nvml, handle, index, memory)
        except Rubbish:
            continue  # of a later driver, perhaps; instances of it are noticed where they are read
        if found is not None and found[1].slug not in {p.slug for p in profiles}:
            ids[found[0]] = found[1].name
            profiles.append(found[1])
    return Cut(
        profiles=tuple(profiles),
        ids=ids,
        slots=max((p.starts[-1] + p.size for p in profiles), default=0),
        counters={
            key: max(p.counters.get(key, 0) for p in profiles)
            for key in {key for p in profiles for key in p.counters}
        },
    )


def _read_profile(
    nvml: Nvml, handle: Handle, index: int, memory: int
) -> tuple[int, Profile] | None:
    """The driver's id of a profile, and what it is; None: this GPU has none of that index."""
    info = nvml.maybe("nvmlDeviceGetGpuInstanceProfileInfo", handle, index)
    plain = info is None
    if plain:
        info = nvml.maybe("nvmlDeviceGetGpuInstanceProfileInfo", handle, index, version=1)
    if info is None:
        return None
    starts, size = _placements(nvml, handle, info.id)
    if not starts:
        return None
    name = _computed(index, info, memory) if plain else _spelt(info.name)
    return info.id, _profile(name, info, starts, size)


def _spelt(name: object) -> str:
    found = _NAME.fullmatch(text(name, "the profile name"))
    if found is None or len(slug(found[1])) > 14:
        raise Rubbish(f"a profile is named {name!r}")
    return found[1]


def _computed(index: int, info: Answer, memory: int) -> str:
    """The name where the driver gives none: eighths of the memory, in whole gigabytes."""
    if not memory:
        raise Rubbish("neither a name of its profiles nor its memory is told")
    share = (number(info.memorySizeMB, "a profile's memory", 1 << 30) << 20) / memory
    gigabytes = round(ceil(share * 8) / 8 * ceil(memory / (1 << 30)))
    return f"{number(info.sliceCount, 'slices', MOST_SLOTS)}g.{gigabytes}gb{_EXTRA.get(index, '')}"


def slug(name: str) -> str:
    """*name* as a part of a device name."""
    return name.replace(".", "").replace("-", "-no").replace("+", "-")


def _profile(name: str, info: Answer, starts: tuple[int, ...], size: int) -> Profile:
    engines = {
        capacity: (counter, number(getattr(info, field), field, 1 << 16))
        for capacity, (counter, field) in _ENGINES.items()
    }
    megabytes = number(info.memorySizeMB, "a profile's memory", facts.MOST_MEMORY >> 20)
    return Profile(
        name=name,
        slug=slug(name),
        size=size,
        starts=starts,
        limit=number(info.instanceCount, "a profile's limit", MOST_SLOTS),
        mode=MIG,
        kind="mig",
        capacity=FrozenMap(
            {
                **({"memory": megabytes << 20} if megabytes else {}),  # else it is the host's
                **{capacity: count for capacity, (_, count) in engines.items()},
            }
        ),
        counters=FrozenMap({counter: count for counter, count in engines.values() if count}),
    )


def _placements(nvml: Nvml, handle: Handle, profile: int) -> tuple[tuple[int, ...], int]:
    """Legal first slots and the size of a profile; none where the driver knows none."""
    function, count = "nvmlDeviceGetGpuInstancePossiblePlacements", ctypes.c_uint(0)
    if nvml.maybe(function, handle, profile, None, ctypes.byref(count)) is None:
        return (), 0
    most = number(count.value, "the number of placements", MOST_SLOTS)
    places = nvml.array("c_nvmlGpuInstancePlacement_t", most)
    nvml.ask(function, handle, profile, places, ctypes.byref(count))
    sizes = {place.size for place in places[: min(most, count.value)]}
    starts = {place.start for place in places[: min(most, count.value)]}
    if not starts:
        return (), 0
    if len(sizes) != 1 or max(starts) + max(sizes) > MOST_SLOTS or min(sizes) < 1:
        raise Rubbish(f"profile {profile} has sizes {sizes} at {starts}")
    return tuple(sorted(starts)), sizes.pop()


def steady(read: Callable[[], T]) -> T:
    """What *read* answers, asked again where its answers do not fit together.

    A GPU may be cut by somebody else, or by another thread, between any two calls.
    """
    for _ in range(_LOOKS - 1):
        try:
            return read()
        except (Rubbish, NotThere):
            continue
        except NvmlError as error:
            if error.value not in facts.ABSENT:
                raise
    return read()


def read_instances(nvml: Nvml, handle: Handle, cut: Cut) -> tuple[Instance, ...]:
    """What is on a GPU whose MIG mode is set, by first slot.

    Raises:
        Rubbish: Instances overlap, are where their profile cannot be, or have none.
    """
    computing = list(_mig_devices(nvml, handle))
    found = [
        _instance(info, cut, [d for d in computing if d[0] == info.id])
        for profile in cut.ids
        for info in gpu_instances(nvml, handle, profile, cut)
    ]
    if nameless := {gi for gi, *_ in computing} - {instance.gi for instance in found}:
        raise Rubbish(f"instances {sorted(nameless)} have no known profile")
    taken: set[int] = set()
    for instance in found:
        slots = set(range(instance.start, instance.start + cut.named(instance.profile).size))
        if taken & slots:
            raise Rubbish(f"instances overlap in slots {sorted(taken & slots)}")
        taken |= slots
    return tuple(sorted(found, key=lambda i: i.start))


def gpu_instances(nvml: Nvml, handle: Handle, profile: int, cut: Cut) -> Iterator[Answer]:
    """Infos of the instances that have the profile with the driver's id *profile*."""
    most = cut.named(cut.ids[profile]).limit or MOST_SLOTS
    handles, count = nvml.array("c_nvmlGpuInstance_t", most), ctypes.c_uint(most)
    nvml.ask("nvmlDeviceGetGpuInstances", handle, profile, handles, ctypes.byref(count))
    for instance in handles[: number(count.value, "the number of instances", most)]:
        yield nvml.ask("nvmlGpuInstanceGetInfo", instance)


def mig_handles(nvml: Nvml, handle: Handle) -> Iterator[tuple[int, Handle]]:
    """The MIG devices of a GPU, each with the GPU instance that it is a part of."""
    most = nvml.maybe("nvmlDeviceGetMaxMigDeviceCount", handle) or 0
    for index in range(number(most, "the number of MIG devices", MOST_SLOTS)):
        device = nvml.maybe("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        if device is not None:  # there are holes
            yield nvml.ask("nvmlDeviceGetGpuInstanceId", device), device


def _mig_devices(nvml: Nvml, handle: Handle) -> Iterator[tuple[int, int, str, bool]]:
    """GPU instance, compute instance, UUID, and whether it is all of the GPU instance."""
    for gi, device in mig_handles(nvml, handle):
        sizes = nvml.maybe("nvmlDeviceGetAttributes", device)
        yield (
            gi,
            nvml.ask("nvmlDeviceGetComputeInstanceId", device),
            text(nvml.ask("nvmlDeviceGetUUID", device), "the UUID of a MIG device"),
            sizes is None or sizes.computeInstanceSliceCount == sizes.gpuInstanceSliceCount,
        )


def _instance(info: Answer, cut: Cut, computing: list[tuple[int, int, str, bool]]) -> Instance:
    profile = cut.ids.get(info.profileId)
    start = info.placement.start
    if profile is None or start not in cut.named(profile).starts:
        raise Rubbish(f"instance {info.id} has profile {info.profileId} at slot {start}")
    whole = computing[0] if len(computing) == 1 and computing[0][3] else None
    return Instance(
        gi=info.id,
        ci=whole[1] if whole else None,
        profile=profile,
        start=start,
        uuid=whole[2] if whole else None,
        parts=len(computing),
    )


def mig_device_of(nvml: Nvml, handle: Handle, gi: int, ci: int) -> str | None:
    """The UUID of the MIG device with these instance ids."""
    return next((uuid for g, c, uuid, _ in _mig_devices(nvml, handle) if g == gi and c == ci), None)
