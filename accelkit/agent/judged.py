"""How devices were judged, as it lasts through a restart. Not here: how it is written down."""

from collections.abc import Mapping
from datetime import datetime

import attrs

from accelkit.agent.heard import Told
from accelkit.core.model import DeviceId
from accelkit.core.values import FrozenMap, Health, freeze
from accelkit.core.view import Past, Verdict


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Judged:
    """What lasts of the verdict on one device."""

    device: DeviceId
    health: Health
    overdue: bool = False
    since_s: float = 0.0
    """Monotonic seconds: they go on counting through a boot, whoever looks."""
    since: datetime | None = None
    past: Past | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Course:
    """What was heard in this boot, and how devices were judged last."""

    format: str = ""
    writer: str = ""
    told: Told = Told()
    judged: tuple[Judged, ...] = ()


def judged(verdicts: Mapping[DeviceId, Verdict]) -> tuple[Judged, ...]:
    """What lasts of *verdicts*."""
    return tuple(
        Judged(
            device=device,
            health=verdict.health,
            overdue=verdict.overdue,
            since_s=verdict.since_s,
            since=verdict.since,
            past=verdict.past,
        )
        for device, verdict in verdicts.items()
    )


def verdicts(course: Course, now_s: float) -> FrozenMap[DeviceId, Verdict]:
    """Verdicts as the next ones build on them: without reasons, which are looked for anew.

    Args:
        course: As it was written down.
        now_s: Monotonic seconds. What is later is of another boot, and counts from now on.
    """
    return FrozenMap(
        (
            one.device,
            Verdict(
                health=one.health,
                overdue=one.overdue,
                since_s=min(one.since_s, now_s),
                since=one.since,
                past=None if one.past is None else _until(one.past, now_s),
            ),
        )
        for one in course.judged
    )


def _until(past: Past, now_s: float) -> Past:
    return attrs.evolve(
        past,
        turned_s=min(past.turned_s, now_s),
        changes=tuple(min(at, now_s) for at in past.changes),
        flapping_s=None if past.flapping_s is None else min(past.flapping_s, now_s),
        since_s=min(past.since_s, now_s),
    )
