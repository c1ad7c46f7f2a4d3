"""Somebody else who serves a name of ours: how it is noticed. Not here: what is done about it."""

from collections.abc import Collection, Iterable

import attrs

from accelkit.backends.kubelet.document import WireDevice

PASSES = 2
"""Looks in a row that must differ: a list that was just sent may not be there yet."""
ANSWERS = 3
"""How often we register anew within the window; then whoever it is will not give way."""
SHOWN = 3


def difference(listed: Iterable[WireDevice], believed: Collection[str]) -> str:
    """How the healthy ids that the kubelet has differ from *listed*; empty: they do not."""
    listed = tuple(listed)
    strange = sorted(set(believed) - {device.id for device in listed})
    missing = sorted({device.id for device in listed if device.healthy} - set(believed))
    parts = (
        f"has {_some(strange)}, which are not ours" if strange else "",
        f"lacks {_some(missing)} of ours" if missing else "",
    )
    return " and ".join(filter(None, parts))


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more


@attrs.define
class Rival:
    """What was seen of a rival for one resource.

    Args:
        window_s: How long an answer counts.
    """

    window_s: float
    passes: int = 0
    answered_at: list[float] = attrs.field(factory=list)

    def seen(self, *, differs: bool, now_s: float) -> tuple[bool, bool]:
        """Take one look into account.

        Returns:
            Whether there is a rival, and whether to register anew because of it.
        """
        self.passes = self.passes + 1 if differs else 0
        if self.passes < PASSES:
            return False, False
        self.answered_at = [at for at in self.answered_at if now_s - at < self.window_s]
        if len(self.answered_at) >= ANSWERS:
            return True, False
        self.answered_at.append(now_s)
        self.passes = 0
        return True, True
