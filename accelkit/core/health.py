"""From conditions to a verdict. Not here: where conditions come from."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import attrs

from accelkit.core.damping import (
    away,
    continued,
    dated,
    forgotten,
    held_because,
    hold_ends,
    next_end,
    without,
)
from accelkit.core.model import Condition, Device, DeviceId, Snapshot
from accelkit.core.policy import HealthPolicy
from accelkit.core.values import FrozenMap, Health, Scope, Severity, Standing
from accelkit.core.view import Verdict, View

MOST_AWAY = 512
"""Devices of one vendor that are remembered while they are not there."""


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

    FATAL makes it UNHEALTHY at once, known or not, and for ``recoverAfter`` longer; who changes
    too often is UNHEALTHY for ``flap.hold``, and then what it is. Not *known* makes it UNKNOWN,
    overdue after ``graceForUnknown``. Else it is HEALTHY. (H03, H04, H06)

    Args:
        conditions: As they reach the device: overridden, and those of its tree among them.
        previous: The last verdict on the device: the only memory.
        now_s: Monotonic seconds.
        policy: How long is what.
        known: Whether the vendor could be asked about the device.
        now: Wall time, to tell people since when.
    """
    told = tuple(conditions)
    past = continued(previous, fatal(told), now_s, policy)
    reasons = (*told, *held_because(past, now_s, policy, now))
    unsure = Health.HEALTHY if known else Health.UNKNOWN
    health = Health.UNHEALTHY if fatal(reasons) else unsure
    since_s, since = _since(previous, health, now_s, now)
    end = hold_ends(past, policy)
    return Verdict(
        health=health,
        reasons=reasons,
        overdue=health is Health.UNKNOWN and now_s >= since_s + policy.grace_for_unknown,
        since=since,
        until=None if end is None or now is None else now + timedelta(seconds=end - now_s),
        since_s=since_s,
        past=dated(past, health, since_s, since),
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
                _allowed(previous.get(device.id), device, policy),
                now_s,
                policy,
                known=device.standing is not Standing.STALE,
                now=now,
            ),
        )
        for device in snapshot.devices
    )


def judge_away(
    snapshot: Snapshot, before: View, now_s: float, policy: HealthPolicy, now: datetime | None
) -> FrozenMap[DeviceId, Verdict]:
    """What counts for devices that are not in *snapshot* any more, should they come back.

    A partition that was unmade is not one of them: who makes it again has a new one.
    """
    kept: dict[str, list[tuple[DeviceId, Verdict]]] = {}
    for i, verdict in before.judged.items():
        was = before.devices.get(i)
        if i in snapshot.by_id or (was is not None and was.root in snapshot.by_id):
            continue
        left = verdict if was is None else away(verdict, now_s, policy, now)
        if not forgotten(left, now_s, policy):
            kept.setdefault(i.vendor, []).append((i, left))
    return FrozenMap(
        one
        for several in kept.values()
        for one in sorted(several, key=lambda one: (one[1].since_s, one[0]))[-MOST_AWAY:]
    )


def next_change(verdicts: Mapping[DeviceId, Verdict], policy: HealthPolicy) -> float | None:
    """When, in monotonic seconds, time alone changes a verdict next; None: never."""
    return min((end for v in verdicts.values() for end in _ends(v, policy)), default=None)


def _ends(verdict: Verdict, policy: HealthPolicy) -> Iterator[float]:
    if verdict.health is Health.UNKNOWN and not verdict.overdue:
        yield verdict.since_s + policy.grace_for_unknown
    end = next_end(verdict.past, policy) if verdict.past is not None else None
    if end is not None:
        yield end


def fatal(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Those of *conditions* that keep everybody from the device."""
    return tuple(c for c in conditions if c.severity is Severity.FATAL)


def _since(
    previous: Verdict | None, health: Health, now_s: float, now: datetime | None
) -> tuple[float, datetime | None]:
    """Since when it is *health*; what was unknown for a moment is as it was before."""
    if previous is None:
        return now_s, now
    if previous.health is health:
        return previous.since_s, previous.since
    past = previous.past
    briefly = previous.health is Health.UNKNOWN and not previous.overdue
    if briefly and past is not None and past.health is health:
        return past.since_s, past.since
    return now_s, now


def _allowed(previous: Verdict | None, device: Device, policy: HealthPolicy) -> Verdict | None:
    """*previous*, where nobody waits for the end of what the operator allows."""
    if previous is None or previous.past is None or not previous.past.faults:
        return previous
    mild = {
        o.code
        for o in policy.overrides
        if o.vendor == device.id.vendor and o.severity is not Severity.FATAL
    }
    return attrs.evolve(previous, past=without(previous.past, mild))


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
