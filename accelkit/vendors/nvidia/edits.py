"""What containers need: driver files beside the device files. Not here: how they get there.

Works on files only, so that it answers when the driver does not.
"""

from collections.abc import Iterator

import attrs

from accelkit import (
    ContainerEdits,
    Edits,
    Enforcement,
    FrozenMap,
    Grant,
    Granted,
    Hook,
    Host,
    MissingParts,
    Mount,
    NotThere,
)
from accelkit.vendors.nvidia import nodes, sharing
from accelkit.vendors.nvidia.driver import PROGRAM_FOLDERS, below, driver_roots, loaded_version

VISIBLE = "NVIDIA_VISIBLE_DEVICES"

LIBRARY_FOLDERS = (
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/nvidia/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/opt/nvidia/lib64",
    "/usr/local/glibc/usr/lib",
    "/run/opengl-driver/lib",
)
"""Where distributions put the driver's libraries, commonest first."""
LOADER = "/etc/ld.so.conf.d"
"""Files with further folders, one a line (ldconfig(8))."""
PROGRAMS = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
"""Source: NVIDIA driver README, appendix "Installed Components"."""
NEEDED = ("libcuda.so", "libnvidia-ml.so")
INSIDE = ("", "/vdpau", "/gbm")
"""Folders of libraries inside the one that has libcuda."""
OWN_VERSION = ("libnvidia-nvvm70", "libnvidia-egl-gbm", "libnvidia-egl-wayland")
"""Libraries of the driver that do not have its version in their names."""
DATA = (
    "OpenCL/vendors/nvidia.icd",
    "egl/egl_external_platform.d/10_nvidia_wayland.json",
    "egl/egl_external_platform.d/15_nvidia_gbm.json",
    "glvnd/egl_vendor.d/10_nvidia.json",
    "nvidia/nvoptix.bin",
    "vulkan/icd.d/nvidia_icd.json",
    "vulkan/implicit_layer.d/nvidia_layers.json",
)
"""Files that tell OpenCL, EGL, Vulkan and OptiX of the driver, in one of those folders."""
DATA_FOLDERS = ("/etc", "/usr/share")
SOCKETS = ("/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket")
HOOK_PROGRAMS = ("/usr/bin/nvidia-cdi-hook", "/usr/local/nvidia/toolkit/nvidia-cdi-hook")
"""The container toolkit's helper; without it the loader finds only libraries in usual folders."""


@attrs.frozen(kw_only=True)
class DriverFiles:
    """The driver's files on a host, by the same paths that containers get."""

    root: str
    folder: str
    """Of its libraries, inside *root*."""
    version: str
    mounts: tuple[Mount, ...]


def find_driver(host: Host, option: str) -> DriverFiles:
    """The files of the driver that fit the loaded kernel module.

    Raises:
        MissingParts: The module is not loaded, or no root has both libraries of its version.
    """
    version = loaded_version(host)
    if version is None:
        raise MissingParts(
            "the nvidia kernel module is not loaded: /sys/module/nvidia/version is not there",
            remedy="modprobe nvidia",
        )
    roots = driver_roots(option)
    for root in roots:
        for folder in dict.fromkeys((*LIBRARY_FOLDERS, *_loader_folders(host, root))):
            names = host.names(below(root, folder))
            if all(f"{needed}.{version}" in names for needed in NEEDED):
                return _driver_files(host, root, folder, version)
    raise MissingParts(
        f"libcuda.so.{version} and libnvidia-ml.so.{version} are in no library folder of "
        f"{' or '.join(roots)}",
        remedy="install the driver libraries of that version, or set driverRoot",
    )


def _loader_folders(host: Host, root: str) -> Iterator[str]:
    """Folders that somebody has told the loader of."""
    folder = below(root, LOADER)
    for name in host.names(folder):
        for line in host.read(f"{folder}/{name}").splitlines():
            if line.startswith("/"):
                yield line.strip().rstrip("/")


