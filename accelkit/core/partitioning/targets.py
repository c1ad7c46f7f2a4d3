"""What the rule of one device makes of it. Not here: which devices, and the steps."""

from collections.abc import Iterable, Mapping

from accelkit.core.errors import Misfit, PartitionError, UnknownMode, UnsatisfiableLayout
from accelkit.core.model import Device, Mode, Placement
from accelkit.core.partition import place
from accelkit.core.partitioning.rules import mode_named, profile_named
from accelkit.core.partitioning.site import Site
from accelkit.core.partitioning.wanted import Wanted
from accelkit.core.places import mode_for
from accelkit.core.policy import PartitioningHow
from accelkit.core.values import Scope


def target(site: Site, layouts: Mapping[str, Mapping[str, int]]) -> Wanted:
    """What the device shall be, whoever is in the way.

    Raises:
        UnsatisfiableLayout: It cannot be cut so, beside what must stay.
        UnknownMode: It has no such mode.
        PartitionError: There is no such layout.
    """
    match site.rule.how:
        case PartitioningHow.LAYOUT:
            return _of_layout(site, layouts)
        case PartitioningHow.MODE:
            return _of_mode(site)
        case _:
            return _wanted(site, None, _as_found(site))


def _of_mode(site: Site) -> Wanted:
    mode = mode_named(site.device, site.rule.mode)
    if mode is None:
        known = ", ".join(mode.name for mode in site.device.modes) or "none"
        raise UnknownMode(
            f"{site.device.id} has no mode {site.rule.mode!r}; there is {known}",
            device=str(site.device.id),
            remedy="correct partitioning in the policy, or what it selects",
        )
    there = mode.name == site.device.mode
    return _wanted(site, mode, _as_found(site) if there else _cut_of(site.device, mode))


def _of_layout(site: Site, layouts: Mapping[str, Mapping[str, int]]) -> Wanted:
    device, name = site.device, site.rule.layout
    if name not in layouts:
        raise PartitionError(f"{device.id}: there is no layout {name!r}", device=str(device.id))
    layout = {profile: n for profile, n in layouts[name].items() if n}
    mode = _mode_of(device, layout)
    if mode is not None and mode.cut in layout:
        there = mode.name == device.mode
        return _wanted(site, mode, site.there if there else _cut_of(device, mode))
    if mode is not None and mode.name != device.mode:
        return _wanted(site, mode, place(device, layout).places)
    stay = [part for part in site.carved if site.stays(part)]
    good = [part for part in site.carved if part.usable or part in stay]
    return _wanted(site, mode, place(device, layout, _places(good), _places(stay)).places)


def _wanted(site: Site, mode: Mode | None, places: Iterable[Placement]) -> Wanted:
    places = tuple(sorted(places))
    changes = mode is not None and mode.name != site.device.mode
    begun = [p for p in site.carved if not (p.usable or site.stays(p) or changes)]
    if site.rule.how is not PartitioningHow.LAYOUT:
        begun = []  # a claim may be about to complete it
    return Wanted(
        device=site.device.id,
        mode=None if mode is None else mode.name,
        places=places,
        begun=tuple(sorted(_places(begun) & {*places})),
        when=site.rule.when,
    )


def _places(parts: Iterable[Device]) -> frozenset[Placement]:
    return frozenset(part.placement for part in parts if part.placement is not None)


def _as_found(site: Site) -> frozenset[Placement]:
    """What is there, but for what nobody wants and nobody holds."""
    going = [p for p in site.carved if site.unwanted(p) and not site.held(p)]
    return site.there - _places(going)


def _cut_of(device: Device, mode: Mode) -> tuple[Placement, ...]:
    """The partitions that come with *mode*."""
    profile = profile_named(device, mode.cut or "")
    if profile is None:
        return ()
    return tuple(
        Placement(profile=profile.name, start=start, size=profile.size)
        for start in profile.starts[: mode.count]
    )


def _mode_of(device: Device, layout: Mapping[str, int]) -> Mode | None:
    """The mode that *layout* needs; None: any. Without partitions: one in which it is whole."""
    if not layout:
        return mode_named(device, mode_for(device, device))
    cuts = [mode for mode in device.modes if mode.cut in layout]
    if cuts:
        fitting = [mode for mode in cuts if layout == {mode.cut: mode.count}]
        if not fitting:
            known = " or ".join(sorted({f"{mode.count} of {mode.cut}" for mode in cuts}))
            raise _unfit(device, f"it can be {known}, and nothing beside")
        return min(fitting, key=lambda mode: _disruption(device, mode))
    profiles = [profile_named(device, name) for name in layout]
    modes = sorted({p.mode for p in profiles if p is not None and p.mode is not None})
    if len(modes) > 1:
        raise _unfit(device, f"its partitions need modes {' and '.join(modes)} at once")
    return mode_named(device, modes[0]) if modes else None


def _disruption(device: Device, mode: Mode) -> tuple[bool, bool, bool, str]:
    """How much is disturbed by *mode*, least first."""
    return (
        mode.name != device.mode,
        mode.disturbs is Scope.VENDOR,
        not mode.live,
        mode.name,
    )


def _unfit(device: Device, said: str) -> UnsatisfiableLayout:
    return UnsatisfiableLayout(
        f"{device.id} cannot be cut so: {said}", why=Misfit.MODE, device=str(device.id)
    )
