"""Everything of Intel's GPUs on a host, one fault at a time. Not here: how they are."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import attrs

from accelkit import (
    Device,
    FrozenMap,
    ModelError,
    NotThere,
    PciFunction,
    SourceError,
    Unreadable,
    Vendor,
    Version,
    dns_label,
)
from accelkit.vendors.intel import cards, facts, sriov


class Offered(StrEnum):
    """What of a GPU with virtual functions may be handed out."""

    VF = "vf"
    PF = "pf"
    BOTH = "both"


def discover_all(
    vendor: Vendor, functions: Iterable[PciFunction], software: cards.Software, offered: Offered
) -> Iterator[Device | Unreadable]:
    """Devices and unreadables, each GPU before its virtual functions.

    Args:
        vendor: Makes the devices.
        functions: All of Intel's display controllers, virtual ones among them.
        software: Versions of the drivers.
        offered: Of GPUs with virtual functions.
    """
    for function in functions:
        try:
            if not function.has("physfn"):
                yield from [*_gpu(vendor, function, software, offered)]
        except NotThere as error:
            if function.has("vendor"):  # else it has just gone
                yield _unreadable(function.address, error)
        except (SourceError, ModelError) as error:
            yield _unreadable(function.address, error)


def _unreadable(subject: str, error: SourceError | ModelError) -> Unreadable:
    return Unreadable(subject=subject, code="unreadable", reason=str(error), remedy=error.remedy)


def name_of(function: PciFunction) -> str:
    """Place and PCI device id: sysfs shows no serial number.

    The same as what Intel's own DRA driver calls it.
    """
    return dns_label(f"{function.address}-0x{cards.device_id(function):04x}")


def why_not(function: PciFunction) -> Unreadable | None:
    """What keeps a GPU from being served; None: nothing does."""
    driver = function.driver
    if driver not in facts.DRIVERS:
        return _driverless(function, driver)
    if cards.minors(function):
        return None
    if function.has("survivability_mode"):
        return Unreadable(
            subject=function.address,
            code="survivability-mode",
            reason="its firmware is damaged, and the driver lets it be repaired only",
            remedy="flash its firmware, then reboot",
        )
    return Unreadable(
        subject=function.address,
        code="driver-not-ready",
        reason=f"{driver} is bound and shows no device files: {function.path('drm')} has none",
        remedy="see dmesg for what the driver says at its start; firmware files may be missing",
    )


def _driverless(function: PciFunction, driver: str | None) -> Unreadable:
    if driver is not None:
        reason, remedy = f"it is bound to {driver}", "bind it to i915 or xe"
    else:
        number = f"{cards.device_id(function):04x}"
        reason = "no driver is bound"
        remedy = (
            "modprobe xe or i915; a kernel that is older than the GPU needs xe.force_probe="
            f"{number} or i915.force_probe={number}"
        )
    return Unreadable(
        subject=function.address, code="driver-not-ready", reason=reason, remedy=remedy
    )


def _gpu(
    vendor: Vendor, function: PciFunction, software: cards.Software, offered: Offered
) -> Iterator[Device | Unreadable]:
    if function.driver in facts.PASSED_ON:
        return
    if (problem := why_not(function)) is not None:
        yield problem
        return
    whole = _whole(vendor, function, software)
    count = sriov.count_of(function)
    if not count:
        yield whole
        return
    yield attrs.evolve(whole, usable=offered is not Offered.VF)
    profile = next(p for p in whole.profiles if p.mode == whole.mode)
    for position, virtual in sriov.virtual_functions(function):
        part = vendor.partition(whole, profile, position)
        try:
            yield _part(part, function, position, virtual, offered)
        except SourceError as error:
            yield _unreadable(part.id.name, error)


def _whole(vendor: Vendor, function: PciFunction, software: cards.Software) -> Device:
    number = cards.device_id(function)
    model = facts.model_of(number)
    driver = function.driver or ""
    memory = cards.memory_of(function, model)
    total, count = sriov.total_of(function), sriov.count_of(function)
    shown: dict[str, bool | int | str | Version] = {
        "family": model.family,
        "driver": driver,
        "type": "gpu",
        "pciId": f"0x{number:04x}",
        "pciAddress": function.address,
        "sriov": total > 0,
        "integrated": model.integrated,
        "tiles": cards.tiles_of(function, model),
    }
    if (version := _version(software, driver)) is not None:
        shown["driverVersion"] = version
    return vendor.device(
        name_of(function),
        kind=driver,
        product=f"Intel {model.name}",
        locality=function.locality,
        nodes=cards.nodes_of(function),
        attributes=shown,
        own={"pciAddress", "sriov"},
        capacity={} if memory is None else {"memory": memory},
        slots=total,
        profiles=sriov.profiles_of(total, count, memory) if total else (),
        modes=sriov.modes_of(total, count) if total else (),
        mode=sriov.mode_name(count) if total else None,
        aliases={function.address},
        handle=function.address,
    )


def _version(software: cards.Software, driver: str) -> Version | None:
    """Of the driver; those that come with the kernel have its version."""
    text = software.modules.get(driver, software.kernel)
    try:
        return None if text is None else Version.parse(text)
    except ModelError:
        return None


def _part(
    part: Device,
    physical: PciFunction,
    position: int,
    virtual: PciFunction | None,
    offered: Offered,
) -> Device | Unreadable:
    """A virtual function; one that was given to a virtual machine is there and not usable."""
    if virtual is None:
        return Unreadable(
            subject=part.id.name,
            code="unreadable",
            reason=f"{physical.path(f'virtfn{position}')} does not lead to it",
        )
    passed_on = virtual.driver in facts.PASSED_ON
    if not passed_on and (problem := why_not(virtual)) is not None:
        return attrs.evolve(problem, subject=part.id.name)
    memory = sriov.memory_of_vf(physical, position)
    return attrs.evolve(
        part,
        usable=not passed_on and offered is not Offered.PF,
        nodes=() if passed_on else cards.nodes_of(virtual),
        attributes=FrozenMap({**part.attributes, "pciAddress": virtual.address}),
        capacity=part.capacity if memory is None else FrozenMap({"memory": memory}),
        aliases=frozenset({virtual.address}),
        handle=virtual.address,
    )
