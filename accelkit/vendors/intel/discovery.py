"""Everything of Intel's GPUs on a host, one fault at a time. Not here: how they are."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import attrs

from accelkit import (
    AccessDenied,
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
                card = cards.card_of(function)
                yield from [*_gpu(vendor, card, software, offered)]
        except NotThere as error:
            if function.has("vendor"):  # else it has just gone
                yield _unreadable(function.address, error)
        except (SourceError, ModelError) as error:
            yield _unreadable(function.address, error)


def _unreadable(subject: str, error: SourceError | ModelError) -> Unreadable:
    code = error.code if isinstance(error, AccessDenied) else "unreadable"
    return Unreadable(subject=subject, code=code, reason=str(error), remedy=error.remedy)


def name_of(function: PciFunction, number: int) -> str:
    """Place and PCI device id: sysfs shows no serial number.

    The same as what Intel's own DRA driver calls it.
    """
    return dns_label(f"{function.address}-0x{number:04x}")


def why_not(card: cards.Card) -> Unreadable | None:
    """What keeps a GPU from being served; None: nothing does."""
    function, driver = card.function, card.driver
    if driver not in facts.DRIVERS:
        return _driverless(function, driver)
    if card.served:
        return None
    if "survivability_mode" in card.files:
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
    reason = "no driver is bound" if driver is None else f"it is bound to {driver}"
    number = f"{function.id('device'):04x}"
    force = (
        f"a kernel that is older than the GPU needs xe.force_probe={number} or "
        f"i915.force_probe={number}"
    )
    loaded = [d for d in facts.DRIVERS if function.host.exists(f"/sys/module/{d}")]
    bind = f"write {function.address} to /sys/bus/pci/drivers/{' or '.join(loaded)}/bind"
    if driver is not None:
        remedy = "bind it to i915 or xe"
    elif not loaded:
        remedy = f"modprobe xe or i915; {force}"
    elif function.has("physfn"):
        remedy = f"{bind}; with sriov_drivers_autoprobe 1 the kernel does it for new ones"
    else:
        remedy = f"{bind}; {force}"
    return Unreadable(
        subject=function.address, code="driver-not-ready", reason=reason, remedy=remedy
    )


def _gpu(
    vendor: Vendor, card: cards.Card, software: cards.Software, offered: Offered
) -> Iterator[Device | Unreadable]:
    if card.passed_on:
        return
    if (problem := why_not(card)) is not None:
        yield problem
        return
    total = sriov.total_of(card.function) if "sriov_totalvfs" in card.files else 0
    count = sriov.count_of(card.function, total) if total else 0
    whole = _whole(vendor, card, software, sriov.Cut(total=total, count=count))
    if not count:
        yield whole
        return
    yield attrs.evolve(whole, usable=offered is not Offered.VF)
    profile = next(p for p in whole.profiles if p.mode == whole.mode)
    for position, virtual in sriov.virtual_functions(card.function, count):
        part = vendor.partition(whole, profile, position)
        try:
            yield _part(part, card, position, virtual, offered)
        except SourceError as error:
            yield _unreadable(part.id.name, error)


def _whole(vendor: Vendor, card: cards.Card, software: cards.Software, cut: sriov.Cut) -> Device:
    function, driver = card.function, card.driver or ""
    number = function.id("device")
    model = facts.model_of(number)
    memory = cards.memory_of(card, model)
    shown: dict[str, bool | int | str | Version] = {
        "family": model.family,
        "driver": driver,
        "type": "gpu",
        "pciId": f"0x{number:04x}",
        "pciAddress": function.address,
        "sriov": cut.total > 0,
        "integrated": model.integrated,
        "tiles": cards.tiles_of(card, model),
    }
    if (version := _version(software, driver)) is not None:
        shown["driverVersion"] = version
    return vendor.device(
        name_of(function, number),
        kind=driver,
        product=f"Intel {model.name}",
        locality=function.locality,
        nodes=card.nodes,
        attributes=shown,
        own={"pciAddress"},
        capacity={} if memory is None else {"memory": memory},
        slots=cut.total,
        profiles=sriov.profiles_of(cut, memory),
        modes=sriov.modes_of(cut),
        mode=sriov.mode_name(cut.count) if cut.total else None,
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
    physical: cards.Card,
    position: int,
    virtual: PciFunction | None,
    offered: Offered,
) -> Device | Unreadable:
    """A virtual function; one that was given to a virtual machine is there and not usable."""
    if virtual is None:
        return Unreadable(
            subject=part.id.name,
            code="unreadable",
            reason=f"{physical.function.path(f'virtfn{position}')} does not lead to it",
        )
    card = cards.card_of(virtual)
    if not card.passed_on and (problem := why_not(card)) is not None:
        return attrs.evolve(problem, subject=part.id.name)
    memory = sriov.memory_of_vf(physical, position)
    return attrs.evolve(
        part,
        usable=not card.passed_on and offered is not Offered.PF,
        nodes=() if card.passed_on else card.nodes,
        attributes=FrozenMap({**part.attributes, "pciAddress": virtual.address}),
        capacity=part.capacity if memory is None else FrozenMap({"memory": memory}),
        aliases=frozenset({virtual.address}),
        handle=virtual.address,
    )
