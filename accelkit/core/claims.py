"""Claims as this node records them: what was promised, and how far it got. Not here: files."""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import attrs

from accelkit.core.allocation import Answer, ClaimRef, Piece, PodRef, Setting
from accelkit.core.model import DeviceId
from accelkit.core.values import FrozenMap, freeze

_UID = re.compile(r"[0-9a-f-]{1,64}")


def is_uid(text: str) -> bool:
    """Whether *text* is a uid as Kubernetes makes them: never a path."""
    return _UID.fullmatch(text) is not None


class EntryState(StrEnum):
    """How far a claim got."""

    WORKING = "working"
    """Its places are held; its devices are not ready yet."""
    READY = "ready"
    """Everything is done, and its CDI file was on disk."""
    RELEASING = "releasing"
    """It is being undone."""
    STUCK = "stuck"
    """Answered as released, but it could not be undone: its places stay held."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class CdiRecord:
    """The file that describes a claim's devices to container runtimes."""

    file: str
    """Its name in the CDI directory."""
    digest: str
    """``sha256:`` and the hexadecimal digest of its bytes."""
    spec: Mapping[str, object] = attrs.field(hash=False)
    """The document, from which the same bytes can be made again."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class LedgerEntry:
    """One claim of this boot. An entry is its own undo list: only what it lists is ever undone."""

    state: EntryState
    claim: ClaimRef
    driver: str
    pieces: tuple[Piece, ...]
    """With the offer under which each was had."""
    pods: tuple[PodRef, ...] = ()
    """Those for which it was reserved when it was prepared."""
    extended: str | None = None
    """The resource name, for a claim that the scheduler made for an extended resource."""
    drivers: FrozenMap[str, str] = FrozenMap()
    """What the drivers were called from which it has devices, by vendor; see `called`."""
    modes: FrozenMap[DeviceId, str] = FrozenMap()
    """The mode that a whole device must be in while the claim lives."""
    create: tuple[DeviceId, ...] = ()
    """Partitions that were made for it, in the order of making."""
    handles: FrozenMap[DeviceId, str] = FrozenMap()
    """The maker's ids of those partitions: what has another one in their place is not ours."""
    settings: tuple[Setting, ...] = ()
    cdi: CdiRecord | None = None
    answer: tuple[Answer, ...] = ()
    trace: tuple[tuple[str, float], ...] = attrs.field(default=(), eq=False)
    """(step, milliseconds) of the last preparation or release."""
    since: datetime | None = attrs.field(default=None, eq=False)
    """When it came into its state."""
    writer: str = attrs.field(default="", eq=False)
    """The version that wrote it."""

    @property
    def called(self) -> Mapping[str, str]:
        """What the drivers were called from which it has devices, by vendor, as far as is known.

        Only those who were called so are asked by the kubelet to give it back.
        """
        vendors = {piece.device.vendor for piece in self.pieces}
        return self.drivers or (dict.fromkeys(vendors, self.driver) if len(vendors) == 1 else {})

    @property
    def places(self) -> tuple[Piece, ...]:
        """The pieces that take something: all but those of admin access."""
        return tuple(piece for piece in self.pieces if not piece.admin)
