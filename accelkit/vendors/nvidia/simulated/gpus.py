"""The simulated NVML: sessions, and what GPUs are. Not here: how they are."""

from collections.abc import Mapping

from accelkit.testing.machines import Function, pointee
from accelkit.vendors.nvidia import facts, states, strangers
from accelkit.vendors.nvidia.simulated.calls import (
    FIRST_GPU,
    GPU_STEP,
    SUCCESS,
    C,
    Call,
    Gpu,
    Library,
    address,
    driver_error,
    fill_pci,
    instance_at,
    mig_address,
    mig_devices,
    mig_uuid,
    number,
    on_gpu,
    put,
    ready,
)


def init_with_flags(library: Library, flags: C) -> int:
    state = library.live.state()
    if wrong := driver_error(state):
        return wrong
    if not Call(library, state).listed() and not number(flags) & 1:
        return facts.NOT_FOUND
    library.inits += 1
    return SUCCESS


def init(library: Library) -> int:
    return init_with_flags(library, 0)


def shutdown(library: Library) -> int:
    if not library.inits:
        return facts.UNINITIALIZED
    library.inits -= 1
    if not library.inits:
        library.sets.clear()
    return SUCCESS


@ready
def driver_version(call: Call, buffer: C, size: C) -> int:
    del size
    buffer.value = call.library.version.encode()
    return SUCCESS


@ready
def nvml_version(call: Call, buffer: C, size: C) -> int:
    del size
    buffer.value = f"13.{call.library.version}".encode()
    return SUCCESS


@ready
def cuda_version(call: Call, out: C) -> int:
    del call
    pointee(out).value = 13000
    return SUCCESS


@ready
def count(call: Call, out: C) -> int:
    pointee(out).value = len(call.listed())
    return SUCCESS


@ready
def excluded_count(call: Call, out: C) -> int:
    pointee(out).value = len(_excluded(call))
    return SUCCESS


@ready
def excluded_info(call: Call, index: C, out: C) -> int:
    excluded = _excluded(call)
    if number(index) >= len(excluded):
        return facts.INVALID_ARGUMENT
    position = excluded[number(index)]
    fill_pci(pointee(out).pci, call.board.places[position].address)
    pointee(out).uuid = call.board.uuids[position].encode()
    return SUCCESS


def _excluded(call: Call) -> list[int]:
    units = enumerate(call.library.units)
    return [i for i, unit in units if "excluded" in states.of(call.state, unit)]


@ready
def handle_by_index(call: Call, index: C, out: C) -> int:
    listed = call.listed()
    if number(index) >= len(listed):
        return facts.INVALID_ARGUMENT
    where = FIRST_GPU + listed[number(index)] * GPU_STEP
    gpu = call.gpu_at(where)
    if isinstance(gpu, int):
        return gpu
    put(out, where)
    return SUCCESS


@ready
def handle_by_uuid(call: Call, uuid: C, out: C) -> int:
    text = uuid if isinstance(uuid, bytes) else uuid.value
    for index in call.listed():
        base = FIRST_GPU + index * GPU_STEP
        if call.board.uuids[index].encode() == text:
            gpu = call.gpu_at(base)
            put(out, base)
            return gpu if isinstance(gpu, int) else SUCCESS
        for part in mig_devices(Gpu(call.library, call.state, index)):
            if mig_uuid(call.board, index, *part).encode() == text:
                put(out, mig_address(index, *part))
                return SUCCESS
    return facts.NOT_FOUND


@ready
def uuid_of(call: Call, handle: C, buffer: C, size: C) -> int:
    del size
    where = address(handle)
    gpu = call.gpu_at(where)
    if isinstance(gpu, int):
        return gpu
    part = instance_at(gpu, where)
    if part is None:
        buffer.value = call.board.uuids[gpu.index].encode()
    else:
        buffer.value = mig_uuid(call.board, gpu.index, *part).encode()
    return SUCCESS


@on_gpu
def name(gpu: Gpu, buffer: C, size: C) -> int:
    del size
    buffer.value = gpu.board.product.name.encode()
    return SUCCESS


@on_gpu
def serial(gpu: Gpu, buffer: C, size: C) -> int:
    del size
    buffer.value = gpu.board.serial(gpu.index).encode()
    return SUCCESS


@on_gpu
def vbios(gpu: Gpu, buffer: C, size: C) -> int:
    del size
    buffer.value = f"96.00.{gpu.board.product.pci_device & 0xFF:02X}.00.01".encode()
    return SUCCESS


