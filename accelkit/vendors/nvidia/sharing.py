"""Shares of a GPU and who makes sure of them. Not here: files of the driver, and settings."""

from collections.abc import Iterator, Mapping

import attrs

from accelkit import (
    ContainerEdits,
    Device,
    DeviceId,
    Divide,
    Enforcement,
    FrozenMap,
    Grant,
    Granted,
    Host,
    IllegalSet,
    MissingParts,
    Mount,
    NotThere,
    equal_share,
)
from accelkit.vendors.nvidia.devices import since_volta

LIBRARY_FILE, PRELOAD = "libvgpu.so", "ld.so.preload"
"""Files of HAMi-core. Source: github.com/Project-HAMi/HAMi-core."""
PRELOAD_IN_CONTAINER = "/etc/ld.so.preload"
"""Every program of the container has the library loaded from there (ld.so(8))."""
LOCKS = "/tmp/vgpulock"  # noqa: S108 - where older HAMi-core keeps a lock, in host and container
CACHE = "/run/vgpu"
"""Where containers find the memory that the processes of a share have in common."""
_WRITABLE = ("rw", "nosuid", "nodev", "bind")


@attrs.frozen(kw_only=True)
class Amounts:
    """What the shares of one device in a set are allowed together; None: all of it."""

    memory: int | None
    """Bytes."""
    cores: int | None
    """Percent."""


@attrs.frozen(kw_only=True)
class Means:
    """Where the enforcers are on the host."""

    library: str
    """Folder of HAMi-core."""
    daemons: str
    """Folder of the MPS daemons, with one of their own for each GPU."""


def enforcements(host: Host, means: Means, device: Device) -> frozenset[Enforcement]:
    """What can enforce a share of *device* here."""
    found = {Enforcement.NONE}
    if device.parent is None and device.capacity.get("memory"):
        if has_library(host, means):
            found.add(Enforcement.LIBRARY)
        if since_volta(device):
            found.add(Enforcement.MPS)
    return frozenset(found)


def has_library(host: Host, means: Means) -> bool:
    return all(host.exists(f"{means.library}/{name}") for name in (LIBRARY_FILE, PRELOAD))


def amounts(grant: Grant) -> Mapping[DeviceId, Amounts]:
    """What each device of the set may be used for, in grant order; the order numbers them."""
    shares: dict[DeviceId, list[Granted]] = {}
    for granted in grant.granted:
        shares.setdefault(granted.device.id, []).append(granted)
    return {
        device: Amounts(
            memory=_together(_memory(grant, one) for one in pieces),
            cores=_together(_cores(grant, one) for one in pieces),
        )
        for device, pieces in shares.items()
    }


def _together(parts: Iterator[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _memory(grant: Grant, granted: Granted) -> int | None:
    sharing, asked = grant.sharing, granted.amounts.get("memory")
    if granted.admin or sharing.divide is Divide.NONE:
        return None
    if asked is None:
        return equal_share(granted.device.capacity, sharing).get("memory")
    return asked


def _cores(grant: Grant, granted: Granted) -> int | None:
    sharing, asked = grant.sharing, granted.amounts.get("cores")
    if granted.admin or sharing.divide is Divide.NONE:
        return None
    if asked is None and sharing.divide is Divide.EQUAL:
        return max(1, 100 // sharing.shares)  # 0 is no limit
    return asked


def library_edits(host: Host, grant: Grant, means: Means) -> ContainerEdits:
    """What interposes HAMi-core in the containers of a set, with its variables.

    Raises:
        MissingParts: The library is not there.
    """
    limits = amounts(grant)
    env: dict[str, str] = {}
    for position, limit in enumerate(limits.values()):
        if limit.memory is not None:
            env[f"CUDA_DEVICE_MEMORY_LIMIT_{position}"] = f"{_megabytes(limit.memory)}m"
        if limit.cores is not None and limit.cores < 100:
            env[f"CUDA_DEVICE_SM_LIMIT_{position}"] = str(limit.cores)
    if not env:
        return ContainerEdits()
    # So that the library's numbers are those of CUDA, too, whatever GPUs are in the set.
    env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    mounts = list(_library_mounts(host, means))
    if grant.scratch is not None:
        env["CUDA_DEVICE_MEMORY_SHARED_CACHE"] = f"{CACHE}/cudevshr.cache"
        mounts.append(_writable(grant.scratch, CACHE))
    # Older versions wait for their lock for ever where its folder is missing.
    if (locks := LOCKS if host.exists(LOCKS) else grant.scratch) is not None:
        mounts.append(_writable(locks, LOCKS))
    return ContainerEdits(env=FrozenMap(env), mounts=tuple(mounts))


def _library_mounts(host: Host, means: Means) -> Iterator[Mount]:
    library, preload = f"{means.library}/{LIBRARY_FILE}", f"{means.library}/{PRELOAD}"
    try:
        named = host.read(preload).split()
    except NotThere:
        named = []
    inside = next((path for path in named if path.endswith(f"/{LIBRARY_FILE}")), None)
    if inside is None or not host.exists(library):
        raise MissingParts(
            f"{library}, and {preload} that names it, are not both there",
            remedy="install HAMi-core on the node, or set hamiCore to the folder that has it",
        )
    yield Mount(host_path=library, container_path=inside)
    yield Mount(host_path=preload, container_path=PRELOAD_IN_CONTAINER)


def mps_edits(host: Host, grant: Grant, means: Means) -> Mapping[DeviceId, ContainerEdits]:
    """What makes programs clients of the daemon of their GPU, with their limits.

    Raises:
        IllegalSet: The set has several GPUs; a program has one daemon only.
        MissingParts: The daemon is not there.
    """
    shared = [g.device for g in grant.granted if g.device.parent is None and not g.admin]
    devices = {device.id: device for device in shared}
    if len(devices) > 1:
        raise IllegalSet(
            f"{' and '.join(map(str, devices))} have an MPS daemon each, and a program can be the "
            "client of one only",
            remedy="ask for one GPU, or for shares that something else enforces",
        )
    limits = amounts(grant)
    return {device: _client(host, device, limits[device], means) for device in devices}


def _client(host: Host, device: DeviceId, limit: Amounts, means: Means) -> ContainerEdits:
    folder = f"{means.daemons}/{device.name}"
    pipe, memory = f"{folder}/pipe", f"{folder}/shm"
    if not host.exists(pipe):
        raise MissingParts(
            f"{device}: its MPS daemon is not there, {pipe} is missing",
            remedy="run the daemon on the node, or set mpsDirectory to where it is",
        )
    env = {"CUDA_MPS_PIPE_DIRECTORY": pipe}
    if limit.memory is not None:
        # The numbers of this variable are those of the client, which has one GPU.
        env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={_megabytes(limit.memory)}M"
    if limit.cores is not None and limit.cores < 100:
        env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(limit.cores)
    mounts = [_writable(pipe, pipe)]
    if host.exists(memory):
        mounts.append(_writable(memory, "/dev/shm"))  # noqa: S108 - what clients and daemon have in common
    return ContainerEdits(env=FrozenMap(env), mounts=tuple(mounts))


def _megabytes(memory: int) -> int:
    return max(1, memory >> 20)  # 0 is no limit


def _writable(host_path: str, container_path: str) -> Mount:
    return Mount(host_path=host_path, container_path=container_path, options=_WRITABLE)
