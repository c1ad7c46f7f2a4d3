"""What is wrong with a card now. Not here: what lines of the kernel log mean.

Reads files only: opening a card would keep out whoever is to use it.
"""

from collections.abc import Iterator

from accelkit import Condition, Device, Evidence, Host, NotThere, PciFunction, Severity, SourceError
from accelkit.vendors.gaudi import facts, messages
from accelkit.vendors.gaudi.cards import Card, card_at, folder_of

_MOST_RESETS = 1 << 32


def card_of(host: Host, device: Device) -> Card:
    """The card that *device* is.

    Raises:
        NotThere: It is gone, or its driver is.
        SourceError: It could not be asked.
    """
    function = PciFunction(address=device.locality.pci_address or "", host=host)
    if not function.host.exists(folder_of(function)):
        raise NotThere(
            f"{device.id}: there is no PCI function {function.address}",
            remedy="see the kernel log for why it went; power the node off and on",
        )
    driver = function.driver
    if driver != facts.DRIVER:
        raise NotThere(
            f"{device.id}: {function.path('driver')} does not lead to habanalabs",
            remedy="modprobe habanalabs",
        )
    card = card_at(function)
    if card is None:
        raise NotThere(f"{device.id}: habanalabs shows no accelerator at {function.address}")
    return card


def read_conditions(
    host: Host, device: Device, evidence: tuple[Evidence, ...]
) -> Iterator[Condition]:
    """What is wrong with *device*.

    Raises:
        SourceError: It could not be asked.
    """
    card = card_of(host, device)
    status = card.read("status")
    usable = True
    if not status:
        yield _condition("status-unknown", Severity.INFO, "it tells none")
    else:
        found = facts.STATUS.get(status.lower(), ("status-unknown", Severity.DEGRADED))
        if found is not None:
            usable = found[1] is not Severity.FATAL
            yield _condition(*found, f"status is {_shown(status)}")
    yield from _resets(card)
    yield from _link(card)
    yield from _ports(card)
    yield from messages.conditions(evidence, usable=usable)


def _resets(card: Card) -> Iterator[Condition]:
    try:
        resets = card.number("hard_reset_cnt", _MOST_RESETS)
    except SourceError:  # it would tell nothing that keeps anybody from the card
        return
    if resets:
        yield _condition("was-reset", Severity.INFO, str(resets))


def _condition(code: str, severity: Severity, detail: str) -> Condition:
    return Condition(
        code=code, severity=severity, message=f"{facts.CONDITIONS[code].rstrip('.')} ({detail})."
    )


def _shown(text: str) -> str:
    short = text[:40]
    return short if short.isprintable() else ascii(short)


def _link(card: Card) -> Iterator[Condition]:
    """A link that is less than both ends could have; what the slot cannot do is no fault.

    Source:
        Linux, Documentation/ABI/testing/sysfs-bus-pci, current_link_width and its like.
    """
    for what, code, unit in (("width", "pcie-narrow", "lanes"), ("speed", "pcie-slow", "GT/s")):
        now = _reading(card, f"current_link_{what}")
        could = _reading(card, f"max_link_{what}")
        # The function's folder lies in that of the bridge above it.
        above = _reading(card, f"max_link_{what}", bridge=True)
        if not now or not could:
            continue
        best = min(could, above) if above else could
        if now < best:
            yield _condition(code, Severity.DEGRADED, f"{now:g} of {best:g} {unit}")


def _ports(card: Card) -> Iterator[Condition]:
    """Ports to other nodes; where none has a link, nobody has plugged in cables.

    Those to other cards of the board are no network interfaces.

    Source:
        Linux, Documentation/ABI/testing/sysfs-class-net, operstate; the interfaces of
        habanalabs_en belong to the card's PCI function.
    """
    host, home = card.function.host, card.function.path("net")
    found: dict[str, str] = {}
    for name in _names(host, home):
        try:
            found[name] = host.read(f"{home}/{name}/operstate").strip()
        except SourceError:
            continue
    down = sorted(name for name, state in found.items() if state == "down")
    if down and "up" in found.values():
        yield _condition("port-down", Severity.DEGRADED, f"{len(down)} of {len(found)}")


def _names(host: Host, folder: str) -> tuple[str, ...]:
    try:
        return host.names(folder)
    except SourceError:
        return ()


def _reading(card: Card, name: str, *, bridge: bool = False) -> float | None:
    """A number of the link, as in ``16`` and ``16.0 GT/s PCIe``; None: it is not told."""
    host, function = card.function.host, card.function
    try:
        path = function.path(name)
        if bridge:
            folder = host.resolve(folder_of(function)).rpartition("/")[0]
            path = f"{folder}/{name}"
        words = host.read(path).split()
        number = float(words[0]) if words else 0.0
    except (SourceError, ValueError):
        return None
    return number if 0 < number < 1000 else None
