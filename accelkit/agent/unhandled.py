"""What fails where nobody waits for it is logged, but does not fill the log. Not here: remedies."""

import asyncio
import logging
import traceback

import attrs

from accelkit.core.clock import Clock, RealClock

log = logging.getLogger(__name__)

AGAIN_S = 60.0
"""Between two lines about the same failure: a loop without descriptors fails 100 times a second."""
MOST_PLACES = 100
"""Failures that are told apart."""

_Place = tuple[str, str, int | None]
"""What failed, where."""


@attrs.define
class _Told:
    at_s: float
    since: int = 0
    """How often it came since it was told."""


class Unhandled:
    """An exception handler for a loop: a callback or a task that nobody waits for failed.

    That is a bug, or a lack of something, but not an end.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or RealClock()
        self._told: dict[_Place, _Told] = {}

    def __call__(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        known = error if isinstance(error, BaseException) else None
        place = _place(known, str(context.get("message")))
        now_s = self._clock.monotonic()
        told = self._told.get(place)
        if told is not None and now_s < told.at_s + AGAIN_S:
            told.since += 1
            return
        if len(self._told) >= MOST_PLACES:
            self._told.clear()
        self._told[place] = _Told(now_s)
        again = {"again": told.since + 1} if told is not None else {}
        log.error(
            "callback failed", extra={"what": context.get("message"), **again}, exc_info=known
        )


def _place(error: BaseException | None, what: str) -> _Place:
    # Messages name objects by their address: no two are alike.
    if error is None:
        return what.partition("<")[0], "", None
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    where = (frames[0].filename, frames[0].lineno) if frames else ("", None)
    return (type(error).__name__, *where)
