"""Whether containers can open a device file. Not here: which files a device has."""

from accelkit.core.allocation import Finding
from accelkit.core.host import Host

_OTHERS = 0o006


def file_finding(
    host: Host, path: str, symptom: str, *, users: str, missing: str, closed: str
) -> Finding | None:
    """What is wrong with the device file at *path*; None: everybody may read and write it.

    Args:
        host: The door.
        path: As the driver makes it.
        symptom: What follows where it is not there.
        users: What containers that do not run as root cannot use where it is not open to all.
        missing: What to do where it is not there.
        closed: What to do where it is not open to all.
    """
    found = host.stat(path)
    if found is None:
        return Finding(
            symptom=symptom,
            suspect="device files",
            proof=f"{path} is not there",
            remedy=missing,
            sure=True,
        )
    if found.mode & _OTHERS != _OTHERS:
        return Finding(
            symptom=f"containers that do not run as root cannot use {users}",
            suspect="permissions",
            proof=f"{path} has mode {found.mode:o}",
            remedy=closed,
        )
    return None