def _driver_files(host: Host, root: str, folder: str, version: str) -> DriverFiles:
    mounts: list[Mount] = []
    for inside in (f"{folder}{name}" for name in INSIDE):
        mounts += _libraries(host, root, inside, version)
    mounts += _programs(host, root)
    data = [f"{above}/{name}" for above in DATA_FOLDERS for name in DATA]
    mounts += [_as_it_is(root, path) for path in data if host.exists(below(root, path))]
    options = ("ro", "nosuid", "nodev", "noexec", "bind")
    mounts += [
        attrs.evolve(_as_it_is(root, path), options=options)
        for path in SOCKETS
        if host.exists(below(root, path))
    ]
    return DriverFiles(
        root=root, folder=folder, version=version, mounts=tuple(dict.fromkeys(mounts))
    )


def _as_it_is(root: str, path: str) -> Mount:
    return Mount(host_path=below(root, path), container_path=path)


def _libraries(host: Host, root: str, folder: str, version: str) -> Iterator[Mount]:
    """Libraries under all names that programs use: links on the host, files in the container."""
    inside = host if root == "/" else host.under(root)
    for name in host.names(below(root, folder)):
        stem, dot, number = name.partition(".so")
        its_own = number == f".{version}"
        if not its_own and not (dot and (not number or number[1:].isdecimal())):
            continue
        try:
            target = inside.resolve(f"{folder}/{name}")
        except NotThere:
            continue
        if its_own or target.endswith(f".so.{version}") or stem in OWN_VERSION:
            yield Mount(host_path=below(root, target), container_path=f"{folder}/{name}")


def _programs(host: Host, root: str) -> list[Mount]:
    found = []
    for program in PROGRAMS:
        for folder in PROGRAM_FOLDERS:
            if host.exists(path := below(root, f"{folder}/{program}")):
                found.append(Mount(host_path=path, container_path=f"/usr/bin/{program}"))
                break
    return found


def _hooks(host: Host, files: DriverFiles) -> tuple[Hook, ...]:
    program = next((path for path in HOOK_PROGRAMS if host.exists(path)), None)
    if program is None:
        return ()
    args = ("nvidia-cdi-hook", "update-ldcache", "--folder", files.folder)
    return (Hook(name="createContainer", path=program, args=args),)


def make_edits(host: Host, grant: Grant, option: str, means: sharing.Means) -> Edits:
    """Device files, driver files and variables of every granted device, and its limits.

    Raises:
        MissingParts: One of the files is not there.
        IllegalSet: Nobody can enforce the shares of this set.
    """
    files = find_driver(host, option)
    hooks = _hooks(host, files)
    each = {g.device.id: _edits_of(host, g, files, hooks) for g in grant.granted}
    if grant.sharing.enforce is Enforcement.MPS:
        for device, client in sharing.mps_edits(host, grant, means).items():
            each[device] = attrs.evolve(
                each[device],
                env=FrozenMap({**each[device].env, **client.env}),
                mounts=(*each[device].mounts, *client.mounts),
            )
    interposed = grant.sharing.enforce is Enforcement.LIBRARY
    whole = sharing.library_edits(host, grant, means) if interposed else ContainerEdits()
    return Edits(each=FrozenMap(each), whole=whole)


def _edits_of(
    host: Host, granted: Granted, files: DriverFiles, hooks: tuple[Hook, ...]
) -> ContainerEdits:
    device = granted.device
    if missing := [node.on_host for node in device.nodes if not host.exists(node.on_host)]:
        rights = [path for path in missing if path.startswith(nodes.RIGHTS)]
        raise MissingParts(
            f"{device.id}: {', '.join(missing)} not there",
            remedy=f"nvidia-modprobe -f FILE makes them, for its files below {nodes.CAPABILITIES}"
            if rights == missing
            else "nvidia-modprobe -u -c 0, or nvidia-smi, makes them",
        )
    return ContainerEdits(
        # The legacy runtime hook injects what this variable lists; what we inject is enough.
        env=FrozenMap({VISIBLE: "void"}),
        joined=FrozenMap({} if device.handle is None else {VISIBLE: device.handle}),
        nodes=device.nodes,
        mounts=files.mounts,
        hooks=hooks,
    )
