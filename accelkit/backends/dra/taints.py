"""Why a device is not to be had, as taints. Pure. Not here: which devices are in a slice at all."""

from collections.abc import Collection, Iterable, Iterator

from accelkit.backends.dra.pool import Dialect, Effect, Taint
from accelkit.core.values import Health, Severity
from accelkit.core.view import Verdict

DOMAIN = "accelkit.dev"
LOST = "lost"
"""It is gone, but a claim has it."""
LEAVING = "leaving"
"""Its offer has it no more; who holds it may keep it."""
STUCK = "stuck"
"""A claim left it behind, and it could not be undone."""
PLACE_OCCUPIED = "place-occupied"
"""Something that no claim explains is where it would be."""
NO_EDITS = "no-edits"
"""What its container needs could not be found."""
UNKNOWN = "unknown"
"""Its health is not known, and has not been for too long."""
UNHEALTHY = "unhealthy"
"""Nothing says why."""
_WORST_FIRST = {Effect.NO_EXECUTE: 0, Effect.NO_SCHEDULE: 1, Effect.NONE: 2}


def of_health(verdict: Verdict | None, evict: Collection[str]) -> Iterator[Taint]:
    """Taints that follow from a *verdict*; None: there is none yet.

    Args:
        verdict: On the device, or on its parent if it does not exist.
        evict: Codes that take pods off a device, however severe.
    """
    if verdict is None:
        yield taint(UNKNOWN)
        return
    fatal = False
    for condition in verdict.reasons:
        fatal |= condition.severity is Severity.FATAL
        if condition.code in evict:
            yield taint(condition.code, Effect.NO_EXECUTE)
        elif condition.severity is Severity.FATAL:
            yield taint(condition.code)
        elif condition.severity is Severity.DEGRADED:
            yield taint(condition.code, Effect.NONE)
    if verdict.health is Health.UNHEALTHY and not fatal:
        yield taint(UNHEALTHY)
    elif verdict.health is Health.UNKNOWN and verdict.overdue:
        yield taint(UNKNOWN)


def taint(code: str, effect: Effect = Effect.NO_SCHEDULE) -> Taint:
    """The taint for *code*."""
    return Taint(key=f"{DOMAIN}/{code}", effect=effect)


def worst_first(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """*taints* in order, each code once with its worst effect."""
    worst: dict[str, Taint] = {}
    for one in sorted(taints, key=lambda one: (_WORST_FIRST[one.effect], one.key)):
        worst.setdefault(one.key, one)
    return tuple(worst.values())


def keeps_away(taints: Iterable[Taint]) -> bool:
    """Whether nobody new may have the device."""
    return any(one.effect is not Effect.NONE for one in taints)


def spoken(taints: Iterable[Taint], dialect: Dialect) -> tuple[Taint, ...]:
    """*taints*, worst first, as far as *dialect* has them."""
    if not dialect.taints:
        return ()
    understood = (one for one in taints if dialect.effect_none or one.effect is not Effect.NONE)
    return tuple(understood)[: dialect.most_taints]
