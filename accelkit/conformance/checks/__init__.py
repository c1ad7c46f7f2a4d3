"""Every check, written down. Not here: how checks are run."""

from typing import TypeAlias

from accelkit.conformance.bench import PluginBench
from accelkit.conformance.checks import (
    agent,
    allocating,
    bad_input,
    cdi,
    claim_calls,
    claims,
    concurrency,
    configured,
    crash,
    crashing,
    cutting,
    defects,
    discovery,
    drivers,
    extended,
    failing,
    health,
    identity,
    life,
    listing,
    measured,
    operating,
    partitioning,
    publishing,
    racing,
    records,
    registering,
    settings,
    shares,
    slices,
    topology,
    upkeep,
)
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.model import Check
from accelkit.conformance.socket_bench import SocketBench

AnyCheck: TypeAlias = Check[PluginBench] | Check[SocketBench] | Check[ClaimsBench]

CHECKS: tuple[AnyCheck, ...] = tuple(
    sorted(
        (
            *discovery.CHECKS,
            *defects.CHECKS,
            *identity.CHECKS,
            *health.CHECKS,
            *topology.CHECKS,
            *concurrency.CHECKS,
            *bad_input.CHECKS,
            *partitioning.CHECKS,
            *cutting.CHECKS,
            *life.CHECKS,
            *settings.CHECKS,
            *failing.CHECKS,
            *crash.CHECKS,
            *crashing.CHECKS,
            *racing.CHECKS,
            *records.CHECKS,
            *shares.CHECKS,
            *configured.CHECKS,
            *registering.CHECKS,
            *listing.CHECKS,
            *allocating.CHECKS,
            *agent.CHECKS,
            *measured.CHECKS,
            *operating.CHECKS,
            *upkeep.CHECKS,
            *claims.CHECKS,
            *extended.CHECKS,
            *slices.CHECKS,
            *publishing.CHECKS,
            *cdi.CHECKS,
            *drivers.CHECKS,
            *claim_calls.CHECKS,
        ),
        key=lambda check: check.id,
    )
)
"""In the order of their ids."""
