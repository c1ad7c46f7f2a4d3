"""A policy that changes while the agent runs. Not here: how a policy is read."""

import logging
from collections.abc import Callable
from pathlib import Path

import attrs

from accelkit.agent.knowledge import Knowledge
from accelkit.agent.metrics import Metrics
from accelkit.agent.problems import AGENT, Problems
from accelkit.agent.running import Backends
from accelkit.core.errors import ConfigError
from accelkit.core.policy import Policy

log = logging.getLogger(__name__)

AT_START = ("paths", "vendors", "backends", "kube", "http", "logging")
"""Blocks of the policy that are read at start alone."""
Stamp = tuple[int, int, int]


class Renewal:
    """Takes over a policy that is good, and keeps the old one where it is not.

    Args:
        read: Reads the policy again; raises ConfigError. None: there is no file.
        file: Whose change asks for it.
        stamp: Of the file when it was read; None: it is taken now.
    """

    def __init__(  # noqa: PLR0917 - all that a policy reaches
        self,
        read: Callable[[], Policy] | None,
        file: Path | None,
        knowledge: Knowledge,
        backends: Backends,
        problems: Problems,
        metrics: Metrics,
        stamp: Stamp | None = None,
    ) -> None:
        self._read = read
        self._file = file
        self._first = knowledge.policy
        self._knowledge = knowledge
        self._backends = backends
        self._problems = problems
        self._metrics = metrics
        self._read_as = self._seen = stamp or stamp_of(file)
        for outcome in ("accepted", "refused"):
            metrics.count("accelkit_config_reloads_total", (outcome,), 0)

    def file_changed(self) -> bool:
        """Whether the file is another than the one that was read, and was so at the last look.

        What changes between two looks may be half written: read then, it says something else.
        """
        before, self._seen = self._seen, stamp_of(self._file)
        if self._seen != before or self._seen == self._read_as:
            return False
        self._read_as = self._seen
        return True

    async def renew(self) -> None:
        """Read the policy, and offer devices as it says."""
        if self._read is None:
            return
        subject = str(self._file or "")
        try:
            policy = self._read()
        except ConfigError as error:
            self._metrics.count("accelkit_config_reloads_total", ("refused",))
            self._problems.note(
                AGENT,
                "config-invalid",
                subject,
                str(error),
                "correct the file; until then the policy before stays in force",
            )
            return
        self._metrics.count("accelkit_config_reloads_total", ("accepted",))
        self._problems.solve(AGENT, "config-invalid", subject)
        self._say_restart(policy)
        policy = attrs.evolve(policy, **{block: getattr(self._first, block) for block in AT_START})
        await self._knowledge.adopt(policy)
        self._backends.start(policy)
        for source in self._knowledge.sources.values():
            source.inventory.ring(urgent=True)
        log.info("policy read", extra={"revision": self._knowledge.store.view.revision})

    def _say_restart(self, policy: Policy) -> None:
        for block in AT_START:
            subject = f"$.{block}"
            if getattr(policy, block) == getattr(self._first, block):
                self._problems.solve(AGENT, "restart-needed", subject)
            else:
                why = f"{subject} changed, and it is read at start alone"
                self._problems.note(AGENT, "restart-needed", subject, why, "restart the agent")


def stamp_of(path: Path | None) -> Stamp | None:
    """What changes when a file, or who may read it, does; of a link, when its target does."""
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_ctime_ns) if found else None
