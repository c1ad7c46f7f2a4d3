"""The NVLink fabric of a GPU: whether it has joined, and how well. Not here: single links."""

import ctypes

import attrs

from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml, NvmlError

# nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*: groups of two bits, 1 is true, 2 is false.
_DEGRADED_BANDWIDTH, _ROUTE_UNHEALTHY, _INCORRECT = 0, 4, 8
_TRUE, _CONFIGURATION_FINE = 1, 1


@attrs.frozen(kw_only=True)
class Fabric:
    """What a GPU says about its fabric."""

    state: int
    failed: bool
    """It has tried to join and could not."""
    clique: str | None
    """Cluster UUID and clique: GPUs of one reach each other. None: not known."""
    slow: bool
    """Some bandwidth or routes are missing."""
    misconfigured: int
    """Why it is in no partition; 0: it is, or nobody says."""

    @property
    def ready(self) -> bool:
        return self.state == facts.FABRIC_READY and not self.failed


def read_fabric(nvml: Nvml, handle: Handle) -> Fabric | None:
    """The fabric of a GPU; None: it has none, or the driver does not say."""
    for structure in ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t"):
        try:
            info = nvml.new(structure)
            nvml.ask("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info))
        except NvmlError as error:
            if error.value in facts.ABSENT:
                continue
            raise
        return _fabric(info)
    return None


def _fabric(info: Answer) -> Fabric | None:
    if not info.state:
        return None
    mask = info.healthMask
    cluster = bytes(info.clusterUuid).hex()
    known = info.state == facts.FABRIC_READY and any(info.clusterUuid)
    wrong = mask >> _INCORRECT & 0xF
    return Fabric(
        state=info.state,
        failed=info.state == facts.FABRIC_READY and info.status != 0,
        clique=f"{cluster[:32]}.{info.cliqueId}" if known else None,
        slow=any(mask >> shift & 3 == _TRUE for shift in (_DEGRADED_BANDWIDTH, _ROUTE_UNHEALTHY)),
        misconfigured=0 if wrong == _CONFIGURATION_FINE else wrong,
    )
