"""The record of this boot's claims, a file each. Not here: what is done for a claim."""

from pathlib import Path

from accelkit.agent.disk import Disk
from accelkit.core.clock import Clock


class Ledger:
    """Entries in ``<run>/<boot>/claims``, shared by all instances on the node.

    Args:
        run: The run directory.
        boot: Id of this boot: what earlier ones left is void.
        writer: Our version.
        disk: The door to files.
    """

    def __init__(
        self,
        run: Path,
        boot: str,
        *,
        writer: str,
        clock: Clock,
        disk: Disk,
    ) -> None:
        raise NotImplementedError
