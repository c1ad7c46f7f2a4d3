"""What NVIDIA publishes, as tables with their sources. Not here: anything that calls a library."""

from types import MappingProxyType

from accelkit import LinkKind

PCI_VENDOR = 0x10DE
"""PCI vendor id of NVIDIA. Source: the PCI id repository, https://pci-ids.ucw.cz."""
DISPLAY, COMPUTE = 0x0300, 0x0302
"""PCI classes of GPUs: VGA and 3D controller. Source: PCI Code and ID Assignment, class 03h."""

LIBRARY = "libnvidia-ml.so.1"
DRIVER_CONTAINER = "/run/nvidia/driver"
"""Root of a driver that runs in a container. Source: the gpu-driver-container project."""

# Return codes. Source: nvml.h, nvmlReturn_t.
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
TOO_SMALL = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18
IN_USE = 19
NO_DATA = 21
INSUFFICIENT_RESOURCES = 23
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
UNKNOWN = 999

ERRORS = MappingProxyType(
    {
        UNINITIALIZED: "the session is not initialised",
        INVALID_ARGUMENT: "an argument is invalid",
        NOT_SUPPORTED: "not supported",
        NO_PERMISSION: "no permission",
        NOT_FOUND: "not found",
        TOO_SMALL: "a buffer is too small",
        8: "a power cable is not attached",
        DRIVER_NOT_LOADED: "the driver is not loaded",
        TIMEOUT: "timed out",
        11: "an interrupt problem of the kernel",
        FUNCTION_NOT_FOUND: "this driver does not know the function",
        14: "the information ROM is corrupt",
        GPU_IS_LOST: "the GPU is lost",
        RESET_REQUIRED: "the GPU must be reset",
        17: "an operating system call failed",
        VERSION_MISMATCH: "driver and library have different versions",
        IN_USE: "in use",
        20: "out of memory",
        NO_DATA: "no data",
        INSUFFICIENT_RESOURCES: "insufficient resources",
        DEPRECATED: "no longer served by this driver",
        27: "not ready",
        28: "no such GPU",
        29: "invalid state",
        UNKNOWN: "unknown error",
    }
)
"""Return codes in words. Source: nvml.h, nvmlReturn_t."""

KERNEL_LOG = "see the kernel log for messages of NVRM"
REMEDIES = MappingProxyType(
    {
        8: "attach the power cables of the GPU",
        14: "have the board serviced",
        GPU_IS_LOST: f"reboot the node if it does not come back; {KERNEL_LOG}",
        RESET_REQUIRED: "once nothing uses it: nvidia-smi --gpu-reset -i ADDRESS",
    }
)
"""What to do about return codes where it is not the kernel log that says it."""

ABSENT = frozenset(
    {
        INVALID_ARGUMENT,
        NOT_SUPPORTED,
        NOT_FOUND,
        FUNCTION_NOT_FOUND,
        NO_DATA,
        ARGUMENT_VERSION_MISMATCH,
        DEPRECATED,
    }
)
"""Answers that mean "there is no such thing here", for facts that not every GPU has."""

ARCHITECTURES = MappingProxyType(
    {
        2: "Kepler",
        3: "Maxwell",
        4: "Pascal",
        5: "Volta",
        6: "Turing",
        7: "Ampere",
        8: "Ada Lovelace",
        9: "Hopper",
        10: "Blackwell",
        13: "Rubin",
    }
)
"""Source: nvml.h, NVML_DEVICE_ARCH_*."""

BRANDS = MappingProxyType(
    {
        1: "Quadro",
        2: "Tesla",
        3: "NVS",
        4: "GRID",
        5: "GeForce",
        6: "Titan",
        7: "NVIDIA vApps",
        8: "NVIDIA vPC",
        9: "NVIDIA vCS",
        10: "NVIDIA RTX vWS",
        11: "NVIDIA Cloud Gaming",
        12: "Quadro RTX",
        13: "NVIDIA RTX",
        14: "NVIDIA",
        15: "GeForce RTX",
        16: "Titan RTX",
    }
)
"""Source: nvml.h, nvmlBrandType_t."""

ADDRESSING = MappingProxyType({0: "None", 1: "HMM", 2: "ATS"})
"""Source: nvml.h, NVML_DEVICE_ADDRESSING_MODE_*."""

NVLINK_BANDWIDTH = MappingProxyType(
    {
        1: 20_000_000_000,
        2: 25_000_000_000,
        3: 25_000_000_000,
        4: 25_000_000_000,
        5: 25_000_000_000,
        6: 25_000_000_000,
        7: 50_000_000_000,
    }
)
"""Bytes a second of one link, each direction, by NVLink version.

Source: nvml.h, NVML_NVLINK_VERSION_* (1: 1.0, 2: 2.0, 3: 2.2, 4: 3.0, 5: 3.1, 6: 4.0, 7: 5.0);
data sheets give both directions of all links: P100 160 GB/s (4), V100 300 (6), A100 600 (12),
H100 900 (18), B200 1800 (18).
"""
MOST_NVLINKS = 36
"""Source: nvml.h, NVML_NVLINK_MAX_LINKS."""
REMOTE_GPU, REMOTE_SWITCH = 0, 2
"""Source: nvml.h, nvmlIntNvLinkDeviceType_t."""

ANCESTORS = MappingProxyType(
    {
        0: LinkKind.ONDIE,
        10: LinkKind.SWITCH,
        20: LinkKind.BRIDGE,
        30: LinkKind.HOST,
        40: LinkKind.SOCKET,
    }
)
"""By common ancestor; 50 is the system: no link. A board counts as the closest there is.

Source: nvml.h, nvmlGpuTopologyLevel_t.
"""

FABRIC_STATES = MappingProxyType({1: "has not started", 2: "is in progress"})
"""States in which the fabric cannot be used yet. Source: nvml.h, NVML_GPU_FABRIC_STATE_*."""
FABRIC_READY = 3
FABRIC_FAULTS = MappingProxyType(
    {
        2: "another system GUID",
        3: "another chassis serial number",
        4: "no partition",
        5: "too few NVLinks",
        6: "the firmware of the GPU",
        7: "the location of the GPU",
        8: "the state of the GPU",
    }
)
"""Why a GPU does not fit into its fabric.

Source: nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*.
"""

MEMORY_TEMPERATURE = 82
"""Source: nvml.h, NVML_FI_DEV_MEMORY_TEMP."""
RECOVERY_ACTION = 230
"""Source: nvml.h, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, since driver 565."""
RESETLESS_MIG = 184
"""Source: nvml.h, NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED."""

VGPU_GUEST = 2
"""Source: nvml.h, NVML_GPU_VIRTUALIZATION_MODE_VGPU."""

HARDWARE_SLOWDOWN, HARDWARE_THERMAL, POWER_BRAKE = 0x8, 0x40, 0x80
SOFTWARE_THERMAL = 0x20
"""Source: nvml.h, nvmlClocksEventReason*."""

MOST_GPUS = 256
"""More in one node is taken as rubbish."""
MOST_MEMORY = 1 << 50
"""Bytes; more on one GPU is taken as rubbish."""
