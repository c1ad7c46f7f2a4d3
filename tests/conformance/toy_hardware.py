"""What a toy of a DRA driver drives, and what it remembers. Not here: the driver."""

from pathlib import Path

import attrs

from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import Json
from accelkit.core.model import Device, DeviceId, DeviceNode


@attrs.define(kw_only=True)
class Hardware:
    """Devices, which outlive every process."""

    home: Path
    count: int = 0
    sick: set[str] = attrs.Factory(set)
    lost: set[str] = attrs.Factory(set)
    levels: dict[str, str] = attrs.Factory(dict)
    """What is configured, by device."""
    stuck: bool = False

    def make(self, count: int) -> None:
        self.count = count
        (self.home / "dev").mkdir(exist_ok=True)
        for name in self.names:
            self.file(name).touch()

    @property
    def names(self) -> list[str]:
        return [f"npu-{number}" for number in range(self.count)]

    def file(self, name: str) -> Path:
        return self.home / "dev" / name.partition("-half")[0]

    def devices(self) -> tuple[Device, ...]:
        return tuple(
            Device(
                id=DeviceId(vendor="toy", name=name),
                kind="npu",
                nodes=(DeviceNode(path=f"/dev/{name}", host_path=str(self.file(name))),),
            )
            for name in self.names
        )


@attrs.frozen(kw_only=True)
class Piece:
    """A device, or a share of it, that a claim has."""

    device: str
    request: str
    share: str | None = None
    admin: bool = False


@attrs.define(kw_only=True)
class Entry:
    """A claim that was prepared."""

    ref: ClaimRef
    pieces: tuple[Piece, ...]
    level: str = ""
    spec: Json = attrs.Factory(dict)


@attrs.define
class Record:
    """What outlives a process: as good as on disk."""

    claims: dict[str, Entry] = attrs.Factory(dict)
    """By uid."""
    unread: dict[str, Entry] = attrs.Factory(dict)
    """Those of which a file says what cannot be read: their devices stay held."""
    plugged: bool = False
    """Pods may have devices by the device plugin."""

    def holder(self, device: str) -> Entry | None:
        """Who has a device, or something that overlaps it, for himself."""
        root = device.partition("-half")[0]
        for entry in (*self.claims.values(), *self.unread.values()):
            for piece in entry.pieces:
                whole = piece.device in {device, root} or device == root
                same = whole and piece.device.partition("-half")[0] == root
                if same and piece.share is None and not piece.admin:
                    return entry
        return None

    @property
    def held(self) -> set[str]:
        """Devices that claims have."""
        return {p.device for e in self.claims.values() for p in e.pieces if not p.admin}

    @property
    def shared(self) -> set[str]:
        return {p.device for e in self.claims.values() for p in e.pieces if p.share}
