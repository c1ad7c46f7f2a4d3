"""The NVLink fabric of a GPU: whether it has joined, and how well. Not here: single links."""

import ctypes
from uuid import UUID

import attrs

from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml, NvmlError

# nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*: groups of two bits, 1 is true, 2 is false.
_DEGRADED_BANDWIDTH, _ROUTE_RECOVERY, _ROUTE_UNHEALTHY, _INCORRECT = 0, 2, 4, 8
_SLOW = (_DEGRADED_BANDWIDTH, _ROUTE_RECOVERY, _ROUTE_UNHEALTHY)
_TRUE, _CONFIGURATION_FINE = 1, 1


_ASKED = (
    ("c_nvmlGpuFabricInfo_v3_t", "nvmlDeviceGetGpuFabricInfoV"),
    ("c_nvmlGpuFabricInfo_v2_t", "nvmlDeviceGetGpuFabricInfoV"),
    ("c_nvmlGpuFabricInfo_t", "nvmlDeviceGetGpuFabricInfo"),
)
"""Newest first: what drivers before 545 have tells no health, and is deprecated since CUDA 13."""


@attrs.frozen(kw_only=True)
class Fabric:
    """What a GPU says about its fabric."""

    state: int
    failed: bool
    """It has tried to join and could not."""
    clique: str | None
    """Cluster UUID and clique: GPUs of one reach each other. None: not known."""
    slow: bool
    """Some bandwidth or routes are missing, for good or until they are recovered."""
    misconfigured: int
    """Why it does not fit into the fabric; 0: it does, or nobody says."""

    @property
    def ready(self) -> bool:
        return self.state == facts.FABRIC_READY and not self.failed


def read_fabric(nvml: Nvml, handle: Handle) -> Fabric | None:
    """The fabric of a GPU; None: it has none, or the driver does not say."""
    for structure, function in _ASKED:
        try:
            info = nvml.new(structure)
            nvml.ask(function, handle, ctypes.byref(info))
        except NvmlError as error:
            if error.value in facts.ABSENT:
                continue
            raise
        return _fabric(info)
    return None


def _fabric(info: Answer) -> Fabric | None:
    if not info.state:
        return None
    mask = getattr(info, "healthMask", 0)
    known = info.state == facts.FABRIC_READY and any(info.clusterUuid)
    wrong = mask >> _INCORRECT & 0xF
    return Fabric(
        state=info.state,
        failed=info.state == facts.FABRIC_READY and info.status != 0,
        clique=f"{UUID(bytes=bytes(info.clusterUuid))}.{info.cliqueId}" if known else None,
        slow=any(mask >> shift & 3 == _TRUE for shift in _SLOW),
        misconfigured=0 if wrong == _CONFIGURATION_FINE else wrong,
    )
