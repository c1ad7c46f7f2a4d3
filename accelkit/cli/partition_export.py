"""Today's cuts as the part of a policy that makes them. Not here: making them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from glob import escape
from typing import TYPE_CHECKING

import attrs

from accelkit.core.model import Device, DeviceId, Snapshot
from accelkit.core.policy import API_VERSION, KIND
from accelkit.core.values import FrozenMap, Standing, freeze

if TYPE_CHECKING:
    from accelkit.core.serde import Tree

WHOLE = "whole"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class _Cut:
    """How one whole device is cut."""

    mode: str = ""
    """Which decides all of it; empty: its partitions are made one by one."""
    layout: FrozenMap[str, int] = FrozenMap()

    @property
    def name(self) -> str:
        """Of its layout: 4x1g.10gb-1x3g.40gb."""
        return "-".join(f"{n}x{profile}" for profile, n in self.layout.items()) or WHOLE

    @property
    def rule(self) -> "dict[str, Tree]":
        if self.mode:
            return {"how": "mode", "mode": self.mode}
        return {"how": "layout", "layout": self.name}


def policy_of(snapshot: Snapshot) -> "dict[str, Tree]":
    """A policy that lets the devices of *snapshot* be cut as they are, and nothing else.

    Devices of one product that are all cut alike have one rule, others a rule for each cut that
    names them. Devices that cannot be cut have none.
    """
    cuts = dict(_cuts(snapshot))
    layouts = {cut.name: dict(cut.layout) for cut in cuts.values() if not cut.mode}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **({"layouts": {name: {**layouts[name]} for name in sorted(layouts)}} if layouts else {}),
        "partitioning": [*_rules(snapshot, cuts)],
    }


def _rules(snapshot: Snapshot, cuts: Mapping[DeviceId, _Cut]) -> "Iterator[Tree]":
    products: dict[tuple[str, str], list[Device]] = {}
    for device in snapshot.devices:
        if device.id in cuts:
            products.setdefault((device.id.vendor, device.product or ""), []).append(device)
    for (vendor, product), devices in sorted(products.items()):
        alike: dict[_Cut, list[Tree]] = {}
        for device in devices:
            alike.setdefault(cuts[device.id], []).append(escape(device.id.name))
        for cut, names in alike.items():
            select: dict[str, Tree] = {"vendor": vendor}
            if len(alike) > 1:
                select["name"] = names
            elif product:
                select["product"] = escape(product)
            yield {"select": select, **cut.rule}


def _cuts(snapshot: Snapshot) -> Iterable[tuple[DeviceId, _Cut]]:
    parts: dict[DeviceId, list[Device]] = {}
    for device in snapshot.devices:
        if device.parent is not None:
            parts.setdefault(device.parent, []).append(device)
    for device in snapshot.devices:
        whole = device.parent is None and device.standing is Standing.PRESENT
        if whole and (device.profiles or device.modes):
            yield device.id, _cut_of(device, parts.get(device.id, []))


def _cut_of(device: Device, parts: Iterable[Device]) -> _Cut:
    profiles: Mapping[str, int] = Counter(
        part.placement.profile for part in parts if part.placement is not None
    )
    fixed = any(mode.cut in profiles for mode in device.modes)
    if device.mode and (fixed or not profiles):
        return _Cut(mode=device.mode)
    return _Cut(layout=FrozenMap(profiles))
