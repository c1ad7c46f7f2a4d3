"""GPUs and their partitions as devices. Not here: how they are, and what connects them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import attrs

from accelkit import (
    AccessDenied,
    Device,
    FrozenMap,
    Host,
    ModelError,
    NotThere,
    PciFunction,
    SourceError,
    Unreadable,
    Version,
    dns_label,
)
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.card import Card, nodes_by_address, optional, read_card, said
from accelkit.vendors.amd.cutting import attributes_of
from accelkit.vendors.amd.drm import DrmFiles, files_of, files_of_partitions
from accelkit.vendors.amd.kfd import Topology, memory_of, read_topology

Make = Callable[..., Device]  # type: ignore[explicit-any]  # fields of Device
"""Vendor.device or Vendor.partition."""

_UNIQUE = re.compile(r"[0-9a-f]{1,16}")
_MOST_MEMORY = 1 << 60
_MOST_UNITS = 1 << 16


@attrs.frozen(kw_only=True)
class Makers:
    """How devices are made."""

    whole: Make
    part: Make


@attrs.frozen(kw_only=True)
class Common:
    """What is the same for all GPUs of a host."""

    host: Host
    topology: Topology
    partitions: Mapping[int, DrmFiles]
    """Device files of partitions, by the minor of the render node."""
    driver: Mapping[str, Version | str]


def discover_all(
    host: Host, functions: tuple[PciFunction, ...], make: Makers
) -> Iterator[Device | Unreadable]:
    """Every GPU of *functions*, and every partition of one that is cut."""
    bound = []
    for function in functions:
        try:
            driver = function.driver
        except SourceError as error:
            yield _unreadable(function, error)
            continue
        if driver == facts.DRIVER:
            bound.append(function)
        elif driver not in facts.FOREIGN_DRIVERS:
            yield _without_driver(host, function, driver)
    if not bound:
        return
    topology = read_topology(host)
    nodes = nodes_by_address(topology.nodes, (f.address for f in bound))
    common = Common(
        host=host,
        topology=topology,
        partitions=files_of_partitions(host),
        driver=dict(driver_attributes(host)),
    )
    devices: list[tuple[Device, tuple[Device | Unreadable, ...]]] = []
    for function in bound:
        try:
            if function.address not in nodes:
                yield _without_compute(host, function, topology)
                continue
            card = read_card(function, nodes[function.address])
            devices.append(_devices(card, common, make))
        except NotThere:  # it went while it was looked at
            continue
        except (SourceError, ValueError, ModelError) as error:
            yield _unreadable(function, error)
    yield from _told_apart(devices)


def _without_driver(host: Host, function: PciFunction, driver: str | None) -> Unreadable:
    bound = "no driver is bound" if driver is None else f"{driver} is bound, not {facts.DRIVER}"
    step = f"write {function.address} to /sys/bus/pci/drivers/{facts.DRIVER}/bind"
    if driver is not None:
        step = f"unbind it from {driver}, and {step}"
    elif not host.exists(facts.MODULE):
        step = f"modprobe {facts.DRIVER}"
    return Unreadable(
        subject=function.address,
        code="driver-not-ready",
        reason=bound,
        remedy=f"{step}; see dmesg for the reason if that fails",
    )


def _without_compute(host: Host, function: PciFunction, topology: Topology) -> Unreadable:
    if topology.denied is not None:
        return Unreadable(
            subject=function.address,
            code=topology.denied.code,
            reason=str(topology.denied),
            remedy=_way_to_nodes(topology.denied),
        )
    if not host.exists(facts.KFD):
        return Unreadable(
            subject=function.address,
            code="kfd-missing",
            reason="the kernel has no KFD: the GPU can show pictures, but not compute",
            remedy="use a kernel with CONFIG_HSA_AMD, or AMD's driver package",
        )
    return Unreadable(
        subject=function.address,
        code="no-compute",
        reason=f"{facts.DRIVER} is bound, and KFD does not have the GPU",
        remedy="see dmesg for kfd and for the GPU's address: it may be unsupported or defective",
    )


def _way_to_nodes(error: SourceError) -> str:
    if isinstance(error, AccessDenied):
        return "let the agent use all device files: KFD hides GPUs whose files it may not open"
    return error.remedy or "see dmesg for kfd and amdgpu"


def _unreadable(function: PciFunction, error: SourceError | ValueError | ModelError) -> Unreadable:
    if isinstance(error, SourceError):
        return Unreadable(
            subject=function.address, code=error.code, reason=str(error), remedy=error.remedy
        )
    return Unreadable(
        subject=function.address,
        code="unreadable",
        reason=f"its files are nonsense: {error}",
        remedy="see dmesg for amdgpu; report it if the driver is newer than accelkit",
    )


def _told_apart(
    found: Iterable[tuple[Device, tuple[Device | Unreadable, ...]]],
) -> Iterator[Device | Unreadable]:
    """All of *found*, but of GPUs with one name only the first: the others cannot be told apart."""
    names: dict[str, str | None] = {}
    for whole, parts in sorted(found, key=lambda pair: pair[0].locality.pci_address or ""):
        if whole.id.name in names:
            yield Unreadable(
                subject=whole.locality.pci_address or whole.id.name,
                code="same-identity",
                reason=f"it has the unique id of the GPU at {names[whole.id.name]}",
                remedy="report it: a unique id must be one GPU's",
            )
            continue
        names[whole.id.name] = whole.locality.pci_address
        yield whole
        yield from parts


def _devices(
    card: Card, common: Common, make: Makers
) -> tuple[Device, tuple[Device | Unreadable, ...]]:
    if len(card.parts) > card.expected or max(card.parts) >= card.expected:
        now = "uncut" if card.grid is None else card.grid.now.mode
        raise ValueError(f"it is {now}, and KFD has {len(card.parts)} nodes of it")
    # The first partition has the files of the PCI function.
    drm = {**common.partitions, **files_of(card.function)}
    whole = _whole(card, drm, common, make)
    return whole, tuple(_parts(card, whole, drm, common.topology.denied, make))


def _whole(card: Card, drm: Mapping[int, DrmFiles], common: Common, make: Makers) -> Device:
    function, unique = card.function, _unique_id(card)
    units = sum(n.compute_units for n in card.parts.values()) * card.expected // len(card.parts)
    if units > _MOST_UNITS:
        raise ValueError(f"{units} compute units")
    memory = _memory(card, common.host)
    files = drm.get(card.first.render_minor)
    cut = card.expected > 1
    name = f"gpu-{unique}" if unique else f"gpu-{dns_label(function.address)}"
    device = make.whole(
        name,
        kind="gpu",
        product=product_of(card),
        usable=not cut,
        locality=function.locality,
        nodes=() if files is None else files.nodes,
        attributes=FrozenMap(_attributes(card, unique, common)),
        own=frozenset({"serial"}),
        capacity={
            key: amount for key, amount in (("memory", memory), ("computeUnits", units)) if amount
        },
        aliases={function.address, *({f"GPU-{unique}", unique} if unique else ())},
        handle=function.address,
    )
    if card.grid is None or not card.grid.cuts:
        return _with_files(device, card, files)
    return _with_files(
        attrs.evolve(
            device,
            slots=card.grid.complexes,
            profiles=card.grid.profiles(memory, units),
            modes=card.grid.modes(),
            mode=card.grid.now.mode,
        ),
        card,
        files,
    )


def _with_files(device: Device, card: Card, files: DrmFiles | None) -> Device:
    """*device*, if it can be handed out.

    Raises:
        SourceError: The driver has no device file for it.
    """
    if files is None and device.usable:
        raise SourceError(
            f"KFD names the minor {card.first.render_minor}, and no render node has it",
            remedy="it may come when the driver has started; else see dmesg for drm: the kernel "
            "may have too few minors",
        )
    return device


def _parts(
    card: Card,
    whole: Device,
    drm: Mapping[int, DrmFiles],
    denied: SourceError | None,
    make: Makers,
) -> Iterator[Device | Unreadable]:
    if card.grid is None or card.expected == 1:
        return
    profile = next(p for p in whole.profiles if p.name == card.grid.now.profile)
    for number, start in enumerate(profile.starts):
        node = card.parts.get(number)
        files = None if node is None else drm.get(node.render_minor)
        own = {} if files is None else {"nodes": files.nodes, "handle": files.owner}
        part = make.part(whole, profile, start, **own)
        if node is None and denied is not None:
            lacks, remedy = str(denied), _way_to_nodes(denied)
        elif node is None or files is None:
            lacks = "KFD does not have it" if node is None else "it has no render node"
            remedy = "see dmesg for 'no drm node assigned': the kernel has too few minors"
        else:
            yield part
            continue
        yield Unreadable(
            subject=part.id.name,
            code="partition-missing",
            reason=f"partition {number} of {card.expected}: {lacks}",
            remedy=remedy,
        )


def _unique_id(card: Card) -> str:
    """16 hexadecimal digits; empty: the GPU has no identity of its own."""
    if card.first.unique_id:
        return f"{card.first.unique_id & (1 << 64) - 1:016x}"
    text = optional(card.function, "unique_id").lower().removeprefix("0x")
    return text.zfill(16) if _UNIQUE.fullmatch(text) and int(text, 16) else ""


def _memory(card: Card, host: Host) -> int | None:
    """Bytes of the whole GPU; None: nothing says it, and nothing is made up."""
    text = optional(card.function, "mem_info_vram_total")
    if text.isascii() and text.isdecimal() and len(text) < 20 and 0 < int(text) < _MOST_MEMORY:
        return int(text)
    seen = memory_of(host, card.parts.values())
    whole = None if seen is None else seen * card.expected // len(card.parts)
    return whole if whole and whole < _MOST_MEMORY else None


def product_of(card: Card) -> str:
    """The name by PCI id, so that GPUs of one sort are called alike with and without a FRU."""
    known = facts.NAMES.get(card.device)
    told = said(optional(card.function, "product_name")) if known is None else None
    return known or told or f"AMD GPU 0x{card.device:04x}"


def _attributes(card: Card, unique: str, common: Common) -> Iterator[tuple[str, Version | str]]:
    yield from common.driver.items()
    yield "pciDeviceId", f"0x{card.device:04x}"
    if unique:
        yield "uuid", f"GPU-{unique}"
    if (target := facts.target_of(card.first.facts["gfx_target_version"])) is not None:
        yield "gfxTarget", target
    if hive := card.first.facts.get("hive_id", 0):
        yield "hiveId", f"{hive:016x}"
    for name, file in (
        ("productName", "product_name"),
        ("serial", "serial_number"),
        ("vbiosVersion", "vbios_version"),
    ):
        if (text := said(optional(card.function, file))) is not None:
            yield name, text
    if card.grid is not None:
        yield from attributes_of(card.grid.now)


def driver_attributes(host: Host) -> Iterator[tuple[str, Version | str]]:
    """Versions of the driver: one that is built into the kernel has only that of its source."""
    version, source = (said(read_module(host, name)) for name in ("version", "srcversion"))
    if version is not None:
        with suppress(ModelError):
            yield "driverVersion", Version.parse(version)
    if source is not None:
        yield "driverSrcVersion", source


def read_module(host: Host, name: str) -> str:
    """What the kernel says of the driver's module; empty: nothing, or not to us."""
    try:
        return host.read(f"{facts.MODULE}/{name}").strip()
    except SourceError:
        return ""


def read_software(host: Host) -> dict[str, str]:
    """Versions by name; empty: the driver is not loaded."""
    if not host.exists(facts.MODULE):
        return {}
    if (version := said(read_module(host, "version"))) is not None:
        return {"driver": version}
    try:  # the driver that came with the kernel
        kernel = said(host.read("/proc/sys/kernel/osrelease"))
    except NotThere:
        kernel = None
    return {} if kernel is None else {"driver": kernel}
