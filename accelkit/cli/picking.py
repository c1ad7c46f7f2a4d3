"""Which devices a pod would get, and why: asked of the code that answers the kubelet.

Not here: how devices are chosen.
"""

from collections.abc import Collection, Mapping, Sequence

import attrs

from accelkit.backends.kubelet.document import Catalog, Entry, catalog_of, fit
from accelkit.backends.kubelet.preferred import Preference, preference_of
from accelkit.cli.deciding import Decision, decision
from accelkit.cli.finding import find
from accelkit.core.errors import ConfigError, DeviceUnavailable, UnknownDevice
from accelkit.core.model import DeviceId
from accelkit.core.preference import Choice, prefer
from accelkit.core.topology import unit_of
from accelkit.core.values import FrozenMap, freeze
from accelkit.core.view import View


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Wish:
    """What a pod asks for, and what is gone already."""

    size: int
    resource: str | None = None
    """None: the only one."""
    taken: tuple[str, ...] = ()
    must: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Pick:
    """An answer with its reasons."""

    resource: str
    size: int
    ids: tuple[str, ...]
    devices: FrozenMap[str, DeviceId]
    """What each id of the resource stands for."""
    closeness: int
    exact: bool
    upper: int
    """No set is closer than this."""
    legal: bool
    """Whether the pod would get it: the vendor can run it."""
    proposed: bool
    """Whether it is a set that the vendor names, or the vendor names none."""
    method: str
    left: tuple[str, ...]
    """What is still free then."""
    left_closeness: int
    next_closeness: int | None
    """Of the best set of the same size among what is left; None: it does not suffice."""
    unavailable: FrozenMap[str, str]
    """Ids of the resource that are not to be had, and why."""
    decision: Decision
    """Why these."""


def pick(view: View, wish: Wish) -> Pick:
    """Answer *wish* as the kubelet would be answered.

    Raises:
        ConfigError: The resource is not clear, or the wish contradicts itself.
        UnknownDevice: A device that is named is not in the resource.
        DeviceUnavailable: There are not enough devices.
    """
    catalog = fit(catalog_of(view), view)
    resource = _resource(catalog, wish.resource)
    entries = catalog[resource]
    taken, must = (_ids(view, resource, entries, words) for words in (wish.taken, wish.must))
    if both := sorted({*taken} & {*must}):
        raise ConfigError([("--must", f"{both[0]} is taken")])
    free = [entry.wire.id for entry in entries if not entry.why and entry.wire.id not in taken]
    preference = preference_of(view, entries, None)
    there = len({*free, *must})
    if preference is None or there < wish.size:
        raise DeviceUnavailable(
            f"{wish.size} of {resource} are wanted, {there} are free",
            remedy="see: accelkit devices",
        )
    if len(must) > wish.size:
        raise ConfigError([("--must", f"names {len(must)} for a pod that asks for {wish.size}")])
    return _answered(resource, entries, preference, free, must, size=wish.size)


def _answered(
    resource: str,
    entries: Sequence[Entry],
    preference: Preference,
    free: Sequence[str],
    must: Sequence[str],
    *,
    size: int,
) -> Pick:
    choice = _asked(preference, free, must, size)
    left = tuple(name for name in free if name not in choice.ids)
    again = _asked(preference, left, (), size) if len(left) >= size else None
    return Pick(
        resource=resource,
        size=size,
        ids=choice.ids,
        devices=FrozenMap((entry.wire.id, entry.device) for entry in entries),
        closeness=choice.closeness,
        exact=choice.exact,
        upper=choice.upper,
        legal=choice.legal or not _is_law(preference),
        proposed=choice.legal,
        method=choice.method.value,
        left=left,
        left_closeness=choice.rest,
        next_closeness=None if again is None else again.closeness,
        unavailable=FrozenMap((entry.wire.id, entry.why) for entry in entries if entry.why),
        decision=decision(preference, free, must, choice),
    )


def _resource(catalog: Catalog, wanted: str | None) -> str:
    if wanted is not None and wanted in catalog:
        return wanted
    names = ", ".join(catalog) or "none"
    if wanted is not None:
        raise ConfigError([("--resource", f"{wanted} is not offered here; there are: {names}")])
    if len(catalog) != 1:
        raise ConfigError(
            [("--resource", f"say which; there are: {names}")]
            if catalog
            else [("--pick", "nothing is offered through the kubelet here")]
        )
    return next(iter(catalog))


def _ids(
    view: View, resource: str, entries: Sequence[Entry], words: Collection[str]
) -> tuple[str, ...]:
    """The ids that *words* name: of the list itself, or devices, of which all shares are meant."""
    listed: Mapping[str, Entry] = {entry.wire.id: entry for entry in entries}
    ids: list[str] = []
    for word in words:
        if word in listed:
            ids.append(word)
            continue
        device = find(view, word)
        of_device = [entry.wire.id for entry in entries if entry.device == device.id]
        if not of_device:
            raise UnknownDevice(f"{device.id} is not in {resource}", remedy="see: accelkit devices")
        ids += of_device
    return tuple(dict.fromkeys(ids))


def _asked(
    preference: Preference, free: Collection[str], must: Collection[str], size: int
) -> Choice:
    unit = unit_of(preference.view, preference.offer, [*free, *must])
    topology, legal = preference.topology, preference.legal
    return prefer(topology, free, must, size, unit=unit, legal=legal)


def _is_law(preference: Preference) -> bool:
    return preference.legal is not None and preference.legal.hard
