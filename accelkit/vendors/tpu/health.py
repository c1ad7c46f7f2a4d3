"""What is wrong with a chip now. Not here: how events are heard."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from accelkit import (
    Condition,
    Device,
    Evidence,
    Host,
    NotThere,
    PciFunction,
    Severity,
    SourceError,
)
from accelkit.vendors.tpu import kernel
from accelkit.vendors.tpu.chips import (
    Chip,
    Unready,
    accel_folder,
    members_of,
    nodes_of,
    shared_nodes,
    shown,
)
from accelkit.vendors.tpu.facts import STATUS

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "node-missing": "A device file of the chip is not there.",
        "not-ready": "The chip has lost its driver, its IOMMU group or one of its functions.",
        "group-shared": "Another driver has a function of its IOMMU group: nobody can open it.",
        "chip-dead": "Its driver says that it does not answer.",
        "chip-lamed": "Its driver could not bring up all of it.",
        "driver-leaving": "Its driver is being unloaded.",
        "link-narrow": "Its PCIe link has fewer lanes than it could.",
        "busy-elsewhere": "A process that is in no pod has it open, so that no pod can.",
        "slice-unknown": "Nobody says which slice the host is in, so containers cannot be told.",
        "chips-missing": "Fewer chips of the host can be used than it should have.",
        "reset-failed": "The kernel gave up waiting for it after a reset.",
        "power-lost": "The kernel could not wake it up.",
        "pcie-fatal": "A fatal error on its PCIe link.",
        "pcie-error": "An error on its PCIe link that could not be corrected.",
    }
)
"""Codes of all conditions, each with what it means; the last four are heard from the kernel."""

_SEVERITIES = MappingProxyType(
    {"chip-dead": Severity.FATAL, "chip-lamed": Severity.DEGRADED, "driver-leaving": Severity.FATAL}
)


def condition(code: str, severity: Severity, message: str = "") -> Condition:
    return Condition(code=code, severity=severity, message=message or CONDITIONS[code])


def read_conditions(
    host: Host, chip: Chip, device: Device, evidence: tuple[Evidence, ...]
) -> Iterator[Condition]:
    """What is wrong with *chip*, as the kernel shows it.

    Raises:
        SourceError: Could not be known.
    """
    try:
        nodes = nodes_of(host, chip)
    except Unready as error:
        yield condition("not-ready", Severity.FATAL, str(error))
        return
    missing = [path for path in (*shared_nodes(chip), *nodes) if _is_no_node(host, path)]
    if missing:
        yield condition("node-missing", Severity.FATAL, f"{', '.join(missing)} is not there")
    if chip.generation.vfio:
        yield from _groups(host, chip, nodes)
    else:
        yield from _status(host, chip)
    yield from _link(chip)
    yield from _slice(device)
    yield from _heard(device, evidence)


def _slice(device: Device) -> Iterator[Condition]:
    """What discovery found out about the host as a whole."""
    if "topology" not in device.attributes:
        yield condition("slice-unknown", Severity.FATAL)
    elif "index" not in device.attributes:
        # The host's part of a slice of several is used as a whole, or not at all.
        alone = device.attributes.get("hosts") == 1
        yield condition("chips-missing", Severity.DEGRADED if alone else Severity.FATAL)


def _is_no_node(host: Host, path: str) -> bool:
    found = host.stat(path)
    return found is None or found.kind != "c"


def _groups(host: Host, chip: Chip, nodes: Iterable[str]) -> Iterator[Condition]:
    """A group can be opened only if nobody else drives a function of it.

    Source:
        Linux, Documentation/driver-api/vfio.rst, "Groups, Devices, and IOMMUs".
    """
    strangers: list[str] = []
    for group in dict.fromkeys(path.rpartition("/")[2] for path in nodes):
        for address in members_of(host, group):
            driver = PciFunction(address=address, host=host).driver
            if address not in chip.addresses and driver not in _HARMLESS:
                strangers.append(f"{address} ({shown(driver)})")
    if strangers:
        text = ", ".join(strangers)[:200]
        yield condition("group-shared", Severity.FATAL, f"its IOMMU group has {text}, too")


_HARMLESS = frozenset({None, "vfio-pci", "pci-stub", "pcieport"})
"""Drivers that keep nobody from using a group. Source: Linux, drivers/vfio/vfio.c."""


def _status(host: Host, chip: Chip) -> Iterator[Condition]:
    for function in chip.functions:
        folder = accel_folder(host, function)
        try:
            status = host.read(f"{folder}/status").strip()
        except NotThere:  # not every version of the driver says it
            continue
        if (code := STATUS.get(status)) is not None:
            yield condition(code, _SEVERITIES[code])


def _link(chip: Chip) -> Iterator[Condition]:
    for function in chip.functions[:1]:
        lanes, most = _lanes(function, "current_link_width"), _lanes(function, "max_link_width")
        # A link that is down has width 0, and one that nobody knows about 255.
        if 0 < lanes < most < _UNKNOWN_LANES:
            text = f"its PCIe link has {lanes} of {most} lanes"
            yield condition("link-narrow", Severity.DEGRADED, text)


_UNKNOWN_LANES = 255


def _lanes(function: PciFunction, name: str) -> int:
    try:
        text = function.read(name).strip()
    except SourceError:  # what is not told of its link says nothing against a chip
        return 0
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= len("255") else 0


def _heard(device: Device, evidence: tuple[Evidence, ...]) -> Iterator[Condition]:
    told: dict[str, int] = {}
    for event in evidence:
        if event.subject in {*device.aliases, device.id.name} and event.code in kernel.SEVERITIES:
            told[event.code] = told.get(event.code, 0) + event.count
    for code, times in sorted(told.items()):
        count = "" if times == 1 else f" ({times} times)"
        yield condition(code, kernel.SEVERITIES[code], f"{CONDITIONS[code]}{count}")
