"""Preferred allocation: which of the available devices to take together.

What makes devices close is not here: a topology comes with its weights.
"""

from accelkit.core.preference.choose import prefer
from accelkit.core.preference.policies import (
    Level,
    of_devices,
    of_shares,
    share_id,
    share_ids,
    used,
    worths,
)
from accelkit.core.preference.topology import (
    Choice,
    Family,
    Legality,
    Method,
    Topology,
    closeness,
    family,
)

__all__ = [
    "Choice",
    "Family",
    "Legality",
    "Level",
    "Method",
    "Topology",
    "closeness",
    "family",
    "of_devices",
    "of_shares",
    "prefer",
    "share_id",
    "share_ids",
    "used",
    "worths",
]
