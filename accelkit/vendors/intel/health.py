"""What is wrong with a GPU now. Not here: how events are heard."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from accelkit import Condition, Device, Evidence, Host, NotThere, PciFunction, Scope, Severity
from accelkit.vendors.intel import events, facts, sensors
from accelkit.vendors.intel.reading import text_at

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "bus-lost": "The GPU does not answer on its bus; it is back after a reboot, or never.",
        "survivability-mode": "The firmware is damaged; it has to be flashed.",
        "gpu-health-critical": "The GPU says that it is in a critical state.",
        "gpu-health-warning": "The GPU says that it is not quite well.",
        "gpu-health-unknown": "The GPU says something about its health that is not known here.",
        "wedged": "The driver has given the GPU up: nothing runs on it until it is brought back.",
        "hang-recovered": "The GPU hung since boot, and the driver has recovered it.",
        "gpu-hang": "Programs hung on the GPU since boot.",
        "devcoredump": "The driver keeps a dump of what happened last.",
        "thermal-throttle": "The GPU runs slower because something on it is too hot.",
        "power-throttle": "The GPU runs slower because it would need too much power.",
        "hot": "A sensor shows more than what Intel's tools allow.",
    }
)
"""Codes of all conditions, each with what it means."""

_STATES = MappingProxyType(
    {
        "warning": ("gpu-health-warning", Severity.DEGRADED, Scope.DEVICE),
        "critical": ("gpu-health-critical", Severity.FATAL, Scope.TREE),
    }
)
"""Source: gpu_health of xe, Linux 7.3; shown by parts that can tell."""
_UNHEARD_OF = ("gpu-health-unknown", Severity.INFO, Scope.DEVICE)

_HEAT = frozenset({"thermal", "prochot", "vr_thermalert", "ratl"})
"""Linux, drivers/gpu/drm/xe/xe_gt_throttle.c: ratl is the running average of the temperature."""
_SIGNATURE_BYTES = 4

_WAYS = MappingProxyType(
    {
        "rebind": "unbind and bind its driver",
        "bus-reset": "reset it by writing 1 to its file reset, and bind its driver again",
        "vendor-specific": "see survivability_mode; its firmware may have to be flashed",
    }
)
"""How to bring a wedged GPU back. Source: Linux, Documentation/gpu/drm-uapi.rst."""


def _condition(
    code: str, severity: Severity, scope: Scope = Scope.DEVICE, message: str = ""
) -> Condition:
    return Condition(code=code, severity=severity, scope=scope, message=message or CONDITIONS[code])


def read_conditions(
    host: Host, device: Device, evidence: tuple[Evidence, ...]
) -> Iterator[Condition]:
    """What is wrong with *device*; of a virtual function only what the kernel told of it.

    Raises:
        SourceError: It could not be asked, or it is gone.
    """
    function = PciFunction(address=str(device.handle or ""), host=host)
    if device.handle is None or not function.has("vendor"):
        raise NotThere(f"{device.id}: its PCI function is gone", vendor="intel")
    if device.parent is None and not sensors.is_asleep(function):
        if _is_off_the_bus(function):
            yield _condition("bus-lost", Severity.FATAL, Scope.TREE)
            return
        yield from _of_files(function)
    own = {e.code: e for e in evidence if e.subject in device.aliases}
    # A virtual function has a driver of its own: its GPU and the others go on without it.
    scope = Scope.TREE if device.parent is None else Scope.DEVICE
    yield from _of_evidence(own, scope)


def _is_off_the_bus(function: PciFunction) -> bool:
    """Whether its registers read as all ones, which no function that is there does."""
    try:
        signature = function.host.read_bytes(function.path("config"), _SIGNATURE_BYTES)
    except NotThere:
        return False
    return signature == b"\xff" * _SIGNATURE_BYTES


def _of_files(function: PciFunction) -> Iterator[Condition]:
    host = function.host
    if function.has("survivability_mode"):
        yield _condition("survivability-mode", Severity.FATAL, Scope.TREE)
    state = text_at(host, function.path("gpu_health"))
    if state not in {None, "ok"}:
        yield _condition(*_STATES.get(str(state), _UNHEARD_OF))
    if function.has("devcoredump/data"):
        yield _condition("devcoredump", Severity.INFO)
    reasons = sensors.throttle_reasons(function)
    if found := sorted(reasons & _HEAT):
        yield _condition("thermal-throttle", Severity.DEGRADED, message=_because(found))
    if found := sorted(reasons - _HEAT):
        yield _condition("power-throttle", Severity.INFO, message=_because(found))
    hot = [(where, c) for where, c in sensors.temperatures(function) if c >= facts.HOT_C]
    if hot:
        text = ", ".join(f"{where} has {celsius:.0f} °C" for where, celsius in hot)
        yield _condition("hot", Severity.DEGRADED, message=text)


def _because(reasons: list[str]) -> str:
    return f"reasons: {', '.join(reasons)}"


def _of_evidence(heard: Mapping[str, Evidence], scope: Scope) -> Iterator[Condition]:
    wedged = heard.get(events.WEDGED)
    if wedged is not None and not _is_later(heard.get(events.BOUND), wedged):
        methods = wedged.data.get("methods", "").split(",")
        ways = [_WAYS.get(method, method) for method in methods if method.isprintable()]
        text = f"{CONDITIONS['wedged']} To bring it back: {'; or '.join(ways)}."
        yield _condition("wedged", Severity.FATAL, scope, text)
    elif wedged is None and events.WEDGED_LOG in heard:
        # Kernels before 6.15 tell it in their log only, and nothing tells that it is over.
        text = f"{CONDITIONS['wedged']} Nothing tells that it is back: a boot ends this."
        yield _condition("wedged", Severity.FATAL, scope, text)
    for code in (events.RECOVERED, events.HANG):
        if code in heard:
            count = heard[code].count
            yield _condition(code, Severity.INFO, message=f"{CONDITIONS[code]} ({count} times)")


def _is_later(one: Evidence | None, other: Evidence) -> bool:
    """By the number that the kernel gives its uevents; no clock decides."""
    numbers = [e.data.get("seqnum", "") if e is not None else "" for e in (one, other)]
    if not all(number.isdecimal() for number in numbers):
        return False
    return int(numbers[0]) > int(numbers[1])
