"""Claims' files in the directory that container runtimes read. Not here: what is in them."""

from pathlib import Path

from accelkit.agent.disk import Disk


class ClaimFiles:
    """Files that describe the devices of claims to container runtimes.

    Args:
        directory: The dynamic CDI directory, as this process reaches it.
        disk: The door to files.
    """

    def __init__(self, directory: Path, *, disk: Disk) -> None:
        raise NotImplementedError
