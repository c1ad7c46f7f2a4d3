"""Device files of GPUs and MIG instances. Not here: driver files, and who gets them."""

import contextlib
import re
from collections.abc import Sequence

from accelkit import DeviceNode, Host, PciFunction, SourceError
from accelkit.vendors.nvidia.driver import MODPROBE, run_program

CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""Without these no CUDA program starts."""
OPTIONAL = ("/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""For profilers and for graphics; given where they are."""
GRAPHICS = "/dev/dri/"
"""Folder of the graphics device files."""
CAPABILITIES = "/proc/driver/nvidia/capabilities"
"""Files of the kernel module, one for each right that a process can have."""
RIGHTS = "/dev/nvidia-caps/"
"""Folder of the device files of those rights."""

_MODPROBE_S = 5.0
_MINOR = re.compile(r"^DeviceFileMinor:\s*(\d+)$", re.MULTILINE)


def gpu_path(minor: int) -> str:
    return f"/dev/nvidia{minor}"


def control_nodes(host: Host) -> list[DeviceNode]:
    """What every container with a GPU needs."""
    present = [path for path in OPTIONAL if host.exists(path)]
    return [DeviceNode(path=path) for path in (*CONTROL, *present)]


def drm_nodes(function: PciFunction | None) -> list[DeviceNode]:
    """The graphics device files of a GPU, where the kernel made them."""
    if function is None or not function.has("drm"):
        return []
    names = function.host.names(function.path("drm"))
    paths = [f"{GRAPHICS}{n}" for n in names if n.startswith(("card", "renderD"))]
    return [DeviceNode(path=path) for path in paths if function.host.exists(path)]


def instance_nodes(host: Host, minor: int, gi: int, ci: int | None) -> list[DeviceNode]:
    """The rights to a GPU instance and to its compute instance, as device files.

    Raises:
        SourceError: The kernel module does not say which files these are.

    Source:
        NVIDIA MIG user guide, "Device Nodes": the numbers behind DeviceFileMinor.
    """
    files = _rights(minor, gi, ci)
    return [DeviceNode(path=_node(host, file)) for file in files]


def make_instance_nodes(
    host: Host, roots: Sequence[str], minor: int, gi: int, ci: int | None
) -> None:
    """Make those device files that the driver has not made; its own program knows how.

    Source:
        nvidia-modprobe --help, option -f; NVIDIA MIG user guide, "Device Nodes".
    """
    for file in _rights(minor, gi, ci):
        if not host.exists(_node(host, file)):
            with contextlib.suppress(SourceError):  # whoever needs the file says that it is missing
                run_program(host, roots, [MODPROBE, "-f", file], _MODPROBE_S)


def _rights(minor: int, gi: int, ci: int | None) -> list[str]:
    folder = f"{CAPABILITIES}/gpu{minor}/mig/gi{gi}"
    return [f"{folder}/access"] if ci is None else [f"{folder}/access", f"{folder}/ci{ci}/access"]


def _node(host: Host, right: str) -> str:
    return f"{RIGHTS}nvidia-cap{_minor(host, right)}"


def _minor(host: Host, path: str) -> int:
    found = _MINOR.search(host.read(path))
    if found is None:
        raise SourceError(f"{path}: it has no DeviceFileMinor", vendor="nvidia")
    return int(found[1])
