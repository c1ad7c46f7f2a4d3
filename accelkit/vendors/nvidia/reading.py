"""What NVML says about a GPU, checked. Not here: partitions, links, health, and the model."""

import re
from ctypes import c_uint

import attrs

from accelkit import SourceError, Version
from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml, Rubbish

_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TEXT_LIMIT = 64  # of an attribute; NVML's names may be longer
_MOST_MINORS = 1 << 20  # Linux, include/linux/kdev_t.h, MINORBITS


@attrs.frozen(kw_only=True)
class Driver:
    """Versions that all GPUs of a host share."""

    driver: Version
    cuda: Version | None
    library: str
    text: str
    """The driver's version as it spells it, which is in file names."""


@attrs.frozen(kw_only=True)
class Gpu:
    """One GPU, as far as it is the same whether it is cut or not."""

    handle: Handle = attrs.field(eq=False, repr=False)
    uuid: str
    address: str
    """As sysfs spells it."""
    product: str
    minor: int
    memory: int | None
    """Bytes; None: it is the host's."""
    facts: dict[str, bool | int | str | Version]
    """Attributes."""
    mig: bool | None
    """None: cannot be cut."""
    live: bool
    """Whether it can be cut without a reset."""


def text(value: object, what: str) -> str:
    """*value* if it can be shown, at most 64 characters of it.

    Raises:
        Rubbish: It is no text.
    """
    try:
        found = value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise Rubbish(f"{what} is no text") from error
    if not isinstance(found, str) or not found.isprintable() or not found.strip():
        raise Rubbish(f"{what} is {value!r}")
    return found.strip()[:_TEXT_LIMIT].strip()


def number(value: object, what: str, most: int, least: int = 0) -> int:
    """*value* if it is between *least* and *most*.

    Raises:
        Rubbish: It is not.
    """
    if not isinstance(value, int) or not least <= value <= most:
        raise Rubbish(f"{what} is {value!r}")
    return value


def version(value: object, what: str) -> Version:
    """*value* as a version.

    Raises:
        Rubbish: It is none.
    """
    found = re.match(r"\d{1,6}(?:\.\d{1,6}){0,3}", text(value, what))
    if found is None:
        raise Rubbish(f"{what} is {value!r}")
    return Version.parse(found[0])


