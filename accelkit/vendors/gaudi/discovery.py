"""Every Gaudi card of a host, one fault at a time. Not here: where its driver shows it."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from accelkit import (
    Device,
    Host,
    ModelError,
    PciFunction,
    SourceError,
    Unreadable,
    Vendor,
    Version,
    dns_label,
)
from accelkit.vendors.gaudi import facts, software
from accelkit.vendors.gaudi.cards import Card, card_at, names_elsewhere

_KERNEL_LOG = "see the kernel log for messages of habanalabs"


def discover_all(
    vendor: Vendor, host: Host, functions: Iterable[PciFunction]
) -> Iterator[Device | Unreadable]:
    """Devices and unreadables, by PCI address.

    Args:
        vendor: Makes the devices.
        host: The door.
        functions: PCI functions of the maker, by address.
    """

    @cache
    def elsewhere() -> dict[str, str]:
        return names_elsewhere(host)

    for function in functions:
        try:
            if function.driver not in facts.FOREIGN_DRIVERS:
                yield _found(vendor, function, elsewhere)
        except SourceError as error:
            yield Unreadable(
                subject=function.address,
                code=error.code,
                reason=str(error),
                remedy=error.remedy or _KERNEL_LOG,
            )
        except (ModelError, ValueError) as error:
            yield Unreadable(
                subject=function.address, code="unreadable", reason=str(error), remedy=_KERNEL_LOG
            )


def _found(
    vendor: Vendor, function: PciFunction, elsewhere: Callable[[], dict[str, str]]
) -> Device | Unreadable:
    driver = function.driver
    if driver != facts.DRIVER:
        return Unreadable(
            subject=function.address,
            code="driver-not-ready",
            reason=f"it is bound to {driver}" if driver else "no driver is bound",
            remedy="bind it to habanalabs" if driver else "modprobe habanalabs",
        )
    card = card_at(function, elsewhere)
    if card is None:
        return Unreadable(
            subject=function.address,
            code="driver-not-ready",
            reason="habanalabs is bound, and shows no accelerator",
            remedy=f"it could not be started: {_KERNEL_LOG}",
        )
    nodes = card.nodes()
    if missing := [node.on_host for node in nodes if not function.host.exists(node.on_host)]:
        return Unreadable(
            subject=function.address,
            code="node-missing",
            reason=f"{', '.join(missing)} not there",
            remedy="wait for udev, or reload habanalabs",
        )
    return _device(vendor, card)


def _device(vendor: Vendor, card: Card) -> Device:
    function = card.function
    number = function.id("device")
    generation = facts.GENERATIONS.get(number)
    kind = card.text("device_type")
    return vendor.device(
        # As Intel's own driver for claims names it. The driver tells no serial number, but to
        # whoever opens the card.
        f"{dns_label(function.address)}-{number:#06x}",
        kind="gaudi",
        product=generation.name if generation else kind or f"Gaudi {number:#06x}",
        locality=function.locality,
        nodes=card.nodes(),
        attributes=_attributes(card, kind),
        capacity={"memory": generation.memory} if generation else {},
        # One process at a time can open a card (hl_device_open: EBUSY): shares would fail.
        sharing=frozenset(),
        aliases={card.name},
        handle=card.name,
    )


def _attributes(card: Card, kind: str | None) -> dict[str, int | str | Version]:
    found: dict[str, int | str | Version] = {}
    module = card.number("module_id", facts.MOST_MODULES)
    if module is not None:
        found["moduleId"] = module
    if kind is not None:
        found["deviceType"] = kind
        found["formFactor"] = "PCIe" if kind.endswith(facts.PCIE_CARDS) else "OAM"
    if (firmware := card.text("fw_os_ver")) is not None:
        found["firmwareVersion"] = firmware
    if (driver := software.as_version(software.of_card(card))) is not None:
        found["driverVersion"] = driver
    return found