@on_gpu
def minor(gpu: Gpu, out: C) -> int:
    pointee(out).value = states.minor(gpu.state, gpu.board.part, gpu.index)
    return SUCCESS


@on_gpu
def module_id(gpu: Gpu, out: C) -> int:
    if not gpu.board.product.links:
        return facts.NOT_SUPPORTED
    told = gpu.board.part.told.units[gpu.index].module
    pointee(out).value = gpu.index + 1 if told is None else told
    return SUCCESS


@on_gpu
def brand(gpu: Gpu, out: C) -> int:
    pointee(out).value = gpu.board.product.brand
    return SUCCESS


@on_gpu
def architecture(gpu: Gpu, out: C) -> int:
    pointee(out).value = gpu.board.product.architecture
    return SUCCESS


@on_gpu
def capability(gpu: Gpu, major: C, minor: C) -> int:
    pointee(major).value, pointee(minor).value = gpu.board.product.capability
    return SUCCESS


@on_gpu
def persistence(gpu: Gpu, out: C) -> int:
    pointee(out).value = int(gpu.number("persistence") != 2)
    return SUCCESS


@ready
def memory(call: Call, handle: C, out: C) -> int:
    gpu = call.gpu_at(address(handle))
    if isinstance(gpu, int):
        return gpu
    part = instance_at(gpu, address(handle))
    info, product = pointee(out), gpu.board.product
    info.total = product.memory
    slots = [slot for _, slot in strangers.holders(gpu.state, gpu.unit)]
    if part is not None:
        profile = next(p for p in product.profiles if p.name == part[0]["profile"])
        info.total = profile.memory_mb << 20
        slots = [slot for slot in slots if slot == part[0]["start"]]
    info.used = min(len(slots) << 30, info.total)
    info.free = info.total - info.used
    return SUCCESS


@on_gpu
def compute_mode(gpu: Gpu, out: C) -> int:
    pointee(out).value = gpu.number("compute")
    return SUCCESS


@on_gpu
def set_compute_mode(gpu: Gpu, mode: C) -> int:
    if number(mode) not in {0, 2, 3}:
        return facts.INVALID_ARGUMENT
    gpu.change(lambda state: states.changed(state, gpu.unit, compute=number(mode) or None))
    return SUCCESS


@on_gpu
def virtualization(gpu: Gpu, out: C) -> int:
    pointee(out).value = facts.VGPU_GUEST if gpu.board.is_guest else 0
    return SUCCESS


@on_gpu
def pci_info(gpu: Gpu, out: C) -> int:
    fill_pci(pointee(out), gpu.board.places[gpu.index].address)
    pointee(out).pciDeviceId = gpu.board.product.pci_device << 16 | facts.PCI_VENDOR
    return SUCCESS


SYMBOLS: Mapping[str, Function] = {
    "nvmlInit": init,
    "nvmlInit_v2": init,
    "nvmlInitWithFlags": init_with_flags,
    "nvmlShutdown": shutdown,
    "nvmlSystemGetDriverVersion": driver_version,
    "nvmlSystemGetNVMLVersion": nvml_version,
    "nvmlSystemGetCudaDriverVersion": cuda_version,
    "nvmlSystemGetCudaDriverVersion_v2": cuda_version,
    "nvmlDeviceGetCount_v2": count,
    "nvmlGetExcludedDeviceCount": excluded_count,
    "nvmlGetExcludedDeviceInfoByIndex": excluded_info,
    "nvmlDeviceGetHandleByIndex_v2": handle_by_index,
    "nvmlDeviceGetHandleByUUID": handle_by_uuid,
    "nvmlDeviceGetUUID": uuid_of,
    "nvmlDeviceGetName": name,
    "nvmlDeviceGetSerial": serial,
    "nvmlDeviceGetVbiosVersion": vbios,
    "nvmlDeviceGetMinorNumber": minor,
    "nvmlDeviceGetModuleId": module_id,
    "nvmlDeviceGetBrand": brand,
    "nvmlDeviceGetArchitecture": architecture,
    "nvmlDeviceGetCudaComputeCapability": capability,
    "nvmlDeviceGetPersistenceMode": persistence,
    "nvmlDeviceGetMemoryInfo": memory,
    "nvmlDeviceGetPciInfo_v3": pci_info,
    "nvmlDeviceGetComputeMode": compute_mode,
    "nvmlDeviceSetComputeMode": set_compute_mode,
    "nvmlDeviceGetVirtualizationMode": virtualization,
}
