"""Machines from what `hl-smi` prints, as a table or as CSV. Not here: the machine.

Source:
    Intel Gaudi documentation, "hl-smi"; hl-smi 1.12 to 1.22, as people paste its output.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import attrs

from accelkit import ConfigError, FrozenMap
from accelkit.testing.pasted import (
    Likeness,
    Looks,
    Output,
    Told,
    Unit,
    address_in,
    mebibytes_in,
    nearest,
    number_in,
    word_in,
)
from accelkit.vendors.gaudi import facts

_TABLE, _CSV = "hl-smi", "hl-smi -Q index,name,bus_id,module_id,serial,uuid,memory.total -f csv"
_GIB = 1 << 30
LOOKS: Mapping[str, Looks] = {
    "gaudi3": Looks(names=("HL-325", "HL-325L", "Gaudi3"), memory=128 * _GIB,
                    pci=frozenset({0x1060, 0x1061, 0x1030, 0x1063})),
    "gaudi3-pcie": Looks(names=("HL-338",), memory=128 * _GIB, pci=frozenset({0x1062})),
    "gaudi2": Looks(names=("HL-225", "HL-225H", "HL-225B", "Gaudi2"), memory=96 * _GIB,
                    pci=frozenset({0x1020})),
    "gaudi2-pcie": Looks(names=("HL-288",), memory=96 * _GIB),
    "gaudi": Looks(names=("HL-205", "Gaudi"), memory=32 * _GIB,
                   pci=frozenset({0x1000, 0x1001, 0x1010, 0x1011})),
}  # fmt: skip
_CARD = re.compile(r"\|\s*\d{1,3}\s+(?:HL-|\Z)")
_HEAD = re.compile(r"\|\s*(\d{1,3})\s+(HL-\w+)\b[^|]*\|\s*([0-9a-fA-F:.]+)\b")
_MEMORY = re.compile(r"(\d{1,9}\s*MiB)\s*/\s*(\d{1,9}\s*MiB)", re.IGNORECASE)
_UNTOLD = re.compile(r"\|\s*N/A\s*/\s*N/A\s*\|")
"""Memory, to whoever is not root."""
_DRIVER = re.compile(r"Driver Version:\s*(\d[\w.-]*)")
_COLUMNS = ("index", "name", "bus_id", "module_id", "serial", "uuid", "memory.total")
_COLUMN = re.compile(r"[a-z][a-z_.]*(?: \[[^\]]*\])?")
_HEADLESS = re.compile(r"\s*\d{1,3}\s*,.*\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.IGNORECASE)
_UUID = re.compile(r"[0-9A-Z]{4}-HL[0-9A-Z]+(?:-[0-9A-Z]+){2,6}")
_SERIAL = re.compile(r"[A-Z]{2}\d{6,12}")


@attrs.frozen
class _Card:
    facts: Mapping[str, str]
    """By column of the CSV."""

    def word(self, column: str) -> str:
        """What a column tells; empty: nothing, as where it says N/A."""
        told = self.facts.get(column, "")
        return "" if told.strip().upper() == "N/A" else told

    @property
    def unit(self) -> Unit:
        return Unit(
            address=address_in(self.word("bus_id")),
            module=number_in(self.word("module_id"), facts.MOST_MODULES - 1),
            serial=word_in(self.word("serial")),
            uuid=word_in(self.word("uuid")),
        )


def outputs() -> tuple[Output, ...]:
    return (
        Output(name=_TABLE, is_it=_is_table, read=_read_table),
        Output(name=_CSV, is_it=_is_csv, read=_read_csv),
    )


def _is_table(text: str) -> bool:
    return "HL-SMI" in text or _HEAD.search(text) is not None


def _is_csv(text: str) -> bool:
    return any(_heading(line) or _HEADLESS.match(line) for line in text.splitlines())


def _heading(line: str) -> list[str]:
    """The columns, if *line* is the heading of the CSV."""
    cells = [cell.strip().lower() for cell in line.split(",")]
    names = [cell.partition(" ")[0] for cell in cells]
    whole = len(names) > 1 and all(map(_COLUMN.fullmatch, cells))
    return names if whole and {"index", "bus_id"} & set(names) else []


def _read_table(text: str) -> Likeness:
    cards = []
    starts = [found.start() for found in _CARD.finditer(text)]
    for number, (start, end) in enumerate(pairwise([*starts, len(text)])):
        # A terminal may have broken the lines.
        found, memory = _HEAD.match(text, start, end), _MEMORY.search(text, start, end)
        whole = memory is not None or _UNTOLD.search(text, start, end) is not None
        if found is None or address_in(found[3]) is None or not whole:
            raise ConfigError([(f"card {number}", "is cut off")])
        known = {"index": found[1], "name": found[2], "bus_id": found[3]}
        cards.append(_Card({**known, "memory.total": memory[2] if memory else ""}))
    driver = _DRIVER.search(text)
    return _likeness(cards, driver[1] if driver else "")


def _read_csv(text: str) -> Likeness:
    lines = [line.strip() for line in text.splitlines() if "," in line]
    heading = next((n for n, line in enumerate(lines) if _heading(line)), None)
    try:
        if heading is not None:
            columns = _heading(lines[heading])
            rows = csv.reader(lines[heading + 1 :], skipinitialspace=True)
            return _likeness([_Card(dict(zip(columns, row, strict=False))) for row in rows])
        rows = csv.reader(filter(_HEADLESS.match, lines), skipinitialspace=True)
        return _likeness([_Card(_recognised(row)) for row in rows])
    except csv.Error as error:
        raise ConfigError([("text", f"is no CSV: {error}")]) from error


def _recognised(row: Sequence[str]) -> dict[str, str]:
    """Cells by column where no heading tells them: by what they look like.

    The first number is the index, the second the module; the larger memory is the total.
    """
    found: dict[str, str] = {}
    for cell in (cell.strip() for cell in row):
        if address_in(cell):
            found["bus_id"] = cell
        elif _UUID.fullmatch(cell):
            found["uuid"] = cell
        elif _SERIAL.fullmatch(cell):
            found["serial"] = cell
        elif cell.startswith("HL-"):
            found["name"] = cell
        elif memory := mebibytes_in(cell):
            most = mebibytes_in(found.get("memory.total", "")) or 0
            found["memory.total"] = cell if memory > most else found["memory.total"]
        elif re.fullmatch(r"\d{1,3}", cell):
            found.setdefault("module_id" if "index" in found else "index", cell)
    return found


def _likeness(cards: Sequence[_Card], driver: str = "") -> Likeness:
    if not cards:
        raise ConfigError([("text", "has no card")])
    model = cards[0]
    product, sure = nearest(
        LOOKS, name=model.word("name"), memory=mebibytes_in(model.word("memory.total"))
    )
    driver = driver or model.word("driver_version")
    return Likeness(
        product=product,
        told=Told(units=tuple(card.unit for card in cards)),
        options=FrozenMap({"driver": driver} if word_in(driver) else {}),
        warnings=tuple(_warnings(cards, product, sure=sure)),
    )


def _warnings(cards: Sequence[_Card], product: str, *, sure: bool) -> Iterator[str]:
    if not (name := cards[0].word("name")):
        yield f"the product is not told: by what is told it is {product}"
    elif not sure:
        yield f"{name} is not simulated: {product} is nearest"
    if all(address_in(card.word("bus_id")) is None for card in cards):
        yield "PCI addresses are not told: they are made up"
    if any(card.unit.module is None for card in cards):
        yield "places on the board are not told: ask as root, and add module_id to the query"
    if any(card.unit.serial or card.unit.uuid for card in cards):
        yield "serial numbers and UUIDs are not taken over: the driver shows none in its files"
    yield "NUMA nodes and PCIe roots are not told: they are made up"
    left = sorted({column for card in cards for column in card.facts if column not in _COLUMNS})
    if left:
        yield f"not taken over: {', '.join(left)[:200]}"
