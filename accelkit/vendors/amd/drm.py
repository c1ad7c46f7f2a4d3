"""Which device files belong to which GPU or partition. Not here: who may use them."""

import re
from collections.abc import Mapping

import attrs

from accelkit import DeviceNode, Host, PciFunction
from accelkit.vendors.amd import facts

PLATFORM = "/sys/devices/platform"
# Most drivers write an underscore, some a dot (ROCm/k8s-device-plugin issue 157).
_XCP = re.compile(r"amdgpu_xcp[._](\d{1,6})")
_CARD = re.compile(r"card\d{1,6}")
_RENDER = re.compile(r"renderD(\d{1,6})")


@attrs.frozen(kw_only=True)
class DrmFiles:
    """The device files of one GPU or partition."""

    card: str | None
    render: str
    owner: str
    """A PCI address, or the name of a platform device as in amdgpu_xcp_3."""

    @property
    def own(self) -> tuple[str, ...]:
        """Paths of those that no other has."""
        return tuple(f"/dev/dri/{name}" for name in (self.card, self.render) if name)

    @property
    def nodes(self) -> tuple[DeviceNode, ...]:
        """All that a program needs."""
        return tuple(DeviceNode(path=path) for path in (facts.KFD_NODE, *self.own))


def files_of(function: PciFunction) -> Mapping[int, DrmFiles]:
    """Device files of a PCI function, by the minor of the render node."""
    return _files(function.host, function.address, function.path("drm"))


def files_of_partitions(host: Host) -> Mapping[int, DrmFiles]:
    """The same of all platform devices.

    The kernel keeps more of them than there are partitions: one counts only if KFD names its minor.
    """
    found: dict[int, DrmFiles] = {}
    for name in host.names(PLATFORM):
        if (xcp := _XCP.fullmatch(name)) is not None:
            found |= _files(host, f"amdgpu_xcp_{xcp[1]}", f"{PLATFORM}/{name}/drm")
    return found


def _files(host: Host, owner: str, folder: str) -> dict[int, DrmFiles]:
    names = host.names(folder)
    card = next((name for name in names if _CARD.fullmatch(name)), None)
    return {
        int(render[1]): DrmFiles(card=card, render=name, owner=owner)
        for name in names
        if (render := _RENDER.fullmatch(name)) is not None
    }
