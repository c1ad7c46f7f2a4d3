"""What is wrong with a GPU now. Not here: how events are heard, and what XIDs mean."""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from accelkit import Condition, Device, Evidence, Scope, Severity
from accelkit.vendors.nvidia import facts, xid
from accelkit.vendors.nvidia.card import handle_of
from accelkit.vendors.nvidia.devices import uuid_of
from accelkit.vendors.nvidia.fabric import read_fabric
from accelkit.vendors.nvidia.links import read_ports
from accelkit.vendors.nvidia.nvml import Handle, Nvml, NvmlError
from accelkit.vendors.nvidia.reading import read_field

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "gpu-lost": "The driver has lost the GPU; it is back after a reset or a reboot.",
        "needs-reset": "The driver asks for a reset of the GPU.",
        "needs-reboot": "The driver asks for a reboot of the node.",
        "drain-p2p": "The driver asks to end all use of the GPU together with others.",
        "imex-domain": "The driver asks to recover the domain of nodes that the GPU is in.",
        "recovery-unknown": "The driver asks for something that is not known here.",
        "row-remap-failed": "No spare rows are left for defective memory: replace the GPU.",
        "row-remap-pending": "Defective memory will be replaced by the next reset.",
        "page-retirement-pending": "Defective memory will be taken out by the next reset.",
        "ecc-uncorrected": "Memory errors that could not be corrected since the driver was loaded.",
        "thermal-slowdown": "The hardware runs slower because it is too hot.",
        "power-brake": "The hardware runs slower because of its power supply.",
        "hardware-slowdown": "The hardware runs slower, and does not say why.",
        "software-thermal": "The driver lowers clocks to keep the temperature down.",
        "fabric-not-ready": "The GPU has not joined its NVLink fabric: look at the fabric manager.",
        "fabric-degraded": "The NVLink fabric lacks bandwidth or routes.",
        "fabric-misconfigured": "The NVLink fabric is not set up for the GPU.",
        "nvlink-down": "Some NVLinks of a GPU that has them all do not work.",
        "mig-pending": "Another MIG mode is set, and comes with the next reset.",
        "xid-*": "The driver has reported this XID since boot.",
    }
)
"""Codes of all conditions, each with what it means. Events have their own, see xid.EVENTS."""

FADE_S = 600.0
"""How long an event that asks for nothing more stays visible."""

_ACTIONS = MappingProxyType(
    {
        1: ("needs-reset", Severity.FATAL, Scope.TREE),
        2: ("needs-reboot", Severity.FATAL, Scope.TREE),
        3: ("drain-p2p", Severity.DEGRADED, Scope.DEVICE),
        4: ("needs-reset", Severity.FATAL, Scope.TREE),
        5: ("imex-domain", Severity.DEGRADED, Scope.DEVICE),
        6: ("needs-reset", Severity.FATAL, Scope.TREE),
        7: ("needs-reboot", Severity.FATAL, Scope.TREE),
    }
)
"""Source: nvml.h, nvmlDeviceGpuRecoveryAction_t; 6 and 7 since driver 615."""
_HARMLESS = frozenset({0, *(n for n, told in _ACTIONS.items() if told[1] is not Severity.FATAL)})
"""Actions with which the GPU can be used."""
_UNCORRECTED, _VOLATILE = 1, 0  # nvml.h, nvmlMemoryErrorType_t and nvmlEccCounterType_t


def read_conditions(
    nvml: Nvml,
    device: Device,
    evidence: tuple[Evidence, ...],
    now_s: float,
    ignored: Collection[int],
) -> Iterator[Condition]:
    """What is wrong with *device*; of a partition only what is its own.

    Raises:
        SourceError: The GPU could not be asked.
    """
    own = device.aliases | {device.id.name} | ({""} if device.parent is None else set())
    heard = [event for event in evidence if event.subject in own]
    try:
        uuid = device.handle or uuid_of(device.root.name)
        handle = nvml.ask("nvmlDeviceGetHandleByUUID", uuid)
        if device.parent is None:
            asked = _asked_for(nvml, handle)
            yield from _of_gpu(nvml, handle, asked)
        else:
            asked = _asked_for(nvml, handle_of(nvml, device))
    except NvmlError as error:
        if error.value not in {facts.GPU_IS_LOST, facts.RESET_REQUIRED}:
            raise
        if device.parent is None:
            code = "gpu-lost" if error.value == facts.GPU_IS_LOST else "needs-reset"
            yield _condition(code, Severity.FATAL, Scope.TREE, str(error))
        asked = None
    told: dict[str, Condition] = {}
    for event in heard:
        # The same XID may have been heard from the library and from the kernel log.
        if event.code not in told:
            for condition in _of_event(event, asked, now_s, ignored):
                told[condition.code] = condition
    yield from told.values()


