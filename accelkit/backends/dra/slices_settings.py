"""How long things about slices may take. Not here: what is done then."""

from hashlib import sha256

import attrs


@attrs.frozen(kw_only=True)
class Patience:
    """Durations in seconds."""

    wipe_s: float = 3.0
    """After a kubelet that was started anew has registered us: it removes our slices by then."""
    settle_s: float = 0.5
    """After slices began to vanish: the rest of them follows."""
    wiped_for_s: float = 600.0
    """Slices that vanish so long after a registration were removed by the kubelet: it tries for
    minutes, if the API server is away."""
    repair_s: float = 30.0
    """After somebody else has changed our slices: time to finish, and to see it."""
    rivals: int = 3
    """So often within the next, and we stop: two who repair each other never end."""
    rivals_for_s: float = 600.0
    jitter_s: float = 10.0
    """Before the first write that changes what is there, the longest: a fleet is upgraded at once,
    its nodes start alone."""
    again_s: tuple[float, float] = (1.0, 60.0)
    """Shortest and longest pause after a request that failed."""
    look_s: float = 0.5
    """Between two looks at what has to be there before anything is written."""
    idle_s: float = 10.0
    """The longest without a look, if nothing happens."""


def jitter_of(node: str, longest: float) -> float:
    """Up to *longest* seconds, always the same for *node*."""
    return longest * int.from_bytes(sha256(node.encode()).digest()[:4]) / 2**32
