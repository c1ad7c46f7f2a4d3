"""Open the door that a path leads to: a real host, a simulated machine or a capture."""

from pathlib import Path

from accelkit.core.errors import ConfigError
from accelkit.core.host import Host
from accelkit.core.real_host import RealHost

MACHINE = "machine.json"
"""What makes a folder a simulated machine; a real host loads nothing else of those."""
LOCK = "machine.lock"
"""Is there before the machine is."""
CAPTURE = "capture.json"
"""The same of a capture."""


def open_host(path: str) -> Host:
    """The host at *path*: the machine or capture that is there, else the root of a real host.

    Raises:
        ConfigError: There is no such directory, or what it holds cannot be opened.
    """
    folder = Path(path)
    if not path or not folder.is_dir():  # an empty variable of a script is not this machine
        raise ConfigError(
            [(path or "host", "is not a directory")], remedy="name a machine, or / or its mount"
        )
    if (folder / MACHINE).exists():
        from accelkit.testing.machine_host import MachineHost  # noqa: PLC0415 - loaded for machines only

        return MachineHost(path)
    if (folder / LOCK).exists():
        raise ConfigError(
            [(path, "the simulated machine there was not finished")],
            remedy="make it again: accelkit simulate VENDOR DIR",
        )
    if (folder / CAPTURE).exists():
        from accelkit.testing.captures.replaying import CaptureHost  # noqa: PLC0415 - the same

        return CaptureHost(path)
    return RealHost(path)
