"""Chips as the kernel shows them: PCI functions, VFIO groups, accel nodes. Not here: slices."""

import re
from collections import defaultdict
from collections.abc import Sequence

import attrs

from accelkit import Host, NotThere, PciFunction, PciMatch, pci_functions
from accelkit.vendors.tpu.facts import (
    CONTAINER,
    GENERATIONS,
    PCI_VENDOR,
    VFIO_DRIVER,
    Generation,
)

HARDWARE = (PciMatch(vendor=PCI_VENDOR, devices=tuple({g.device: None for g in GENERATIONS})),)
GROUPS = "/sys/kernel/iommu_groups"
"""Linux, Documentation/ABI/testing/sysfs-kernel-iommu_groups."""
ACCEL_CLASS = "/sys/class/accel"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_ACCEL = re.compile(r"accel(0|[1-9][0-9]{0,8})")


@attrs.frozen(kw_only=True)
class Chip:
    """One chip: a PCI device, each function of which is a core."""

    place: str
    """Domain, bus and device: 0000:00:04."""
    generation: Generation
    functions: tuple[PciFunction, ...]

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(function.address for function in self.functions)


class Unready(Exception):
    """A chip that cannot be used as it is.

    Args:
        reason: Why.
        remedy: What to do next.
        code: Of the problem.
    """

    def __init__(self, reason: str, *, remedy: str = "", code: str = "driver-not-ready") -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.code = code


def read_chips(host: Host) -> tuple[Chip, ...]:
    """All chips of the host by PCI address, whatever state they are in."""
    found: dict[str, list[PciFunction]] = defaultdict(list)
    for function in pci_functions(host, HARDWARE):
        found[_place(function)].append(function)
    chips = (read_chip(functions) for _, functions in sorted(found.items()))
    return tuple(chip for chip in chips if chip is not None)


def read_chip(functions: Sequence[PciFunction]) -> Chip | None:
    """The chip of these functions, those of them that are there; None: it is gone, or none."""
    kinds = {f: kind for f in functions if (kind := _generation(f)) is not None}
    if not kinds:
        return None
    first = min(kinds, key=lambda f: f.address)
    ours = sorted((f for f in kinds if kinds[f] == kinds[first]), key=lambda f: f.address)
    return Chip(place=_place(first), generation=kinds[first], functions=tuple(ours))


def is_ours(function: PciFunction) -> bool:
    """Whether the function is there, and of the maker.

    Raises:
        SourceError: Could not be known.
    """
    try:
        return function.id("vendor") == PCI_VENDOR
    except NotThere:
        return False


def _place(function: PciFunction) -> str:
    return function.address.rpartition(".")[0]


def _generation(function: PciFunction) -> Generation | None:
    """What the function is a part of; None: it is gone, or of no generation that is known.

    Raises:
        SourceError: Could not be known.
    """
    try:
        device = function.id("device")
        several = [g for g in GENERATIONS if g.device == device]
        # Only where generations share an id is another file asked: it is one more that may fail.
        subsystem = function.id("subsystem_device") if len(several) > 1 else None
    except NotThere:
        return None
    return next((g for g in several if g.subsystem == subsystem), None)


def nodes_of(host: Host, chip: Chip) -> tuple[str, ...]:
    """Device files of the chip's own, one for each function.

    Raises:
        Unready: It has none as it is.
        SourceError: Could not be known.
    """
    if len(chip.functions) != chip.generation.functions:
        raise Unready(
            f"only {len(chip.functions)} of its {chip.generation.functions} functions is there",
            remedy="look for the other one in the kernel log; a new virtual machine may help",
            code="core-missing",
        )
    if chip.generation.vfio:
        return tuple(f"/dev/vfio/{_bound_group(host, function)}" for function in chip.functions)
    return tuple(f"/dev/{_accel(host, function)}" for function in chip.functions)


def shared_nodes(chip: Chip) -> tuple[str, ...]:
    """Device files that the chip's users need and that are not its own."""
    return (CONTAINER,) if chip.generation.vfio else ()


def _bound_group(host: Host, function: PciFunction) -> str:
    if (driver := function.driver) != VFIO_DRIVER:
        bound = "no driver is bound" if driver is None else f"{shown(driver)} is bound"
        raise Unready(
            f"{bound} to {function.address}, and not {VFIO_DRIVER}",
            remedy="take the virtual machine image for this TPU generation, "
            f"or bind it to {VFIO_DRIVER}",
        )
    return group_of(host, function)


def group_of(host: Host, function: PciFunction) -> str:
    """The number of the function's IOMMU group.

    By the function's own link or, where that is missing, by the members of all groups.

    Raises:
        Unready: It is in none.
    """
    try:
        group = host.resolve(function.path("iommu_group")).rpartition("/")[2]
    except NotThere:
        group = ""
    if _NUMBER.fullmatch(group):
        return group
    for name in host.names(GROUPS):
        if _NUMBER.fullmatch(name) and host.exists(f"{GROUPS}/{name}/devices/{function.address}"):
            return name
    raise Unready(
        f"{function.address} is in no IOMMU group",
        remedy="start the kernel with an IOMMU",
        code="no-iommu-group",
    )


def members_of(host: Host, group: str) -> tuple[str, ...]:
    """Addresses of the functions in an IOMMU group."""
    return host.names(f"{GROUPS}/{group}/devices")


def accel_folder(host: Host, function: PciFunction) -> str | None:
    """The folder of the function's accelN in sysfs; None: no driver has made one.

    By the function's own folder or, where that is missing, by the class.
    """
    for name in host.names(function.path("accel")):
        if _ACCEL.fullmatch(name):
            return function.path(f"accel/{name}")
    for name in host.names(ACCEL_CLASS):
        if _ACCEL.fullmatch(name):
            try:
                home = host.resolve(f"{ACCEL_CLASS}/{name}/device")
            except NotThere:
                continue
            if home.rpartition("/")[2] == function.address:
                return f"{ACCEL_CLASS}/{name}"
    return None


def _accel(host: Host, function: PciFunction) -> str:
    folder = accel_folder(host, function)
    if folder is None:
        driver = function.driver
        bound = "no driver is bound to it" if driver is None else f"{shown(driver)} has made none"
        raise Unready(
            f"{function.address} has no /dev/accelN: {bound}",
            remedy="take the virtual machine image for this TPU generation",
        )
    return folder.rpartition("/")[2]


def shown(name: str | None) -> str:
    """A driver's name as a message may have it."""
    return name[:40] if name and name.isprintable() else "something"
