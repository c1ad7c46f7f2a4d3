"""What is wrong with layouts, and with rules that cut devices. Not here: what a device can be."""

from accelkit.core.model import SLOTS_LIMIT
from accelkit.core.policy import (
    Foreign,
    Partitioning,
    PartitioningHow,
    Policy,
    Selection,
    When,
)
from accelkit.core.serde.keys import child, did_you_mean
from accelkit.core.sharing_check import Found

_NEEDS = {"layout": PartitioningHow.LAYOUT, "mode": PartitioningHow.MODE}


def layout_problems(policy: Policy) -> Found:
    """What is wrong with the layouts and the partitioning of *policy*."""
    for name, layout in policy.layouts.items():
        path = child("$.layouts", name)
        if not name.strip():
            yield path, "a layout needs a name"
        for profile, times in layout.items():
            if not profile.strip():
                yield child(path, profile), "expected the name of a profile"
            if not 1 <= times <= SLOTS_LIMIT:
                yield child(path, profile), f"expected 1 to {SLOTS_LIMIT}, found {times}"
    before: dict[Selection, str] = {}
    for n, rule in enumerate(policy.partitioning):
        path = child("$.partitioning", n)
        yield from _rule(rule, policy, path)
        taker = before.get(Selection()) or before.get(rule.select)
        if taker is not None:
            yield f"{path}.select", f"never reached: {taker} comes first and takes all of it"
        before.setdefault(rule.select, path)


def _rule(rule: Partitioning, policy: Policy, path: str) -> Found:
    if rule.select.partition or rule.select.profile:
        yield f"{path}.select", "selects partitions: only whole devices are cut"
    if rule.layout and rule.layout not in policy.layouts:
        hint = did_you_mean(rule.layout, policy.layouts)
        yield f"{path}.layout", f"there is no layout {rule.layout!r}{hint}"
    for key, how in _NEEDS.items():
        given = bool(getattr(rule, key))
        if given and rule.how is not how:
            yield f"{path}.{key}", f"means nothing unless how is {how}"
        if not given and rule.how is how:
            yield f"{path}.{key}", f"missing: how is {how}"
    if rule.profiles and rule.how is not PartitioningHow.DYNAMIC:
        yield f"{path}.profiles", "means nothing unless how is dynamic"
    if rule.how is PartitioningHow.NONE:
        yield from _nothing(rule, path)
    if rule.how is PartitioningHow.DYNAMIC:
        yield from _dynamic(rule, policy, path)


def _nothing(rule: Partitioning, path: str) -> Found:
    if rule.foreign is not Foreign.KEEP:
        yield f"{path}.foreign", "means nothing while how is none"
    if rule.when is not When.IDLE:
        yield f"{path}.when", "means nothing while how is none"


def _dynamic(rule: Partitioning, policy: Policy, path: str) -> Found:
    if all(offer.through == "kubelet" for offer in policy.offers):
        text = "dynamic: no offer goes through dra, and kubelet hands out only what is there"
        yield f"{path}.how", text
    for n, glob in enumerate(rule.profiles):
        if not glob.strip():
            yield child(f"{path}.profiles", n), "expected a glob of profiles"
