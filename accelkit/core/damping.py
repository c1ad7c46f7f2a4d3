"""What keeps a device that was ill from counting as well at once. Not here: what makes it ill."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

import attrs

from accelkit.core.model import Condition
from accelkit.core.policy import HealthPolicy
from accelkit.core.units import format_duration
from accelkit.core.values import Health, Severity
from accelkit.core.view import Past, Verdict

RECOVERING = "recovering"
"""FATAL reason: what was wrong is gone, but not for long enough."""
FLAPPING = "flapping"
"""FATAL reason: it fell ill and recovered too often."""
NODE_MISSING = "node-missing"
"""FATAL condition: a device file that containers need is not there."""
SERVICE_MISSING = "service-missing"
"""FATAL condition: the daemon that shares the device is not ready."""


def continued(
    previous: Verdict | None,
    fatal: Iterable[Condition],
    now_s: float,
    policy: HealthPolicy,
) -> Past:
    """What to remember of a device that *fatal* conditions reach now.

    Args:
        previous: The last verdict on it; None: it is seen for the first time, which is no change.
        fatal: Those of its conditions that are FATAL.
        now_s: Monotonic seconds.
        policy: What is remembered, and how long.
    """
    # Daemons come up a moment after each start of the agent, device files after the driver: the
    # former are no faults at all, the latter are where they come and go.
    faults = tuple(c for c in fatal if c.code != SERVICE_MISSING)
    lasting = tuple(c for c in faults if c.code != NODE_MISSING)
    before = previous.past if previous is not None else None
    if before is None:
        return Past(ill=bool(faults), turned_s=now_s, faults=lasting)
    busy = faults or before.ill or before.faults or before.changes
    if not busy and before.flapping_s is None:
        return before  # nearly always; a copy costs much more
    past = _with_changes(before, turned=bool(faults) != before.ill, now_s=now_s, policy=policy)
    if faults:
        return attrs.evolve(past, faults=lasting or past.faults)
    if past.faults and now_s >= past.turned_s + policy.recover_after:
        return attrs.evolve(past, faults=())
    return past


def away(previous: Verdict, now_s: float, policy: HealthPolicy, now: datetime | None) -> Verdict:
    """What counts for a device that leaves now: it falls ill, and recovers when it is back."""
    with_its_files = Condition(code=NODE_MISSING, severity=Severity.FATAL)
    past = continued(previous, (with_its_files,), now_s, policy)
    return Verdict(health=Health.UNKNOWN, overdue=True, since=now, since_s=now_s, past=past)


def forgotten(left: Verdict, now_s: float, policy: HealthPolicy) -> bool:
    """Whether nothing of the time before it *left* would hold a device that comes back now."""
    longest = max(policy.recover_after, policy.flap.within, policy.flap.hold)
    return now_s >= left.since_s + longest


def hold_ends(past: Past, policy: HealthPolicy) -> float | None:
    """When, in monotonic seconds, a well device counts as well; None: it does already.

    A device that is ill has an end, too, where it flapped.
    """
    return max((end for _, end in _holds(past, policy)), default=None)


def next_end(past: Past, policy: HealthPolicy) -> float | None:
    """When, in monotonic seconds, the next reason for holding goes; None: there is none."""
    return min((end for _, end in _holds(past, policy)), default=None)


def held_because(
    past: Past, now_s: float, policy: HealthPolicy, now: datetime | None
) -> Iterator[Condition]:
    """A FATAL reason for everything that holds a device down."""
    for code, end in _holds(past, policy):
        if code == FLAPPING:
            hold, begun_s = policy.flap.hold, end - policy.flap.hold
            message = (
                f"it fell ill or recovered more than {policy.flap.changes} times within "
                f"{format_duration(policy.flap.within)}; for {format_duration(hold)} it counts as "
                "ill, whatever it is"
            )
        else:
            gone = ", ".join(c.code for c in past.faults)
            begun_s = past.turned_s
            message = f"{gone}: gone, but not yet for {format_duration(policy.recover_after)}"
        since = None if now is None else now + timedelta(seconds=begun_s - now_s)
        yield Condition(code=code, severity=Severity.FATAL, message=message, since=since)


def forgiven(past: Past, code: str | None = None) -> Past:
    """*past* of a device that an operator says is well again.

    Args:
        past: Of a device whose conditions were read after the operator said so.
        code: What alone is gone; None: all of it.
    """
    if code in {None, FLAPPING}:
        past = attrs.evolve(past, changes=(), flapping_s=None)
    if past.ill:
        return past
    return without(past, {c.code for c in past.faults} if code is None else {code})


def without(past: Past, codes: Collection[str]) -> Past:
    """*past* of a device that need not prove that *codes* are gone."""
    return attrs.evolve(past, faults=tuple(c for c in past.faults if c.code not in codes))


def dated(past: Past, health: Health, since_s: float, since: datetime | None) -> Past:
    """*past* with the last health that was known, and since when."""
    same = (past.health, past.since_s, past.since) == (health, since_s, since)
    if same or health is Health.UNKNOWN:
        return past
    return attrs.evolve(past, health=health, since_s=since_s, since=since)


def _holds(past: Past, policy: HealthPolicy) -> Iterator[tuple[str, float]]:
    """What holds the device down, and when that ends."""
    if past.flapping_s is not None:
        yield FLAPPING, past.flapping_s + policy.flap.hold
    if past.faults and not past.ill:
        yield RECOVERING, past.turned_s + policy.recover_after


def _with_changes(past: Past, *, turned: bool, now_s: float, policy: HealthPolicy) -> Past:
    flap, changes, flapping_s = policy.flap, past.changes, past.flapping_s
    changes = tuple(at for at in changes if now_s - at < flap.within)
    if turned:
        changes = (*changes, now_s)
    if flapping_s is not None and now_s >= flapping_s + flap.hold:
        flapping_s = None
    # What changes while it is held down counts anew: so it is held again if it goes on.
    if flapping_s is None and len(changes) > flap.changes:
        flapping_s, changes = now_s, ()
    return attrs.evolve(
        past,
        ill=past.ill is not turned,
        turned_s=now_s if turned else past.turned_s,
        changes=changes,
        flapping_s=flapping_s,
    )
