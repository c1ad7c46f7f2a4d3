"""What keeps the agent and its backends from their work. Not here: what vendors could not tell."""

import logging
from collections.abc import Callable
from datetime import datetime

from accelkit.core.model import Problem

AGENT = "agent"
"""Owner of the agent's own problems; backends own theirs by name."""

log = logging.getLogger(__name__)


class Problems:
    """Problems by who has them, code and subject: noted once, told once, taken back.

    Args:
        now: The wall clock.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._kept: dict[tuple[str, str, str], Problem] = {}

    def note(self, owner: str, code: str, subject: str, reason: str, remedy: str = "") -> None:
        """Note a problem of *owner*; the same code and subject replaces, its *since* stays."""
        key = (owner, code, subject)
        before = self._kept.get(key)
        if before is None or before.reason != reason:
            log.warning(
                "problem noted",
                extra={"code": code, "subject": subject, "reason": reason, "remedy": remedy},
            )
        self._kept[key] = Problem(
            subject=subject or None,
            code=code,
            reason=reason,
            remedy=remedy,
            since=before.since if before else self._now(),
        )

    def solve(self, owner: str, code: str, subject: str) -> None:
        """Take a problem of *owner* back; one that is not there is fine."""
        if self._kept.pop((owner, code, subject), None) is not None:
            log.info("problem solved", extra={"code": code, "subject": subject})

    @property
    def all(self) -> tuple[Problem, ...]:
        """By code and subject."""
        found = sorted(self._kept.values(), key=lambda p: (p.code, p.subject or ""))
        return tuple(found)
