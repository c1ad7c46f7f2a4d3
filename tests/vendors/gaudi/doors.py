"""Hosts that are not as they should be. Not here: what a simulated machine can do itself."""

from accelkit import AccessDenied, Host, NotThere, SourceError, Stat
from accelkit.core.host import READ_LIMIT, Door


class Denied(Door):
    """One name that may not be read."""

    def __init__(self, host: Host, name: str) -> None:
        super().__init__(host)
        self._name = name

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        if path.endswith(f"/{self._name}"):
            raise AccessDenied(f"{path}: permission denied", operation="read")
        return super().read(path, limit)


class Said(Door):
    """Files that hold something else, or fail in some way; by the end of their paths."""

    def __init__(self, host: Host, said: dict[str, str | SourceError]) -> None:
        super().__init__(host)
        self._said = said

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        for name, said in self._said.items():
            if path.endswith(f"/{name}"):
                if isinstance(said, SourceError):
                    raise said
                return said[:limit]
        return super().read(path, limit)


class Vanishing(Door):
    """Every file is gone as soon as it was seen in its folder."""

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        raise NotThere(f"{path}: there is no such file ({limit})", operation="read")


class Modes(Door):
    """Device files with other rights."""

    def __init__(self, host: Host, mode: int) -> None:
        super().__init__(host)
        self._mode = mode

    def stat(self, path: str) -> Stat | None:
        found = super().stat(path)
        if found is None or found.kind != "c":
            return found
        return Stat(kind="c", major=found.major, minor=found.minor, mode=self._mode)


class NeverOpened(Door):
    """Fails if somebody opens a device file."""

    def _refuse(self, path: str) -> None:
        assert not path.startswith("/dev/"), f"{path} is opened"

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        self._refuse(path)
        return super().read(path, limit)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        self._refuse(path)
        return super().read_bytes(path, limit)

    def ioctl(self, path: str, request: int, payload: bytes) -> bytes:
        raise AssertionError(f"{path} is opened for {request:#x} ({len(payload)} B)")


class NoCard(Door):
    """A driver that shows its cards under other names, or none."""

    def __init__(self, host: Host, *names: str) -> None:
        super().__init__(host)
        self._names = names

    def names(self, path: str) -> tuple[str, ...]:
        return self._names if path.endswith(("/accel", "/habanalabs")) else super().names(path)
