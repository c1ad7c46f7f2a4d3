"""What is wrong with a GPU now. Not here: what the kernel's messages mean."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType

from accelkit import (
    AccessDenied,
    Condition,
    Device,
    Evidence,
    Host,
    NotThere,
    PciFunction,
    Scope,
    Severity,
    SourceError,
)
from accelkit.vendors.amd import facts, kernel
from accelkit.vendors.amd.card import nodes_by_address, optional
from accelkit.vendors.amd.kfd import read_topology
from accelkit.vendors.amd.sensors import Temperature, read_temperatures, whole_number

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "gpu-lost": "The GPU does not answer on PCIe; it is back after a reset or a reboot.",
        "resetting": "The driver resets the GPU.",
        "reset-failed": "The driver could not reset the GPU; reload the driver or reboot.",
        "wedged": "The driver cannot recover it: reload the driver, or reset the GPU.",
        "ecc-uncorrected": "Uncorrected errors since the driver was loaded: reset the GPU.",
        "ecc-deferred": "Errors that nobody has stumbled over yet.",
        "ecc-corrected": "Errors that were corrected since the driver was loaded.",
        "hardware-error": "The kernel log tells of errors that could not be corrected.",
        "pages-exhausted": "Too many pages of memory are defective: replace the GPU.",
        "pages-pending": "Defective pages of memory are still in use.",
        "pages-failed": "Defective pages of memory could not be taken out.",
        "pages-retired": "Defective pages of memory are taken out.",
        "thermal-emergency": "It is so hot that it will shut itself down: look at its cooling.",
        "thermal-slowdown": "The GPU runs slower because it is too hot.",
        "pcie-degraded": "The GPU has fewer PCIe lanes than it could have.",
        "render-node-missing": "The driver shows no device file of it: reload the driver.",
        "partitions-missing": "KFD has fewer partitions than the mode stands for.",
        "ring-timeout": "A program's work on the GPU did not end.",
        "page-fault": "A program used memory of the GPU that is not its own.",
        "wedged-recovered": "The driver has recovered the GPU; programs on it were ended.",
        "too-hot": "The GPU was hotter than it may be.",
    }
)
"""Codes of all conditions, each with what it means."""

_LOST = b"\xff" * 4
"""What reads as the ids of a PCI function that does not answer (PCI Express Base, 2.3.2)."""
_MOST_LANES = 32
_FATAL_EVENTS = {
    kernel.RESET_FAILED: "reset-failed",
    kernel.BUS_LOST: "gpu-lost",
    kernel.WEDGED: "wedged",
    kernel.PAGES_EXHAUSTED: "pages-exhausted",
}
_MILD_EVENTS = {
    kernel.HARDWARE_ERROR: Severity.DEGRADED,
    kernel.TOO_HOT: Severity.INFO,
    kernel.RING_TIMEOUT: Severity.INFO,
    kernel.PAGE_FAULT: Severity.INFO,
    kernel.WEDGED_RECOVERED: Severity.INFO,
}
_CURES = frozenset({kernel.RESET_DONE, kernel.STARTED})


def read_conditions(
    host: Host, device: Device, evidence: tuple[Evidence, ...]
) -> Iterator[Condition]:
    """What is wrong with *device*; of a partition only what is its own.

    Raises:
        SourceError: The GPU cannot be read.
    """
    function = PciFunction(address=device.locality.pci_address or "", host=host)
    function.read("vendor")  # of a GPU that is gone nothing is known
    if device.usable:
        yield from _device_files(host, device)
    if device.parent is not None:
        return
    # Asking one that sleeps would wake it, and what it then says is not true.
    asleep = optional(function, "power/runtime_status") == "suspended"
    if not asleep and _is_lost(function):
        yield _condition("gpu-lost", Severity.FATAL, Scope.TREE)
        return
    looked = () if asleep else _looked_at(host, function, device)
    heard = _of_events(device, evidence, is_silent=lambda: not asleep and _is_silent(function))
    told: dict[str, Condition] = {}
    for condition in (*looked, *heard):
        told.setdefault(condition.code, condition)  # files and events may tell the same
    yield from told.values()


def _looked_at(host: Host, function: PciFunction, device: Device) -> Iterator[Condition]:
    yield from _memory(function)
    yield from _heat(read_temperatures(function))
    yield from _lanes(function)
    yield from _partitions(host, device)


def _condition(
    code: str, severity: Severity, scope: Scope = Scope.DEVICE, detail: str = ""
) -> Condition:
    text = f"{CONDITIONS[code].rstrip('.')} ({detail})." if detail else CONDITIONS[code]
    return Condition(code=code, severity=severity, scope=scope, message=text)


def _device_files(host: Host, device: Device) -> Iterator[Condition]:
    there = host.names(facts.CLASS_DRM)
    for node in device.nodes:
        name = node.path.rpartition("/")[2]
        if name.startswith("renderD") and name not in there:
            yield _condition("render-node-missing", Severity.FATAL, detail=node.path)


def _is_lost(function: PciFunction) -> bool:
    try:
        return function.host.read_bytes(function.path("config"), 4) == _LOST
    except NotThere:
        return False


def _memory(function: PciFunction) -> Iterator[Condition]:
    counts = _error_counts(function)
    for kind, code, severity, scope in (
        ("ue", "ecc-uncorrected", Severity.FATAL, Scope.TREE),
        ("de", "ecc-deferred", Severity.DEGRADED, Scope.DEVICE),
        ("ce", "ecc-corrected", Severity.INFO, Scope.DEVICE),
    ):
        blocks = [f"{n} in {block}" for block, n in sorted(counts.get(kind, {}).items()) if n]
        if blocks:
            yield _condition(code, severity, scope, ", ".join(blocks)[:200])
    yield from _pages(function)


def _error_counts(function: PciFunction) -> dict[str, dict[str, int]]:
    """Errors by kind and block; a block that does not answer has none."""
    found: dict[str, dict[str, int]] = {}
    for kind, block, count in read_errors(function):
        found.setdefault(kind, {})[block] = count
    return found


def read_errors(function: PciFunction) -> Iterator[tuple[str, str, int]]:
    """Kind (ue, ce, de), block and number of errors since the driver was loaded.

    Source: Linux, Documentation/gpu/amdgpu/ras.rst.
    """
    for name in function.host.names(function.path("ras")):
        block, sign, _ = name.partition("_err_count")
        if not sign:
            continue
        for line in optional(function, f"ras/{name}").splitlines():
            kind, _, count = line.partition(":")
            count = count.strip()
            if kind in {"ue", "ce", "de"} and count.isascii() and count.isdecimal():
                yield kind, block[:32], int(count[:18])


def _pages(function: PciFunction) -> Iterator[Condition]:
    lines = optional(function, "ras/gpu_vram_bad_pages").splitlines()
    flags = [line.rpartition(":")[2].strip() for line in lines if line.startswith("0x")]
    retired = flags.count("R")
    if "F" in flags:
        yield _condition("pages-failed", Severity.DEGRADED, detail=f"{flags.count('F')} pages")
    if "P" in flags:
        yield _condition("pages-pending", Severity.DEGRADED, detail=f"{flags.count('P')} pages")
    if not retired:
        return
    most = _threshold(function.host)
    if most is not None and retired >= most:
        text = f"{retired} pages are retired, and {most} may be"
        yield _condition("pages-exhausted", Severity.FATAL, Scope.TREE, text)
    else:
        yield _condition("pages-retired", Severity.INFO, detail=f"{retired} pages")


def _threshold(host: Host) -> int | None:
    """How many pages may be retired; None: the driver decides by itself.

    Source: Linux, Documentation/gpu/amdgpu/module-parameters.rst, bad_page_threshold.
    """
    with suppress(SourceError, ValueError):
        most = int(host.read(f"{facts.MODULE}/parameters/bad_page_threshold")[:10])
        return most if most > 0 else None
    return None


def _heat(temperatures: Collection[Temperature]) -> Iterator[Condition]:
    told: dict[str, list[str]] = {}
    for one in temperatures:
        text = f"{one.place} {one.celsius:g} °C"
        if one.emergency is not None and one.celsius >= one.emergency:
            told.setdefault("thermal-emergency", []).append(text)
        elif one.critical is not None and one.celsius >= one.critical:
            told.setdefault("thermal-slowdown", []).append(text)
    for code, texts in sorted(told.items()):
        fatal = code == "thermal-emergency"
        yield _condition(
            code,
            Severity.FATAL if fatal else Severity.DEGRADED,
            Scope.TREE if fatal else Scope.DEVICE,
            ", ".join(texts)[:200],
        )


def _lanes(function: PciFunction) -> Iterator[Condition]:
    now, most = (whole_number(function, f"{word}_link_width") for word in ("current", "max"))
    # Virtual machines show 0, and speeds follow the load: only lanes tell of a fault.
    if now and most and now < most <= _MOST_LANES:
        yield _condition("pcie-degraded", Severity.DEGRADED, detail=f"{now} of {most} lanes")


def _partitions(host: Host, device: Device) -> Iterator[Condition]:
    mode = next((m for m in device.modes if m.name == device.mode), None)
    address = device.locality.pci_address
    if mode is None or mode.cut is None or address is None:
        return
    found = len(nodes_by_address(read_topology(host).nodes, (address,)).get(address, {}))
    if found < mode.count:
        text = f"{found} of {mode.count} partitions"
        yield _condition("partitions-missing", Severity.DEGRADED, detail=text)


def _of_events(
    device: Device, evidence: tuple[Evidence, ...], *, is_silent: Callable[[], bool]
) -> Iterator[Condition]:
    """What the kernel has told since the last time that it told of a cure."""
    names = device.aliases | {device.id.name}
    own = {e.code: e for e in evidence if e.subject in names}
    cured = max((own[code].last for code in _CURES & own.keys()), default=None)
    for code, event in own.items():
        if not _is_open(event, cured):
            continue
        if (fatal := _FATAL_EVENTS.get(code)) is not None:
            yield _condition(fatal, Severity.FATAL, Scope.TREE)
        elif code == kernel.RESET_BEGUN and is_silent():
            yield _condition("resetting", Severity.FATAL, Scope.TREE)
        elif (mild := _MILD_EVENTS.get(code)) is not None:
            times = "" if event.count == 1 else f"{event.count} times"
            yield _condition(code, mild, detail=times)


def _is_open(event: Evidence, cured: datetime | None) -> bool:
    return cured is None or event.last > cured


def _is_silent(function: PciFunction) -> bool:
    """Whether the driver refuses to read the hardware, as it does while it resets it.

    Source: Linux, drivers/gpu/drm/amd/pm/amdgpu_pm.c: EPERM, in newer kernels EBUSY; a GPU without
    such a sensor has other errors.
    """
    try:
        function.read("gpu_busy_percent")
    except AccessDenied:
        return True
    except SourceError as error:
        return "resource busy" in str(error)
    return False
