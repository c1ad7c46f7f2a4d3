"""What is wrong with a chip or a core now. Not here: what the kernel log says."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from accelkit import (
    AccessDenied,
    Condition,
    Device,
    Evidence,
    Host,
    NotThere,
    Placement,
    Scope,
    Severity,
    SourceError,
)
from accelkit.vendors.neuron import chips, facts, kernel
from accelkit.vendors.neuron.counters import read_counter
from accelkit.vendors.neuron.devices import name_of

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "resetting": "The driver is resetting the chip.",
        "reset-failed": "The last reset of the chip failed.",
        "sram-ecc-uncorrected": "On-chip memory had errors that could not be corrected.",
        "mem-ecc-uncorrected": "Memory had errors that can be neither corrected nor repaired.",
        "mem-ecc-repairable": "Defective memory is repaired when the driver is loaded anew.",
        "core-uncorrectable": "Programs met an uncorrectable error of the core.",
        "core-memory-uncorrectable": "Programs met an uncorrectable error of memory on the core.",
        "core-dma-aborted": "Transfers of programs on the core were aborted.",
        "core-memory-repairable": "Programs met a repairable error of memory on the core.",
        "core-collectives-failed": "Collective operations failed on the core, or elsewhere.",
        **dict.fromkeys(kernel.CODES, "The runtime reported it in the kernel log."),
        kernel.DUPLICATE: "Two chips say that they are the same: the driver unloads itself.",
    }
)
"""Codes of all conditions, each with what it means."""

_ECC = (
    ("sram_ecc_uncorrected", "sram-ecc-uncorrected", Severity.FATAL),
    ("mem_ecc_uncorrected", "mem-ecc-uncorrected", Severity.FATAL),
    ("mem_ecc_repairable_uncorrected", "mem-ecc-repairable", Severity.DEGRADED),
)
"""Files below stats/hardware. Source: ecc_attrs_info_tbl in neuron_sysfs_metrics.c; the
repairable ones are waiting for a repair (nsysfsmetric_get_hbm_error_count)."""
_CORE = (
    ("hw_nc_ue_error", "core-uncorrectable", Severity.FATAL),
    ("hw_hbm_ue_error", "core-memory-uncorrectable", Severity.FATAL),
    ("hw_dma_abort_error", "core-dma-aborted", Severity.FATAL),
    ("hw_repairable_hbm_ue_error", "core-memory-repairable", Severity.DEGRADED),
    ("hw_collectives_error", "core-collectives-failed", Severity.DEGRADED),
)
"""Folders below neuron_core<k>/stats/status. Source: status_counter_nodes_info_tbl in
neuron_sysfs_metrics.c; statuses 1200 to 1205 of the Neuron Runtime."""
_RESET = {"0": "resetting", "2": "reset-failed"}
"""Source: enum neuron_device_state in neuron_device.h; 1 is ready."""


def read_conditions(
    host: Host, device: Device, evidence: tuple[Evidence, ...]
) -> Iterator[Condition]:
    """What is wrong with *device*; of a core only what is its own.

    Raises:
        SourceError: The chip could not be asked.
    """
    there = chips.folder(find_chip(host, device))
    if device.parent is None:
        yield from _of_chip(host, there)
        yield from _heard(device, evidence)
    yield from _of_cores(host, there, _own_cores(device))


def find_chip(host: Host, device: Device) -> int:
    """The number of the chip that *device* is, or is a part of: another one may have its old one.

    Raises:
        SourceError: It is not there, or does not say who it is.
    """
    known = chips.index_of(device.handle)
    first: tuple[int, ...] = () if known is None else (known,)
    for index in dict.fromkeys((*first, *chips.indices(host))):
        try:
            serial = chips.read_serial(host, index)
        except SourceError:
            if index == known:
                raise
            continue
        if name_of(serial) == device.root.name:
            return index
    raise SourceError(f"{device.root}: the driver shows no such chip", remedy=facts.KERNEL_LOG)


def _own_cores(device: Device) -> range:
    """Physical cores of *device*."""
    place: Placement | None = device.placement
    return range(device.slots) if place is None else place.slots


def _of_chip(host: Host, there: str) -> Iterator[Condition]:
    try:
        state = host.read(f"{there}/reset", 64).strip()
    except (AccessDenied, NotThere):  # for root only
        state = ""
    if state in _RESET:
        yield _condition(_RESET[state], Severity.FATAL, Scope.TREE)
    for name, code, severity in _ECC:
        if count := read_counter(host, f"{there}/stats/hardware/{name}"):
            yield _condition(code, severity, Scope.TREE, f"{count} counted")


def _of_cores(host: Host, there: str, cores: range) -> Iterator[Condition]:
    for name, code, severity in _CORE:
        counts = {
            core: count
            for core in cores
            if (count := read_counter(host, f"{there}/neuron_core{core}/stats/status/{name}"))
        }
        if counts:
            told = ", ".join(f"{count} on core {core}" for core, count in counts.items())
            yield _condition(code, severity, Scope.DEVICE, f"{told} since the driver was loaded")


def _heard(device: Device, evidence: tuple[Evidence, ...]) -> Iterator[Condition]:
    """What the kernel log said of the chip in this boot: nothing mends it but another chip."""
    severities = dict(kernel.HARDWARE.values())
    severities |= {kernel.OTHER: Severity.DEGRADED, kernel.DUPLICATE: Severity.DEGRADED}
    # Of lines that name no chip nobody knows which one they mean.
    own = {device.id.name, *device.aliases}
    for event in evidence:
        if event.code in severities:
            severity = severities[event.code] if event.subject in own else Severity.DEGRADED
            core = event.data.get("core")
            times = f"{event.count} times" if event.count > 1 else "once"
            text = f"{event.data.get('error', event.code)} {times}" + (
                f", on core {core}" if core else ""
            )
            yield _condition(event.code, severity, Scope.TREE, text)


def _condition(
    code: str, severity: Severity, scope: Scope = Scope.DEVICE, message: str = ""
) -> Condition:
    text = f"{CONDITIONS[code]} ({message})" if message else CONDITIONS[code]
    return Condition(code=code, severity=severity, scope=scope, message=text)
