"""What is there: chips, their cores, and functions without a driver. Not here: their health."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from accelkit import (
    Device,
    DriverNotReady,
    Host,
    Locality,
    ModelError,
    NotThere,
    PciFunction,
    SourceError,
    Unreadable,
    Vendor,
    Version,
)
from accelkit.vendors.neuron import chips, devices, facts, server
from accelkit.vendors.neuron.chips import Chip
from accelkit.vendors.neuron.lnc import read_lnc
from accelkit.vendors.neuron.places import Places


def discover(
    vendor: Vendor, host: Host, functions: Sequence[PciFunction], places: Places
) -> Iterator[Device | Unreadable]:
    """Every chip and core; chips whose driver is not there by their PCI addresses."""
    drivers = {function.address: function.driver for function in functions}
    ours = [f for f in functions if drivers[f.address] == facts.DRIVER]
    found = [*chips.read_chips(host)]
    for function in functions:
        # Those with another driver are meant for somebody else, as for a virtual machine.
        if drivers[function.address] is None or (function in ours and not found):
            yield _not_ready(function.address, bound=function in ours)
    yield from (chip for chip in found if isinstance(chip, Unreadable))
    there = [_known(chip, functions) for chip in found if isinstance(chip, Chip)]
    yield from _devices(vendor, host, there, places.of(host, there, ours))


def _not_ready(address: str, *, bound: bool) -> Unreadable:
    reason = "its driver shows no chips" if bound else "no driver is bound"
    return Unreadable(
        subject=address,
        code=DriverNotReady.code,
        reason=reason,
        remedy="modprobe neuron; " + facts.KERNEL_LOG,
    )


def _known(chip: Chip, functions: Sequence[PciFunction]) -> Chip:
    """*chip* with a name: older drivers do not say what it is, and chips of a host are alike."""
    if chip.product is not None:
        return chip
    for family in facts.FAMILIES.values():
        if functions and all(_device_of(function) in family.pci for function in functions):
            return attrs.evolve(chip, product=family.name)
    return chip


def is_chip(function: PciFunction) -> bool:
    """Whether a function of the maker is known as a chip, or is one because the driver took it."""
    return _device_of(function) in facts.PCI_DEVICES or function.driver == facts.DRIVER


def _device_of(function: PciFunction) -> int | None:
    try:
        return function.id("device")
    except SourceError:
        return None


def _devices(
    vendor: Vendor, host: Host, there: Sequence[Chip], places: Mapping[int, Locality]
) -> Iterator[Device | Unreadable]:
    lnc, why = _lnc(host)
    shape = devices.shape_of(there)
    common = {**_versions(host), **server.attributes(host)}
    for chip in there:
        can = _has_lnc(host, chip)
        if can and lnc is None:
            yield Unreadable(
                subject=devices.name_of(chip.serial),
                code="lnc-unknown",
                reason=f"how many cores it has cannot be known: {why}",
                remedy=why.remedy if why else "",
            )
            continue
        also = {} if shape is None else {"topology": shape}
        torus = devices.places_in_torus(chip) if shape == "torus" else {}
        whole = devices.chip_device(
            vendor,
            chip,
            places.get(chip.index, Locality()),
            lnc if can else None,
            {**common, **also, **torus},
        )
        yield whole
        yield from devices.core_devices(vendor, whole)


def _lnc(host: Host) -> tuple[int | None, SourceError | None]:
    try:
        return read_lnc(host), None
    except SourceError as error:
        return None, error


def _has_lnc(host: Host, chip: Chip) -> bool:
    """Whether cores of *chip* can be joined; of a sort not known here where the host says so."""
    if chip.family is None:
        return host.exists(facts.LNC_FILE)
    return chip.family.lnc


def _versions(host: Host) -> Mapping[str, Version]:
    version = driver_version(host)
    return {} if version is None else {"driverVersion": version}


def driver_version(host: Host) -> Version | None:
    """The version of the driver that is loaded; None: it is not, or does not say."""
    try:
        text = driver_text(host)
        return None if text is None else Version.parse(text)
    except (ModelError, SourceError):
        return None


def driver_text(host: Host) -> str | None:
    """The same as the driver writes it."""
    try:
        text = host.read(facts.VERSION, 32).strip()
    except NotThere:
        return None
    return text if text.isprintable() and text else None
