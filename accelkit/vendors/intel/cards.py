"""One PCI function as a GPU: driver, device files, memory. Not here: the device made of it."""

import re

import attrs

from accelkit import DeviceNode, FrozenMap, Host, PciFunction, SourceError
from accelkit.vendors.intel import facts
from accelkit.vendors.intel.reading import number_at, text_at

_MINOR = re.compile(r"(card|renderD)[0-9]{1,7}")
_TILE = re.compile(r"tile[0-9]{1,3}")
_MEI = re.compile(r"mei[0-9]{1,4}")
_LOCAL_MEMORY_BAR = 2
"""Linux, drivers/gpu/drm/i915/intel_pci_config.h and xe/regs/xe_bars.h."""
_LONGEST_RELEASE = 64
"""Characters; the kernel's own has no more (Linux, include/uapi/linux/utsname.h)."""
_SMALL_BAR = 256 << 20
"""What firmware that cannot resize it gives; then it says nothing about the memory."""


@attrs.frozen(kw_only=True)
class Card:
    """A function, with what is there of it at one moment."""

    function: PciFunction
    files: frozenset[str]
    """Names in its folder: drivers differ in what they show."""
    driver: str | None
    minors: tuple[str, ...]
    """Names of its device files in /dev/dri, which change with every boot: cardN and renderDN."""

    @property
    def served(self) -> bool:
        """Whether a driver of ours has it and shows device files."""
        return self.driver in facts.DRIVERS and bool(self.minors)

    @property
    def passed_on(self) -> bool:
        """Whether it was given to a virtual machine."""
        return self.driver in facts.PASSED_ON

    @property
    def nodes(self) -> tuple[DeviceNode, ...]:
        return tuple(DeviceNode(path=f"{facts.DRI}/{name}") for name in self.minors)

    @property
    def folder(self) -> str | None:
        """Where i915 has files of the card; None: the driver shows no card."""
        card = next((name for name in self.minors if name.startswith("card")), None)
        return None if card is None else self.function.path(f"drm/{card}")


def card_of(function: PciFunction) -> Card:
    """What is there of *function* now.

    Raises:
        SourceError: It cannot be looked at.

    Source:
        Linux, drivers/gpu/drm/drm_drv.c, for names of device files; controlDN is gone since 4.19.
    """
    names = function.host.names(function.path("drm"))
    return Card(
        function=function,
        files=frozenset(function.host.names(function.path("")[:-1])),
        driver=function.driver,
        minors=tuple(sorted(name for name in names if _MINOR.fullmatch(name))),
    )


def mei_nodes(card: Card) -> tuple[DeviceNode, ...]:
    """Device files of its management engine, which reads firmware and telemetry.

    Source:
        Auxiliary devices of i915 and xe, such as xe.mei-gscfi.768, each with mei/meiN.
    """
    host, path = card.function.host, card.function.path
    folders = sorted(name for name in card.files if ".mei-" in name)
    names = {name for folder in folders for name in host.names(path(f"{folder}/mei"))}
    return tuple(DeviceNode(path=f"/dev/{n}") for n in sorted(names) if _MEI.fullmatch(n))


def tiles_of(card: Card, model: facts.Model) -> int:
    """How many tiles it has; of i915 the model tells, since to it a media engine is a gt, too."""
    return sum(bool(_TILE.fullmatch(name)) for name in card.files) or model.tiles


def memory_of(card: Card, model: facts.Model) -> int | None:
    """Bytes of its own memory; None: nobody says.

    What the driver says; else, of the sizes that the model comes in, the largest that fits into
    the window that the firmware gave it. A smaller window is all that a virtual machine has.
    """
    told = _told_memory(card)
    if told is not None and told > 0:
        return told
    if not model.memory:
        return None
    window = _window(card.function)
    if window is None or window <= _SMALL_BAR:
        return model.memory[0]
    return max((size for size in model.memory if size <= window), default=window)


def _told_memory(card: Card) -> int | None:
    """What the i915 of Intel's packages tells; None: nothing, or not to us."""
    if card.folder is None or card.driver != facts.I915:
        return None
    try:
        return number_at(card.function.host, f"{card.folder}/lmem_total_bytes")
    except SourceError:
        return None


def _window(function: PciFunction) -> int | None:
    """Bytes of the window to its memory; None: it has none, or nothing tells it to us.

    Source:
        Linux, Documentation/PCI/sysfs-pci.rst: resource has start, end and flags of each BAR.
    """
    try:
        lines = (text_at(function.host, function.path("resource")) or "").splitlines()
    except SourceError:
        return None
    if len(lines) <= _LOCAL_MEMORY_BAR:
        return None
    words = lines[_LOCAL_MEMORY_BAR].split()
    if len(words) != len(("start", "end", "flags")) or not all(
        re.fullmatch(r"0x[0-9a-f]{1,16}", w) for w in words
    ):
        return None
    start, end = int(words[0], 16), int(words[1], 16)
    return end - start + 1 if end > start else None


def is_prelim(card: Card) -> bool:
    """Whether it runs under the i915 of Intel's own packages, whose interface is another one."""
    if card.folder is None or card.driver != facts.I915:
        return False
    return any(name.startswith("prelim_") for name in card.function.host.names(card.folder))


@attrs.frozen(kw_only=True)
class Software:
    """Versions of what serves GPUs."""

    kernel: str | None
    modules: FrozenMap[str, str]
    """Of drivers that have a version of their own: those of the kernel have none."""


def software_of(host: Host) -> Software:
    """What the kernel and the drivers that are loaded say of themselves."""
    found = {d: _release(host, f"/sys/module/{d}/version") for d in facts.DRIVERS}
    return Software(
        kernel=_release(host, "/proc/sys/kernel/osrelease"),
        modules=FrozenMap({driver: text for driver, text in found.items() if text}),
    )


def _release(host: Host, path: str) -> str | None:
    """The version at *path*; None: there is none that can be read, or what is there is none."""
    try:
        text = text_at(host, path)
    except SourceError:
        return None
    return text if text and text.isprintable() and len(text) <= _LONGEST_RELEASE else None
