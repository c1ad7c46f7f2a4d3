"""The simulated NVML: what connects GPUs. Not here: the GPUs themselves."""

from collections.abc import Mapping

from accelkit.testing.machines import Function, pointee
from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.board import SWITCH_ADDRESS
from accelkit.vendors.nvidia.simulated.calls import (
    SUCCESS,
    C,
    Call,
    Gpu,
    address,
    fill_pci,
    number,
    on_gpu,
    ready,
)


@ready
def common_ancestor(call: Call, one: C, other: C, out: C) -> int:
    a, b = (call.gpu_at(address(handle)) for handle in (one, other))
    if isinstance(a, int):
        return a
    if isinstance(b, int):
        return b
    pointee(out).value = call.board.level(a.index, b.index)
    return SUCCESS


@on_gpu
def link_state(gpu: Gpu, link: C, out: C) -> int:
    ports = gpu.board.ports(gpu.index)
    if not ports:
        return facts.NOT_SUPPORTED
    if number(link) >= len(ports):
        return facts.INVALID_ARGUMENT
    pointee(out).value = int(number(link) >= gpu.number("dark"))
    return SUCCESS


@on_gpu
def link_version(gpu: Gpu, link: C, out: C) -> int:
    del link
    if not gpu.board.ports(gpu.index):
        return facts.NOT_SUPPORTED
    pointee(out).value = gpu.board.product.link_version
    return SUCCESS


@on_gpu
def link_remote_type(gpu: Gpu, link: C, out: C) -> int:
    ports = gpu.board.ports(gpu.index)
    if number(link) >= len(ports):
        return facts.INVALID_ARGUMENT
    far = ports[number(link)]
    pointee(out).value = facts.REMOTE_SWITCH if far is None else facts.REMOTE_GPU
    return SUCCESS


@on_gpu
def link_remote_pci(gpu: Gpu, link: C, out: C) -> int:
    ports = gpu.board.ports(gpu.index)
    if number(link) >= len(ports):
        return facts.INVALID_ARGUMENT
    far = ports[number(link)]
    switch = SWITCH_ADDRESS.format(number(link) % 4)
    fill_pci(pointee(out), switch if far is None else gpu.board.places[far].address)
    return SUCCESS


@on_gpu
def fabric_info(gpu: Gpu, out: C) -> int:
    if not gpu.board.product.fabric or not gpu.board.switched:
        return facts.NOT_SUPPORTED
    info = pointee(out)
    info.state = gpu.fields.get("fabric", facts.FABRIC_READY)
    info.status = SUCCESS
    if hasattr(info, "healthMask"):  # not in the oldest one
        info.healthMask = gpu.number("fabric-mask")
    if cluster := gpu.board.part.options.get("cluster"):
        info.clusterUuid[:] = bytes.fromhex(cluster.replace("-", ""))
        info.cliqueId = 1
    return SUCCESS


SYMBOLS: Mapping[str, Function] = {
    "nvmlDeviceGetTopologyCommonAncestor": common_ancestor,
    "nvmlDeviceGetNvLinkState": link_state,
    "nvmlDeviceGetNvLinkVersion": link_version,
    "nvmlDeviceGetNvLinkRemoteDeviceType": link_remote_type,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": link_remote_pci,
    "nvmlDeviceGetGpuFabricInfo": fabric_info,
    "nvmlDeviceGetGpuFabricInfoV": fabric_info,
}
