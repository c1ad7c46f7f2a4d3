"""What devices shall be, as values. Not here: how that is found."""

import attrs

from accelkit.core.model import DeviceId, Placement, Problem
from accelkit.core.policy import When
from accelkit.core.values import freeze


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Wanted:
    """What one whole device shall be."""

    device: DeviceId
    mode: str | None = None
    """None: whichever it is in."""
    places: tuple[Placement, ...] = ()
    """Exactly these partitions, by profile and first slot."""
    begun: tuple[Placement, ...] = ()
    """Those of them that are there and not usable: to be completed."""
    when: When = When.IDLE
    waits: tuple[str, ...] = ()
    """What is in the way, a sentence each; empty: it can be done."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Plan:
    """What all whole devices shall be that the policy wants cut, by id."""

    wanted: tuple[Wanted, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What cannot be, and what has to wait."""
