"""Where the driver shows a card: its name, its files, its nodes. Not here: what they mean."""

import re
from collections.abc import Callable, Iterator, Mapping

import attrs

from accelkit import DeviceNode, Host, NotThere, PciFunction, SourceError

LONGEST = 64
"""Characters of an attribute that is a text."""
_ACCEL = re.compile(r"accel([0-9]{1,4})")
_OLD = re.compile(r"hl([0-9]{1,4})")
_VERBS = re.compile(r"uverbs([0-9]{1,4})")
_CLASSES = (
    ("/sys/class/accel", _ACCEL),
    ("/sys/devices/virtual/accel", _ACCEL),
    ("/sys/class/habanalabs", _OLD),
)
"""Where drivers that do not show the card's name with its PCI function show it.

Source: Intel resource drivers for Kubernetes, pkg/gaudi/discovery/fallback.go;
Linux before 6.2, Documentation/ABI/testing/sysfs-driver-habanalabs, for hlN.
"""


@attrs.frozen(kw_only=True)
class Card:
    """One card as its driver shows it."""

    function: PciFunction
    name: str
    """As in accel3, or hl3 of old drivers: another one after each start of the driver."""
    folder: str
    """Where the driver's own files are."""

    @property
    def index(self) -> int:
        return index_of(self.name)

    @property
    def own_node(self) -> str:
        """The node that one process at a time can open."""
        return node_of(self.name)

    def read(self, name: str) -> str | None:
        """The text of the driver's file *name*, without blanks around it; None: there is none.

        Raises:
            SourceError: It is there, and cannot be read.
        """
        try:
            return self.function.host.read(f"{self.folder}/{name}").strip()
        except NotThere:
            return None

    def text(self, name: str) -> str | None:
        """What the driver says in its file *name*; None: nothing that can be shown."""
        try:
            lines = (self.read(name) or "").splitlines()
        except SourceError:  # as for a type that the driver has no word for
            return None
        said = lines[0].strip()[:LONGEST] if lines else ""
        return said if said and said.isascii() and said.isprintable() else None

    def number(self, name: str, limit: int) -> int | None:
        """The number in the driver's file *name*, below *limit*; None: there is none.

        Raises:
            SourceError: It cannot be read, or is no such number.
        """
        text = self.read(name)
        return None if text is None else number_in(text, f"{self.folder}/{name}", limit)

    def nodes(self) -> tuple[DeviceNode, ...]:
        """The nodes that belong to it: to compute, to control, and for RDMA if it has that."""
        index = self.index
        control = "hl_controlD" if self.name.startswith("hl") else "accel/accel_controlD"
        verbs = names_like(self.function.host, self.function.path("infiniband_verbs"), _VERBS)
        return (
            DeviceNode(path=self.own_node),
            DeviceNode(path=f"/dev/{control}{index}"),
            *(DeviceNode(path=f"/dev/infiniband/{name}") for name in verbs),
        )


def index_of(name: str) -> int:
    """The number in what the driver calls a card."""
    return int(name.removeprefix("accel").removeprefix("hl"))


def node_of(name: str) -> str:
    """The node of the card that the driver calls *name*."""
    return f"/dev/{name}" if name.startswith("hl") else f"/dev/accel/{name}"


def number_in(text: str, where: str, limit: int) -> int:
    """The number that *text* is, below *limit*.

    Raises:
        SourceError: It is none.
    """
    # Digits of other scripts are decimal, too; and long ones are no number of anything here.
    if not (text.isascii() and text.isdecimal() and len(text) < 20) or int(text) >= limit:
        raise SourceError(
            f"{where}: {text[:40]!r} is no number below {limit}",
            remedy="reload habanalabs, or update the card's firmware",
        )
    return int(text)


def names_like(host: Host, folder: str, pattern: re.Pattern[str]) -> list[str]:
    """Names in *folder* that are *pattern*, by the number that is its last group."""
    found = [match for name in host.names(folder) if (match := pattern.fullmatch(name))]
    return [match[0] for match in sorted(found, key=_by_number)]


def _by_number(match: re.Match[str]) -> tuple[int, str]:
    return int(match[match.lastindex or 0]), match[0]


def card_at(
    function: PciFunction, elsewhere: Callable[[], Mapping[str, str]] | None = None
) -> Card | None:
    """The card at a PCI function; None: its driver shows none.

    Args:
        function: Bound to the driver.
        elsewhere: Names by PCI address, for drivers that do not say it with the function; None:
            they are looked up.

    Raises:
        SourceError: The driver contradicts itself.
    """
    host = function.host
    names = names_like(host, function.path("accel"), _ACCEL)
    if len(names) > 1:
        raise SourceError(
            f"{function.path('accel')} holds {' and '.join(names)}", remedy="reload habanalabs"
        )
    if not names:
        shown = names_elsewhere(host) if elsewhere is None else elsewhere()
        names = [shown[function.address]] if function.address in shown else []
    if not names:
        return None
    return Card(function=function, name=names[0], folder=_files_of(function, names[0]))


def folder_of(function: PciFunction) -> str:
    """The folder of a PCI function itself."""
    return function.path("").rstrip("/")


def _files_of(function: PciFunction, name: str) -> str:
    """Where the driver's own files are: with the function, or with the device of its class."""
    places = (folder_of(function), *_places(name))
    shown = (p for p in places if function.host.exists(f"{p}/status"))
    return next(shown, places[0])


def _places(name: str) -> Iterator[str]:
    for folder, pattern in _CLASSES:
        if pattern.fullmatch(name):
            yield f"{folder}/{name}/device"
            yield f"{folder}/{name}"


def names_elsewhere(host: Host) -> dict[str, str]:
    """What classes of devices call the cards, by PCI address.

    Source:
        pci_addr in Linux, Documentation/ABI/testing/sysfs-driver-habanalabs.
    """
    found: dict[str, str] = {}
    for folder, pattern in _CLASSES:
        for name in names_like(host, folder, pattern):
            for place in (f"{folder}/{name}/device", f"{folder}/{name}"):
                try:
                    found.setdefault(host.read(f"{place}/pci_addr").strip().lower(), name)
                except SourceError:
                    continue
    return found