def read_driver(nvml: Nvml) -> Driver:
    """Versions of the driver and its library."""
    spelt = text(nvml.ask("nvmlSystemGetDriverVersion"), "the driver version")
    cuda = nvml.maybe("nvmlSystemGetCudaDriverVersion")
    library = nvml.maybe("nvmlSystemGetNVMLVersion")
    return Driver(
        driver=version(spelt, "the driver version"),
        # cuda.h, CUDA_VERSION: 1000 * major + 10 * minor
        cuda=None if not cuda else Version(*divmod(number(cuda, "CUDA", 1 << 20) // 10, 100)),
        library=spelt if library is None else text(library, "the NVML version"),
        text=spelt,
    )


def count_gpus(nvml: Nvml) -> int:
    """How many GPUs the driver lists, sick ones included."""
    return number(nvml.ask("nvmlDeviceGetCount"), "the number of GPUs", facts.MOST_GPUS)


def read_excluded(nvml: Nvml) -> frozenset[str]:
    """Addresses of the GPUs that the driver is told to leave alone, as far as it says so."""
    try:
        count = nvml.maybe("nvmlGetExcludedDeviceCount") or 0
        infos = [
            nvml.maybe("nvmlGetExcludedDeviceInfoByIndex", index)
            for index in range(number(count, "the number of excluded GPUs", facts.MOST_GPUS))
        ]
        return frozenset(address_of(info.pci) for info in infos if info is not None)
    except SourceError:  # nobody is served worse without knowing
        return frozenset()


def read_gpu(nvml: Nvml, handle: Handle, driver: Driver) -> Gpu:
    """All that is needed of one GPU.

    Raises:
        SourceError: Something that every GPU has could not be read, or is rubbish.
    """
    uuid = read_uuid(nvml, handle)
    product = text(nvml.ask("nvmlDeviceGetName", handle), "the name")
    mig = nvml.maybe("nvmlDeviceGetMigMode", handle)
    memory = read_memory(nvml, handle)
    return Gpu(
        handle=handle,
        uuid=uuid,
        address=read_address(nvml, handle),
        product=product,
        minor=number(nvml.ask("nvmlDeviceGetMinorNumber", handle), "the minor", _MOST_MINORS),
        memory=memory,
        facts={
            "uuid": uuid,
            "productName": product,
            "driverVersion": driver.driver,
            "unifiedMemory": memory is None,
            **({} if driver.cuda is None else {"cudaDriverVersion": driver.cuda}),
            **_named(nvml, handle),
        },
        mig=None if mig is None else mig[0] == 1,
        live=mig is not None and can_change_mode(nvml, handle),
    )


def can_change_mode(nvml: Nvml, handle: Handle) -> bool:
    """Whether its MIG mode can be set as it runs: without a reset, and not by the hypervisor."""
    return (
        read_field(nvml, handle, facts.RESETLESS_MIG) == 1
        and nvml.maybe("nvmlDeviceGetVirtualizationMode", handle) != facts.VGPU_GUEST
    )


def read_uuid(nvml: Nvml, handle: Handle) -> str:
    """The UUID of a whole GPU, in NVML's spelling."""
    uuid = text(nvml.ask("nvmlDeviceGetUUID", handle), "the UUID")
    if _UUID.fullmatch(uuid) is None:
        raise Rubbish(f"the UUID is {uuid!r}")
    return uuid


def read_address(nvml: Nvml, handle: Handle) -> str:
    """The PCI address, as sysfs spells it."""
    return address_of(nvml.ask("nvmlDeviceGetPciInfo", handle))


def address_of(pci: Answer) -> str:
    """The address in *pci* as sysfs has it: four digits of domain, more only where needed."""
    domain = number(pci.domain, "the PCI domain", 0xFFFFFFFF)
    bus, device = number(pci.bus, "the PCI bus", 0xFF), number(pci.device, "the PCI slot", 0x1F)
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"


def read_field(nvml: Nvml, handle: Handle, field: int) -> int | None:
    """A field that is an unsigned number; None: this GPU or driver does not have it."""
    values = nvml.maybe("nvmlDeviceGetFieldValues", handle, [field])
    if values is None or values[0].nvmlReturn != 0:
        return None
    return int(values[0].value.uiVal)


def read_memory(nvml: Nvml, handle: Handle) -> int | None:
    """Bytes; None: it is the host's."""
    # The first version counts what the driver reserves as the GPU's, as data sheets do.
    memory = nvml.maybe("nvmlDeviceGetMemoryInfo", handle)
    if memory is None:
        return None
    return number(memory.total, "the memory", facts.MOST_MEMORY, least=1)


def _named(nvml: Nvml, handle: Handle) -> dict[str, bool | int | str | Version]:
    """Attributes that not every GPU has, or not every driver tells."""
    found: dict[str, bool | int | str | Version] = {}
    for key, function, words in (
        ("brand", "nvmlDeviceGetBrand", facts.BRANDS),
        ("architecture", "nvmlDeviceGetArchitecture", facts.ARCHITECTURES),
        ("addressingMode", "nvmlDeviceGetAddressingMode", facts.ADDRESSING),
    ):
        if (known := words.get(nvml.maybe(function, handle))) is not None:
            found[key] = known
    for key, function in (
        ("serial", "nvmlDeviceGetSerial"),
        ("vbiosVersion", "nvmlDeviceGetVbiosVersion"),
    ):
        if (answer := nvml.maybe(function, handle)) is not None:
            found[key] = text(answer, key)
    if (capability := nvml.maybe("nvmlDeviceGetCudaComputeCapability", handle)) is not None:
        major, minor = (number(part, "the compute capability", 99) for part in capability)
        found["cudaComputeCapability"] = Version(major, minor)
    # By default the binding reads it into one variable for all calls, of all threads.
    if (module := nvml.maybe("nvmlDeviceGetModuleId", handle, c_uint())) is not None:
        found["moduleId"] = number(module, "the module id", 1 << 16)
    return found
