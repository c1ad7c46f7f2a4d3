"""What an operator wants devices to be cut to, and what is left to do for it. Pure.

Where partitions go is told by core.partition; what is done, and when, is the agent's.
"""

from accelkit.core.partitioning.plan import plan
from accelkit.core.partitioning.potential import potential, whole_again
from accelkit.core.partitioning.rules import partitioning_of
from accelkit.core.partitioning.steps import Create, Destroy, SetMode, Step, steps
from accelkit.core.partitioning.wanted import Plan, Wanted

__all__ = [
    "Create",
    "Destroy",
    "Plan",
    "SetMode",
    "Step",
    "Wanted",
    "partitioning_of",
    "plan",
    "potential",
    "steps",
    "whole_again",
]
