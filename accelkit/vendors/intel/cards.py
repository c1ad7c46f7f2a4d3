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
_SMALL_BAR = 256 << 20
"""What firmware that cannot resize it gives; then it says nothing about the memory."""


def device_id(function: PciFunction) -> int:
    """The PCI device id.

    Raises:
        SourceError: It makes no sense.
    """
    text = function.read("device").strip()
    if not re.fullmatch(r"0x[0-9a-f]{4}", text):
        raise SourceError(f"{function.path('device')}: {text[:20]!r} is no id", vendor="intel")
    return int(text, 16)


def minors(function: PciFunction) -> tuple[str, ...]:
    """Names of its device files in /dev/dri, as they are now: they change with every boot.

    Source:
        Linux, drivers/gpu/drm/drm_drv.c: cardN and renderDN; controlDN is gone since 4.19.
    """
    names = function.host.names(function.path("drm"))
    return tuple(sorted(name for name in names if _MINOR.fullmatch(name)))


def nodes_of(function: PciFunction) -> tuple[DeviceNode, ...]:
    """Its device files."""
    return tuple(DeviceNode(path=f"{facts.DRI}/{name}") for name in minors(function))


def card_folder(function: PciFunction) -> str | None:
    """Where i915 has its files; None: the driver shows no card."""
    card = next((name for name in minors(function) if name.startswith("card")), None)
    return None if card is None else function.path(f"drm/{card}")


def mei_nodes(function: PciFunction) -> tuple[DeviceNode, ...]:
    """Device files of its management engine, which reads firmware and telemetry.

    Source:
        Auxiliary devices of i915 and xe, such as xe.mei-gscfi.768, each with mei/meiN.
    """
    host = function.host
    folders = (name for name in host.names(function.path("")[:-1]) if ".mei-" in name)
    names = {m for folder in folders for m in host.names(function.path(f"{folder}/mei"))}
    return tuple(DeviceNode(path=f"/dev/{n}") for n in sorted(names) if _MEI.fullmatch(n))


def tiles_of(function: PciFunction, model: facts.Model) -> int:
    """How many tiles it has; of i915 the model tells, since to it a media engine is a gt, too."""
    shown = sum(bool(_TILE.fullmatch(n)) for n in function.host.names(function.path("")[:-1]))
    return shown or model.tiles


def memory_of(function: PciFunction, model: facts.Model) -> int | None:
    """Bytes of its own memory; None: nobody says.

    What the driver says; else, of the sizes that the model comes in, the largest that fits into
    the window that the firmware gave it. A smaller window is all that a virtual machine has.
    """
    card = card_folder(function)
    told = None if card is None else number_at(function.host, f"{card}/lmem_total_bytes")
    if told is not None and told > 0:
        return told
    if not model.memory:
        return None
    window = _window(function)
    if window is None or window <= _SMALL_BAR:
        return model.memory[0]
    return max((size for size in model.memory if size <= window), default=window)


def _window(function: PciFunction) -> int | None:
    """Bytes of the window to its memory.

    Source:
        Linux, Documentation/PCI/sysfs-pci.rst: resource has start, end and flags of each BAR.
    """
    lines = (text_at(function.host, function.path("resource")) or "").splitlines()
    if len(lines) <= _LOCAL_MEMORY_BAR:
        return None
    words = lines[_LOCAL_MEMORY_BAR].split()
    if len(words) != len(("start", "end", "flags")) or not all(
        re.fullmatch(r"0x[0-9a-f]{1,16}", w) for w in words
    ):
        return None
    start, end = int(words[0], 16), int(words[1], 16)
    return end - start + 1 if end > start else None


def is_prelim(function: PciFunction) -> bool:
    """Whether it runs under the i915 of Intel's own packages, whose interface is another one."""
    card = card_folder(function)
    if card is None or function.driver != facts.I915:
        return False
    return any(name.startswith("prelim_") for name in function.host.names(card))


@attrs.frozen(kw_only=True)
class Software:
    """Versions of what serves GPUs."""

    kernel: str | None
    modules: FrozenMap[str, str]
    """Of drivers that have a version of their own: those of the kernel have none."""


def software_of(host: Host) -> Software:
    """What the kernel and the drivers that are loaded say of themselves."""
    found = {d: text_at(host, f"/sys/module/{d}/version") for d in facts.DRIVERS}
    return Software(
        kernel=text_at(host, "/proc/sys/kernel/osrelease") or None,
        modules=FrozenMap({driver: text for driver, text in found.items() if text}),
    )