def _condition(
    code: str, severity: Severity, scope: Scope = Scope.DEVICE, detail: str = ""
) -> Condition:
    text = f"{CONDITIONS[code].rstrip('.')} ({detail})." if detail else CONDITIONS[code]
    return Condition(code=code, severity=severity, scope=scope, message=text)


def _asked_for(nvml: Nvml, handle: Handle) -> int | None:
    """The driver's recovery action, 0 for none; None: this driver does not say."""
    return read_field(nvml, handle, facts.RECOVERY_ACTION)


def _of_gpu(nvml: Nvml, handle: Handle, asked: int | None) -> Iterator[Condition]:
    if asked:
        unknown = ("recovery-unknown", Severity.DEGRADED, Scope.DEVICE)
        code, severity, scope = _ACTIONS.get(asked, unknown)
        yield _condition(code, severity, scope, f"recovery action {asked}")
    yield from _memory(nvml, handle)
    yield from _clocks(nvml, handle)
    yield from _fabric(nvml, handle)
    mode = nvml.maybe("nvmlDeviceGetMigMode", handle)
    if mode is not None and mode[0] != mode[1]:
        yield _condition("mig-pending", Severity.INFO)


def _memory(nvml: Nvml, handle: Handle) -> Iterator[Condition]:
    rows = nvml.maybe("nvmlDeviceGetRemappedRows", handle)
    if rows is not None and rows[3]:
        yield _condition("row-remap-failed", Severity.FATAL, Scope.TREE)
    if rows is not None and rows[2]:
        yield _condition("row-remap-pending", Severity.DEGRADED)
    if rows is None and nvml.maybe("nvmlDeviceGetRetiredPagesPendingStatus", handle):
        yield _condition("page-retirement-pending", Severity.DEGRADED)
    errors = nvml.maybe("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _VOLATILE)
    if errors:
        yield _condition("ecc-uncorrected", Severity.DEGRADED, detail=str(errors))


def _clocks(nvml: Nvml, handle: Handle) -> Iterator[Condition]:
    reasons = nvml.maybe("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        reasons = nvml.maybe("nvmlDeviceGetCurrentClocksThrottleReasons", handle) or 0
    if reasons & facts.HARDWARE_THERMAL:
        yield _condition("thermal-slowdown", Severity.DEGRADED)
    if reasons & facts.POWER_BRAKE:
        yield _condition("power-brake", Severity.DEGRADED)
    if reasons & facts.HARDWARE_SLOWDOWN and not reasons & (
        facts.HARDWARE_THERMAL | facts.POWER_BRAKE
    ):
        yield _condition("hardware-slowdown", Severity.DEGRADED)
    if reasons & facts.SOFTWARE_THERMAL:
        yield _condition("software-thermal", Severity.INFO)


def _fabric(nvml: Nvml, handle: Handle) -> Iterator[Condition]:
    fabric = read_fabric(nvml, handle)
    if fabric is not None and not fabric.ready:
        state = facts.FABRIC_STATES.get(fabric.state, "failed")
        yield _condition("fabric-not-ready", Severity.FATAL, detail=f"joining {state}")
    if fabric is not None and fabric.slow:
        yield _condition("fabric-degraded", Severity.DEGRADED)
    if fabric is not None and fabric.misconfigured:
        unknown = f"reason {fabric.misconfigured}"
        reason = facts.FABRIC_FAULTS.get(fabric.misconfigured, unknown)
        yield _condition("fabric-misconfigured", Severity.DEGRADED, detail=reason)
    ports = read_ports(nvml, handle)
    # Cards with bridges have links that lead nowhere; behind switches all must work. Where none
    # works, only the fabric tells that there are switches.
    if ports.dark and (ports.switched or fabric is not None):
        total = ports.switched + ports.dark
        yield _condition("nvlink-down", Severity.DEGRADED, detail=f"{ports.dark} of {total}")


def _of_event(
    event: Evidence, asked: int | None, now_s: float, ignored: Collection[int]
) -> Iterator[Condition]:
    number = xid.number_of(event.code)
    if number is None or number in ignored:
        return
    fault = xid.fault_of(number)
    severity, scope = fault.severity, Scope.DEVICE
    if fault.action in {xid.Action.RESET, xid.Action.REBOOT}:
        # The driver knows best what is still to be done; a fault that is mended is only told.
        severity = Severity.DEGRADED if asked in _HARMLESS else Severity.FATAL
        scope = Scope.TREE
    elif event.last_s is not None and now_s - event.last_s > FADE_S:
        return
    times = "" if event.count == 1 else f", {event.count} times"
    text = f"XID {number}{times}: {fault.action}"
    yield Condition(code=event.code, severity=severity, scope=scope, message=text)
