"""Cutting devices: what fits where, and what competes for what. Pure.

What an operator wants of devices is not here: a layout is counts of profiles.
"""

from accelkit.core.partition.arranging import Arrangement
from accelkit.core.partition.counters import Counters, counters
from accelkit.core.partition.filling import choose_start, filling_order, openings
from accelkit.core.partition.group import Member, place_group
from accelkit.core.partition.placing import place

__all__ = [
    "Arrangement",
    "Counters",
    "Member",
    "choose_start",
    "counters",
    "filling_order",
    "openings",
    "place",
    "place_group",
]
