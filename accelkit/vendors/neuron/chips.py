"""Chips as the driver's files describe them. Not here: what is made of them."""

import re
from collections import Counter
from collections.abc import Iterator

import attrs

from accelkit import AccessDenied, Host, NotThere, SourceError, Unreadable
from accelkit.vendors.neuron import facts

_FOLDER = re.compile(r"neuron(0|[1-9][0-9]{0,2})", re.ASCII)
_CORE = re.compile(r"neuron_core[0-9]{1,3}", re.ASCII)
_SERIAL = re.compile(r"(?!0+$)[0-9A-Za-z]{1,32}", re.ASCII)
"""Source: %016llx in neuron_sysfs_metrics.c; an empty line where the firmware does not answer."""
_NAME = re.compile(r"[!-~]{1,64}")
_READ = 4096
"""Bytes that sysfs has in a file at most: one page."""


@attrs.frozen(kw_only=True)
class Chip:
    """One chip that the driver serves."""

    index: int
    """The number in the name of its files: may be another one after a boot."""
    serial: str
    cores: int
    """Physical ones."""
    product: str | None
    arch: str | None
    instance: str | None
    beside: tuple[int, ...] | None
    """Numbers of the chips that it is linked with, once for each link; None: not to be known."""

    @property
    def family(self) -> facts.Family | None:
        """None: of a sort that is not known here."""
        return facts.FAMILIES.get(self.product or "")

    @property
    def word(self) -> str:
        """What the driver calls it."""
        return word_of(self.index)


def word_of(index: int) -> str:
    """What the driver calls chip *index*."""
    return f"neuron{index}"


def index_of(word: str | None) -> int | None:
    """The number in what the driver calls a chip; None: it is no such word."""
    found = _FOLDER.fullmatch(word or "")
    return None if found is None else int(found[1])


def folder(index: int) -> str:
    return f"{facts.CHIPS}/{word_of(index)}"


def indices(host: Host) -> tuple[int, ...]:
    """Numbers of the chips that the driver serves, ascending."""
    found = (index_of(name) for name in host.names(facts.CHIPS))
    return tuple(sorted(index for index in found if index is not None))


def read_chips(host: Host) -> Iterator[Chip | Unreadable]:
    """Every chip that the driver serves; two that say they are the same are not believed."""
    found = [chip for index in indices(host) if (chip := _read_or_not(host, index)) is not None]
    serials = Counter(chip.serial.lower() for chip in found if isinstance(chip, Chip))
    for chip in found:
        if isinstance(chip, Chip) and serials[chip.serial.lower()] > 1:
            yield Unreadable(
                subject=chip.word,
                code="serial-repeated",
                reason=f"another chip has its serial number {chip.serial}, too",
                remedy=facts.KERNEL_LOG,
            )
        else:
            yield chip


def _read_or_not(host: Host, index: int) -> Chip | Unreadable | None:
    """A chip, or why it cannot be read; None: it went meanwhile."""
    try:
        return read_chip(host, index)
    except SourceError as error:
        if not host.exists(folder(index)):
            return None
        return Unreadable(
            subject=word_of(index),
            code=error.code if isinstance(error, AccessDenied) else "unreadable",
            reason=str(error),
            remedy=error.remedy or facts.KERNEL_LOG,
        )


def read_chip(host: Host, index: int) -> Chip:
    """Chip *index*.

    Raises:
        SourceError: What must be known of it cannot be read, or is nonsense.
    """
    there = folder(index)
    return Chip(
        index=index,
        serial=read_serial(host, index),
        cores=_cores(host, there),
        product=_name(host, there, "device_name") or _name(host, there, "device_type"),
        arch=_name(host, there, "arch_type"),
        instance=_name(host, there, "instance_type"),
        beside=_beside(host, there),
    )


def read_serial(host: Host, index: int) -> str:
    """The serial number of chip *index*.

    Raises:
        SourceError: It has none, or does not say.
    """
    path = f"{folder(index)}/info/serial_number"
    try:
        serial = host.read(path, _READ).strip()
    except NotThere as error:
        raise NotThere(str(error), remedy="modprobe neuron; " + facts.KERNEL_LOG) from error
    if not _SERIAL.fullmatch(serial):
        said = f"it says {serial[:40]!r}" if serial else "its firmware does not answer"
        raise SourceError(f"{path}: no serial number: {said}", remedy=facts.KERNEL_LOG)
    return serial


def _cores(host: Host, there: str) -> int:
    """Physical cores; their folders are counted where their number is for root only.

    Source:
        neuron_core_count_show in neuron_cdev.c: mode 0400, without a newline.
    """
    try:
        text = host.read(f"{there}/core_count", _READ).strip()
    except (AccessDenied, NotThere):
        text = str(sum(_CORE.fullmatch(name) is not None for name in host.names(there)))
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= facts.MOST_CORES):
        raise SourceError(f"{there}: it cannot have {text[:40]!r} cores")
    return int(text)


def _name(host: Host, there: str, name: str) -> str | None:
    try:
        text = host.read(f"{there}/info/architecture/{name}", _READ).strip()
    except SourceError:  # a chip can be used without
        return None
    return text if _NAME.fullmatch(text) else None


def _beside(host: Host, there: str) -> tuple[int, ...] | None:
    try:
        return read_beside(host, there)
    except SourceError:  # links say why
        return None


def read_beside(host: Host, there: str) -> tuple[int, ...]:
    """Numbers of the chips that the chip of folder *there* is linked with, one for each link.

    Raises:
        SourceError: It cannot be read, or is nonsense.

    Source:
        neuron_connected_devices_show in neuron_cdev.c: mode 0400, "12, 3, 4, 1", empty for none.
    """
    path = f"{there}/connected_devices"
    words = [word.strip() for word in host.read(path, _READ).split(",")]
    if words == [""]:
        return ()
    if not all(word.isascii() and word.isdecimal() and len(word) <= 3 for word in words):
        raise SourceError(f"{path}: {','.join(words)[:40]!r} are no numbers of chips")
    return tuple(int(word) for word in words)
