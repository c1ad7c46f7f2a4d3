"""What the node service was told, and how long things may take."""

from pathlib import Path

import attrs


@attrs.frozen(kw_only=True)
class Patience:
    """Durations in seconds."""

    claim_s: float = 40.0
    """Of reading a claim while the API server is away."""
    answer_s: float = 43.0
    """Of a claim's answer, or of its release; the kubelet gives up after 45 s, and an answer that
    comes later tells nobody anything."""
    again_s: tuple[float, float] = (0.2, 2.0)
    """Shortest and longest pause between two attempts to read a claim."""
    look_s: float = 1.0
    """Between two looks at sockets and files while all is well."""
    bind_again_s: tuple[float, float] = (1.0, 30.0)
    """Shortest and longest pause after a socket that could not be bound."""
    silent_s: float = 10.0
    """Until it counts that the kubelet did not come, or did not come back."""
    forgotten: int = 60
    """Looks in a row that must find files of no claim before they go: whoever wrote them may be
    another instance, whose record has not been seen yet."""
    drain_s: float = 3.0
    """Of calls that run when the service ends: one that is cut is not moved to another instance,
    and its pod waits for a minute. What the agent does for them has ended by then, if it could."""
    health_s: float = 10.0
    """Between two lists of health."""
    health_expires_s: int = 30
    """How long the kubelet believes a list."""
    repeats: int = 3
    """How often the list is sent again after the end of another instance's stream."""


@attrs.frozen(kw_only=True)
class Settings:
    """What a policy says about the node service."""

    registry: Path
    """Directory where the kubelet looks for plugins."""
    metadata: bool = False
    status_devices: bool = False
    patience: Patience = Patience()
