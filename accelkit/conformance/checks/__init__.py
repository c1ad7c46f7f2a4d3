"""Every check, written down. Not here: how checks are run."""

from typing import TypeAlias

from accelkit.conformance.bench import PluginBench
from accelkit.conformance.checks import (
    bad_input,
    concurrency,
    discovery,
    health,
    identity,
    topology,
)
from accelkit.conformance.model import Check

AnyCheck: TypeAlias = Check[PluginBench]

CHECKS: tuple[AnyCheck, ...] = tuple(
    sorted(
        (
            *discovery.CHECKS,
            *identity.CHECKS,
            *health.CHECKS,
            *topology.CHECKS,
            *concurrency.CHECKS,
            *bad_input.CHECKS,
        ),
        key=lambda check: check.id,
    )
)
"""In the order of their ids."""
