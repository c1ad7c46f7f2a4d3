"""What keeps Gaudi cards from being used, in words. Reads only; works without the driver."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from accelkit import (
    AccessDenied,
    DeviceId,
    Finding,
    Host,
    PciFunction,
    Severity,
    SourceError,
    file_finding,
    holders_of,
)
from accelkit.vendors.gaudi import edits, facts, software
from accelkit.vendors.gaudi.cards import Card, card_at, names_elsewhere

_KERNEL_LOG = "see dmesg for messages of habanalabs"


def diagnose(host: Host, functions: Sequence[PciFunction]) -> Iterator[Finding]:
    """All that is wrong, the cause before what follows from it."""
    if not functions:
        yield Finding(
            symptom="no Gaudi card is offered",
            suspect="hardware",
            proof=f"no PCI function of vendor {facts.PCI_VENDOR:#06x} is an accelerator in sysfs",
            remedy="check that the node has such cards and that the agent sees the host's /sys",
        )
        return
    cards: list[Card] = []

    @cache
    def elsewhere() -> dict[str, str]:
        return names_elsewhere(host)

    for function in functions:
        found = _card_or_finding(function, elsewhere)
        if isinstance(found, Finding):
            yield found
        else:
            cards.append(found)
            yield from _of_card(found)
    if cards:
        yield from _modules(cards)
        yield from _network(host, cards)
        yield from _versions(cards)
        yield from _holders(host, cards)


def _card_or_finding(
    function: PciFunction, elsewhere: Callable[[], dict[str, str]]
) -> Card | Finding:
    address = function.address
    driver = function.driver
    suspect, proof = "the habanalabs kernel module", f"{function.path('driver')} is not there"
    remedy = f"modprobe habanalabs; {_KERNEL_LOG} if that does not help"
    if driver in facts.FOREIGN_DRIVERS:
        suspect, proof = driver or "", f"{function.path('driver')} leads to {driver}"
        remedy = "bind it to habanalabs, unless a virtual machine is to have it"
    elif driver is not None and driver != facts.DRIVER:
        suspect, proof = driver, f"{function.path('driver')} leads to {driver}"
        remedy = f"blacklist {driver} and reboot"
    elif driver is not None:
        try:
            card = card_at(function, elsewhere)
        except SourceError as error:
            card, proof = None, str(error)
        else:
            proof = f"habanalabs is bound and shows no accelerator for {address}"
        if card is not None:
            return card
        suspect, remedy = "the start of the card", f"{_KERNEL_LOG}; power the node off and on"
    return Finding(
        symptom=f"Gaudi card {address} is not offered",
        suspect=suspect,
        proof=proof,
        remedy=remedy,
        sure=driver not in facts.FOREIGN_DRIVERS,
    )


def _of_card(card: Card) -> Iterator[Finding]:
    host, address = card.function.host, card.function.address
    for node in card.nodes():
        finding = file_finding(
            host,
            node.on_host,
            f"Gaudi card {address} is not offered",
            users="Gaudi cards",
            missing="wait for udev and for resets; else reload habanalabs",
            closed="let udev give it mode 0666, or run the containers with its group",
        )
        if finding is not None:
            yield finding
    yield from _status(card)


def _status(card: Card) -> Iterator[Finding]:
    """What is not readable is not broken: some tools show N/A to whoever is not root."""
    try:
        said = (card.read("status") or "").lower()
    except AccessDenied as error:
        yield Finding(
            symptom="the health of Gaudi cards is unknown",
            suspect="the rights of whoever asks",
            proof=str(error),
            remedy="run the agent as root; this says nothing of the cards",
            sure=True,
        )
        return
    except SourceError as error:
        said = f"unreadable: {error}"
    known = facts.STATUS.get(said, ("status-unknown", Severity.DEGRADED))
    if said and known is not None and known[1] is not Severity.INFO:
        yield Finding(
            symptom=f"Gaudi card {card.function.address} cannot be used",
            suspect="the card",
            proof=f"its status is {said[:80]!r}",
            remedy=f"wait for a reset to end; else {_KERNEL_LOG}, and reload it or reboot",
        )


def _modules(cards: Sequence[Card]) -> Iterator[Finding]:
    found: defaultdict[int | None, list[str]] = defaultdict(list)
    for card in cards:
        try:
            found[card.number("module_id", facts.MOST_MODULES)].append(card.function.address)
        except SourceError:
            found[None].append(card.function.address)
    for module, addresses in found.items():
        if module is None and len(cards) > 1:
            proof = f"{', '.join(addresses)} tell no module id"
        elif module is not None and len(addresses) > 1:
            proof = f"{' and '.join(addresses)} both say that they are module {module}"
        else:
            continue
        yield Finding(
            symptom="programs on several Gaudi cards do not find each other",
            suspect="module ids",
            proof=proof,
            remedy="reseat the modules, or update habanalabs and the firmware",
        )


def _network(host: Host, cards: Sequence[Card]) -> Iterator[Finding]:
    without = [c for c in cards if not host.names(c.function.path("infiniband_verbs"))]
    if without and len(cards) > 1:
        yield Finding(
            symptom="programs on several Gaudi cards are slow or fail when they communicate",
            suspect="habanalabs_cn, habanalabs_en and habanalabs_ib",
            proof=f"{len(without)} of {len(cards)} cards have no infiniband_verbs",
            remedy="modprobe habanalabs_cn habanalabs_en habanalabs_ib",
        )
    if edits.hook_program(host) is None:
        yield Finding(
            symptom="containers do not reach other nodes through the ports of Gaudi cards",
            suspect="the container hook",
            proof=f"neither {' nor '.join(facts.HOOKS)} is there",
            remedy="install habanalabs-container-runtime",
        )


def _versions(cards: Sequence[Card]) -> Iterator[Finding]:
    """Firmware, driver and what is in a container are made for each other, release by release."""
    for card in cards:
        driver = software.release_of(software.of_card(card))
        firmware = software.release_of(card.text("fw_os_ver"))
        if driver and firmware and driver != firmware:
            yield Finding(
                symptom="programs fail at their start",
                suspect="versions that do not fit",
                proof=f"{card.function.address} has firmware {firmware}, and driver {driver}",
                remedy="install driver, firmware and container images of one release",
            )
            return


def _holders(host: Host, cards: Sequence[Card]) -> Iterator[Finding]:
    """Of a card that somebody has open, the next program only says that it cannot acquire it."""
    ids = {DeviceId(vendor="gaudi", name=c.function.address): c for c in cards}
    for held in holders_of(host, {i: (card.own_node,) for i, card in ids.items()}):
        pid, card = held.holder.uid, ids[held.device]
        try:
            name = host.read(f"/proc/{pid}/comm", 64).strip()[:40]
        except SourceError:
            name = "?"
        shown = name if name.isprintable() else ascii(name)
        yield Finding(
            symptom="programs say that a device cannot be acquired (synStatus 20 or 26)",
            suspect="a process that has the card",
            proof=f"process {pid} ({shown}) has {card.own_node} open",
            remedy="end it, unless it is of the pod that has the card",
        )
