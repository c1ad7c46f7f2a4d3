"""From conditions to a verdict. Not here: where conditions come from."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import attrs

from accelkit.core.model import Condition, Device, DeviceId, Snapshot
from accelkit.core.policy import HealthPolicy
from accelkit.core.values import FrozenMap, Health, Scope, Severity, Standing
from accelkit.core.view import Verdict


def assess(
    conditions: Iterable[Condition],
    previous: Verdict | None,
    now_s: float,
    policy: HealthPolicy,
    *,
    known: bool = True,
    now: datetime | None = None,
) -> Verdict:
    """Judge a device by all *conditions* that reach it.

    FATAL makes it UNHEALTHY at once, known or not; not *known* makes it UNKNOWN, overdue after
    ``graceForUnknown``; else it is HEALTHY at once. (H03, H06)

    Args:
        conditions: As they reach the device: overridden, and those of its tree among them.
        previous: The last verdict on the device: the only memory, so that whatever damps
            changes can depend on nothing else.
        now_s: Monotonic seconds.
        policy: How long UNKNOWN may last.
        known: Whether the vendor could be asked about the device.
        now: Wall time, to tell people since when.
    """
    reasons = tuple(conditions)
    if any(c.severity is Severity.FATAL for c in reasons):
        health = Health.UNHEALTHY
    else:
        health = Health.HEALTHY if known else Health.UNKNOWN
    since_s, since = now_s, now
    if previous is not None and previous.health is health:
        since_s, since = previous.since_s, previous.since
    return Verdict(
        health=health,
        reasons=reasons,
        overdue=health is Health.UNKNOWN and now_s - since_s > policy.grace_for_unknown,
        since=since,
        since_s=since_s,
    )


def judge(
    snapshot: Snapshot,
    previous: Mapping[DeviceId, Verdict],
    now_s: float,
    policy: HealthPolicy,
    now: datetime | None = None,
) -> FrozenMap[DeviceId, Verdict]:
    """Judge every device of *snapshot*; severities as the operator overrides them."""
    reaching = _spread(snapshot.devices, policy)
    return FrozenMap(
        (
            device.id,
            assess(
                reaching[device.id],
                previous.get(device.id),
                now_s,
                policy,
                known=device.standing is not Standing.STALE,
                now=now,
            ),
        )
        for device in snapshot.devices
    )


def grace_ends(verdicts: Mapping[DeviceId, Verdict], grace: float) -> float | None:
    """When, in monotonic seconds, the next UNKNOWN device becomes overdue; None: never."""
    return min(
        (
            v.since_s + grace
            for v in verdicts.values()
            if v.health is Health.UNKNOWN and not v.overdue
        ),
        default=None,
    )


def _spread(
    devices: Iterable[Device], policy: HealthPolicy
) -> dict[DeviceId, tuple[Condition, ...]]:
    """Of each device its own conditions and those that reach it from its tree and its vendor.

    Of several with one code the worst counts, its own first.
    """
    all_of = tuple(devices)
    own = {d.id: tuple(_overridden(d, policy)) for d in all_of}
    trees: dict[DeviceId, list[Condition]] = {}
    vendors: dict[str, list[Condition]] = {}
    for device in all_of:
        for condition in own[device.id]:
            if condition.scope is Scope.TREE:
                trees.setdefault(device.root, []).append(condition)
            elif condition.scope is Scope.VENDOR:
                vendors.setdefault(device.id.vendor, []).append(condition)
    return {
        d.id: _worst_of_each((*own[d.id], *trees.get(d.root, ()), *vendors.get(d.id.vendor, ())))
        for d in all_of
    }


_WORSE = {Severity.INFO: 0, Severity.DEGRADED: 1, Severity.FATAL: 2}


def _worst_of_each(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    by_code: dict[str, Condition] = {}
    for condition in conditions:
        before = by_code.get(condition.code)
        if before is None or _WORSE[condition.severity] > _WORSE[before.severity]:
            by_code[condition.code] = condition
    return tuple(by_code.values())


def _overridden(device: Device, policy: HealthPolicy) -> Iterable[Condition]:
    severities = {o.code: o.severity for o in policy.overrides if o.vendor == device.id.vendor}
    for condition in device.conditions:
        severity = severities.get(condition.code, condition.severity)
        yield attrs.evolve(condition, severity=severity)
