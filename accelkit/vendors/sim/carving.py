"""How simulated accelerators are cut, and uncut. Not here: what the machine makes of it."""

from collections.abc import Callable, Iterator

import attrs

from accelkit import (
    Device,
    Enforcement,
    FrozenMap,
    Host,
    Mode,
    ModeBusy,
    NeedsReset,
    NotThere,
    PartitionError,
    PartitionInUse,
    PciFunction,
    Placement,
    PlaceOccupied,
    Profile,
    Scope,
    SourceError,
)

SLOTS = 4
HALF = Profile(name="half", slug="half", size=1, starts=(0, 1))
"""Of the product that comes cut."""
QUARTERS = (
    Profile(name="2s", slug="2s", size=2, starts=(0, 2), limit=2, mode="carved"),
    Profile(name="1s", slug="1s", size=1, starts=(0, 1, 2, 3), limit=4, mode="carved"),
)
CUTS = (
    Profile(name="half", slug="half", size=2, starts=(0, 2), limit=2, mode="dual"),
    Profile(name="quarter", slug="quarter", size=1, starts=(0, 1, 2, 3), limit=4, mode="quad"),
)
MODES = {
    "carve": (Mode(name="whole", live=True), Mode(name="carved", live=True)),
    "reset": (Mode(name="whole"), Mode(name="carved")),
    "modal": (
        Mode(name="single"),
        Mode(name="dual", cut="half", count=2),
        Mode(name="quad", cut="quarter", count=4, disturbs=Scope.VENDOR),
    ),
}
"""By product. *reset* changes its mode only when the machine boots; *modal* is cut by its mode."""

Make = Callable[..., Device]  # type: ignore[explicit-any]  # fields of Device
"""Vendor.partition."""


def as_cut(whole: Device, product: str, function: PciFunction) -> Device:
    """*whole* with what can be made of it, and what it is now."""
    mode = function.read("mode").strip()
    table = CUTS if product == "modal" else QUARTERS
    memory = whole.capacity["memory"]
    return attrs.evolve(
        whole,
        slots=SLOTS,
        profiles=tuple(
            attrs.evolve(p, capacity=FrozenMap({"memory": memory * p.size // SLOTS})) for p in table
        ),
        modes=MODES[product],
        mode=mode,
        usable=mode in {"whole", "single"},
        sharing=frozenset({Enforcement.NONE, Enforcement.LIBRARY}),
    )


def parts_of(whole: Device, function: PciFunction, make: Make) -> Iterator[Device]:
    """The partitions that *whole* has now."""
    profiles = {profile.name: profile for profile in whole.profiles}
    for line in function.read("parts").splitlines():
        name, _, start = line.partition(" ")
        if name not in profiles:
            raise ValueError(f"parts {line[:40]!r}")
        yield make(whole, profiles[name], int(start), nodes=whole.nodes)


def create(host: Host, parent: Device, placement: Placement, make: Make) -> Device:
    """The partition at *placement*, made if it is not there."""
    function = _function(host, parent)
    profile = next((p for p in parent.profiles if p.name == placement.profile), None)
    if profile is None or placement.start not in profile.starts:
        raise PartitionError(f"{parent.id} has no {placement.profile} at {placement.start}")
    if (there := _at(function, parent, placement, make)) is not None:
        return there
    what = f"{placement.profile} {placement.start}"
    _write(host, parent, "make", what, PlaceOccupied)
    try:
        made = _at(function, parent, placement, make)
    except SourceError:  # nobody could know what is there: then it is not
        _write(host, parent, "unmake", what, PartitionInUse)
        raise
    if made is None:
        raise PartitionError(
            f"{parent.id}: {placement.profile} at {placement.start} was made but is not there",
            device=str(parent.id),
        )
    return made


def _at(function: PciFunction, parent: Device, place: Placement, make: Make) -> Device | None:
    """What is at *place*.

    Raises:
        PlaceOccupied: A partition that is another one.
    """
    for part in parts_of(parent, function, make):
        if part.placement == place:
            return part
        if part.placement and set(part.placement.slots) & set(place.slots):
            raise PlaceOccupied(
                f"{part.id} is where {place.profile} at {place.start} should be",
                device=str(parent.id),
                remedy="destroy it, or let it be offered",
            )
    return None


def destroy(host: Host, partition: Device) -> None:
    """Return when *partition* is gone; fine if its device is."""
    assert partition.placement is not None
    what = f"{partition.placement.profile} {partition.placement.start}"
    function = _function(host, partition)
    try:
        there = what in function.read("parts").splitlines()
    except NotThere:
        return
    if there:
        _write(host, partition, "unmake", what, PartitionInUse)
        if what in function.read("parts").splitlines():
            raise PartitionError(f"{partition.id} was unmade but is there", device=what)


def set_mode(host: Host, device: Device, mode: str) -> None:
    """Return when *device* is in *mode*."""
    function = _function(host, device)
    wanted = next((m for m in device.modes if m.name == mode), None)
    if wanted is None:
        raise PartitionError(f"{device.id} has no mode {mode}", device=str(device.id))
    if function.read("mode").strip() == mode:
        return
    _write(host, device, "mode", mode, ModeBusy)
    if function.read("mode").strip() != mode:
        raise NeedsReset(
            f"{device.id} changes to {mode} only when the host boots",
            device=str(device.id),
            remedy="drain the node and boot it",
        )


def _write(host: Host, device: Device, name: str, text: str, refusal: type[PartitionError]) -> None:
    address = device.locality.pci_address
    try:
        host.write(f"/sys/bus/pci/devices/{address}/{name}", text)
    except SourceError as error:
        raise refusal(f"{device.id}: {name} {text}: {error}", device=str(device.id)) from error


def _function(host: Host, device: Device) -> PciFunction:
    return PciFunction(address=device.locality.pci_address or "", host=host)
