"""What must be true of a GPU while somebody has it: time slices and the compute mode.

Not here: who wants it, and what containers get.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import attrs

from accelkit import (
    DriverNotReady,
    Enforcement,
    Grant,
    Host,
    Setting,
    SourceError,
    Timeslice,
)
from accelkit.vendors.nvidia import facts
from accelkit.vendors.nvidia.devices import since_volta, uuid_of
from accelkit.vendors.nvidia.driver import SMI, loaded_version, run_program
from accelkit.vendors.nvidia.nvml import Handle, Nvml, NvmlError

TIMESLICE, COMPUTE_MODE = "timeslice", "compute-mode"
EXCLUSIVE_PROCESS = "exclusive-process"
_SLICES: Mapping[str, int] = MappingProxyType(
    {Timeslice.DEFAULT: 0, Timeslice.SHORT: 1, Timeslice.MEDIUM: 2, Timeslice.LONG: 3}
)
"""Source: nvidia-smi compute-policy --help, option --set-timeslice."""
_MODES: Mapping[str, int] = MappingProxyType({"default": 0, EXCLUSIVE_PROCESS: 3})
"""Source: nvml.h, nvmlComputeMode_t."""
_DEFAULT = 0
"""The maker's default of both."""
_SMI_S = 15.0


def needs(grant: Grant) -> Iterator[Setting]:
    """What must hold while *grant* lives; of whole GPUs alone, and only what they can."""
    for granted in grant.granted:
        device, sharing = granted.device, grant.sharing
        if device.parent is not None or granted.admin:
            continue
        if sharing.timeslice is not Timeslice.DEFAULT and since_volta(device):
            yield Setting(device=device.id, key=TIMESLICE, value=sharing.timeslice)
        if sharing.enforce is Enforcement.MPS:
            yield Setting(device=device.id, key=COMPUTE_MODE, value=EXCLUSIVE_PROCESS)


@attrs.frozen(kw_only=True)
class Tools:
    """What settings are made with."""

    host: Host
    roots: Sequence[str]
    session: Callable[[], Nvml]


def apply(tools: Tools, setting: Setting) -> None:
    """Make *setting* true.

    Raises:
        SourceError: It could not be made true, or there is no such setting.
    """
    uuid, values = _uuid(setting), _SLICES if setting.key == TIMESLICE else _MODES
    if setting.value not in values:
        raise _unknown(setting)
    if setting.key == TIMESLICE:
        _slice(tools, uuid, values[setting.value])
    else:
        nvml = tools.session()
        handle = nvml.ask("nvmlDeviceGetHandleByUUID", uuid)
        nvml.ask("nvmlDeviceSetComputeMode", handle, values[setting.value])
        _check_mode(nvml, handle, setting)


def revert(tools: Tools, setting: Setting) -> None:
    """Back to the maker's default; nothing is to be done where the GPU or the driver is gone.

    Raises:
        SourceError: It could not be undone, or there is no such setting.
    """
    uuid = _uuid(setting)
    if loaded_version(tools.host) is None:
        return
    try:
        nvml = tools.session()
        handle = nvml.ask("nvmlDeviceGetHandleByUUID", uuid)
        if setting.key == COMPUTE_MODE:
            # What cannot be set on this GPU was never set.
            nvml.maybe("nvmlDeviceSetComputeMode", handle, _DEFAULT)
            return
    except DriverNotReady:
        return
    except NvmlError as error:
        if error.value in {facts.NOT_FOUND, facts.GPU_IS_LOST}:
            return
        raise
    _slice(tools, uuid, _DEFAULT)


def _uuid(setting: Setting) -> str:
    if setting.device is None or setting.key not in {TIMESLICE, COMPUTE_MODE}:
        raise _unknown(setting)
    return uuid_of(setting.device.name)


def _unknown(setting: Setting) -> SourceError:
    return SourceError(
        f"{setting.device}: {setting.key} {setting.value} is no setting of a GPU",
        vendor="nvidia",
        operation="setting",
        remedy="it may be one of a later version of accelkit",
    )


def _check_mode(nvml: Nvml, handle: Handle, setting: Setting) -> None:
    found = nvml.ask("nvmlDeviceGetComputeMode", handle)
    if found != _MODES[setting.value]:
        raise SourceError(
            f"{setting.device}: the driver says that it set {setting.key} {setting.value}, but it "
            f"shows {found}",
            vendor="nvidia",
            operation="setting",
            remedy=facts.KERNEL_LOG,
        )


def _slice(tools: Tools, uuid: str, value: int) -> None:
    """Set the time slice; NVML has no call for it.

    Raises:
        SourceError: It could not be set.
    """
    argv = [SMI, "compute-policy", "-i", uuid, "--set-timeslice", str(value)]
    done = run_program(tools.host, tools.roots, argv, _SMI_S)
    said = " ".join(f"{done.out} {done.err}".split())
    # A GPU that has no time slices has the default.
    if done.code == 0 or (value == _DEFAULT and "not supported" in said.lower()):
        return
    raise SourceError(
        f"{' '.join(argv)} answered {done.code}: {said[:200] or 'nothing'}",
        vendor="nvidia",
        operation="setting",
        remedy="run it by hand on the node",
    )
