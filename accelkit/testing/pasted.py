"""What people paste of a machine, as values. Not here: which outputs are read, and how."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import attrs

from accelkit.core.errors import ConfigError
from accelkit.core.values import FrozenMap, freeze

LIKE = "like"
"""Option of every machine that holds what was told of its devices."""
MOST_NUMA_NODES = 64
_ADDRESS = re.compile(
    r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([01][0-9a-f])\.([0-7])", re.ASCII | re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,63}", re.ASCII)
_MOST_DIGITS = 6
_WIDE = 0xFFFF
_NAMES = {"serial": "serial number", "uuid": "UUID"}


@attrs.frozen(kw_only=True)
class Unit:
    """What is told of one device; None: it is not told."""

    address: str | None = None
    """As sysfs has it."""
    root: str | None = None
    """Its PCIe root, as in pci0000:40."""
    numa: int | None = None
    serial: str | None = None
    uuid: str | None = None
    module: int | None = None
    """Its place on the board, where the maker counts them."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Told:
    """What is told of all devices of a part."""

    units: tuple[Unit, ...]
    links: tuple[tuple[int, int], ...] | None = None
    """Pairs of units that the maker's own links connect, each way; None: it is not told."""

    def dump(self) -> str:
        """The text of the option that holds it."""
        units = [
            {key: value for key, value in attrs.asdict(unit).items() if value is not None}
            for unit in self.units
        ]
        return json.dumps({"units": units, "links": self.links})

    def beside(self, index: int) -> tuple[int, ...] | None:
        """Units that a unit is linked with, in the order in which they are told."""
        if self.links is None:
            return None
        return tuple(dict.fromkeys(b for a, b in self.links if a == index and b != index))


Verb = tuple[str | int, ...]
"""Words of a verb; a number stands for the unit at that place."""


@attrs.frozen(kw_only=True)
class Cut:
    """A partition that a device has."""

    profile: str
    start: int | None = None
    """Its first slot; None: it is not told."""
    whole: bool = True
    """Its computing is not cut further."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Likeness:
    """What a machine is to be made like."""

    product: str
    """Of the machine: the nearest."""
    told: Told
    options: FrozenMap[str, str] = FrozenMap()
    verbs: tuple[Verb, ...] = ()
    """What happens to it then, such as being cut."""
    warnings: tuple[str, ...] = ()
    """What could not be taken over, one for each kind of thing."""


@attrs.frozen(kw_only=True)
class Output:
    """A program's output that a machine can be made like."""

    name: str
    """The command line."""
    is_it: Callable[[str], bool]
    read: Callable[[str], Likeness]
    """Raises ConfigError for what only begins like one."""


@attrs.frozen(kw_only=True)
class Looks:
    """How a product is recognised."""

    names: tuple[str, ...]
    memory: int | None = None
    """Bytes."""
    pci: frozenset[int] = frozenset()


def nearest(
    looks: Mapping[str, Looks],
    *,
    name: str = "",
    memory: int | None = None,
    pci: int | None = None,
) -> tuple[str, bool]:
    """The product that is most like what is told, and whether it is that product.

    By PCI device id, else by words of the name, else by memory, else the first.
    """

    def distance(product: str) -> tuple[int, int, int]:
        one = looks[product]
        words = _words(name)
        common = max(len(words & _words(known)) for known in (product, *one.names))
        far = abs((one.memory or 0) - memory) if memory is not None else 0
        return (0 if pci in one.pci else 1, -common, far)

    best = min(looks, key=distance)
    told = _words(name)
    sure = pci in looks[best].pci or any(told and told == _words(n) for n in looks[best].names)
    return best, sure


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+\d*[a-z]?|\d+[a-z]*", name.lower()))


def address_in(text: str) -> str | None:
    """The PCI address that *text* is, as sysfs spells it; None: it is none."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    domain = int(found[1] or "0", 16)
    return f"{domain:04x}:{found[2]}:{found[3]}.{found[4]}".lower()


def word_in(text: str) -> str | None:
    """*text*, if it is a word that names one device; None: it is not told, or nonsense."""
    word = text.strip()
    if (
        word.upper() in {"N/A", "NONE", "UNKNOWN"}
        or not word.strip("0")
        or _WORD.fullmatch(word) is None
    ):
        return None
    return word


def number_in(text: str, most: int) -> int | None:
    """The whole number that *text* begins with, from 0 to *most*; None: there is none."""
    found = re.match(rf"\s*(\d{{1,{_MOST_DIGITS + 12}}})(?![\w.])", text, re.ASCII)
    return int(found[1]) if found and int(found[1]) <= most else None


def numa_in(text: str) -> int | None:
    return number_in(text, MOST_NUMA_NODES - 1)


def mebibytes_in(text: str) -> int | None:
    """Bytes of a text such as ``81559 MiB``; None: it is no such text."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*MiB\s*", text, re.ASCII | re.IGNORECASE)
    return int(found[1]) << 20 if found else None


def without_twins(found: Likeness) -> Likeness:
    """*found* without the names that several devices share: they name none of them.

    Virtual machines show zeros, drivers the name of the host, and people hide what is told.
    """
    units, warnings = found.told.units, found.warnings
    for field, what in _NAMES.items():
        times = Counter(getattr(unit, field) for unit in units)
        twins = {value for value, count in times.items() if value is not None and count > 1}
        if twins:
            units = tuple(
                attrs.evolve(unit, **{field: None}) if getattr(unit, field) in twins else unit
                for unit in units
            )
            told = ", ".join(sorted(twins))[:80]
            warnings = (*warnings, f"several devices have the {what} {told}: others are made up")
    return attrs.evolve(found, told=attrs.evolve(found.told, units=units), warnings=warnings)


def check_units(units: Iterable[Unit], most: int) -> None:
    """See that there are some, not too many, and that no two are at one place.

    Raises:
        ConfigError: All that is wrong.
    """
    known = tuple(units)
    if not 1 <= len(known) <= most:
        text = f"tells of {len(known) or 'no'} devices, and 1 to {most} can be simulated"
        raise ConfigError([("text", text)])
    problems = [
        ("text", f"several devices have the PCI address {address}")
        for address, times in Counter(unit.address for unit in known).items()
        if address is not None and times > 1
    ]
    if problems:
        raise ConfigError(problems)


@lru_cache
def load_told(text: str, count: int) -> Told:
    """Read what *dump* wrote of *count* units.

    Raises:
        ConfigError: It is something else.
    """
    try:
        found = json.loads(text)
        links = found["links"]
        told = Told(
            units=tuple(_unit(one) for one in found["units"]),
            links=None if links is None else tuple((int(a), int(b)) for a, b in links),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _not_dumped() from error
    inside = all(0 <= end < count for pair in told.links or () for end in pair)
    if len(told.units) != count or not inside:
        raise _not_dumped()
    return told


def _unit(found: Mapping[str, object]) -> Unit:
    unit = Unit(**found)  # type: ignore[arg-type]  # looked at below
    address = unit.address is None or address_in(str(unit.address)) == unit.address
    named = (unit.serial, unit.uuid, unit.root)
    words = all(one is None or word_in(str(one)) == one for one in named)
    counts = ((unit.numa, MOST_NUMA_NODES), (unit.module, _WIDE))
    if not address or not words or any(n is not None and not 0 <= n < top for n, top in counts):
        raise ValueError(found)
    return unit


def _not_dumped() -> ConfigError:
    return ConfigError(
        [(f"option {LIKE}", "is not what is made of a text")],
        remedy="give the text: accelkit simulate VENDOR --from FILE DIR",
    )
