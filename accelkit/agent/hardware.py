"""What the keeper asks of vendors. Not here: lanes and deadlines, which answer it."""

from collections.abc import Mapping
from typing import Protocol

from accelkit.core.allocation import Edits, Grant, Setting
from accelkit.core.model import Device, DeviceId, Placement
from accelkit.core.working import Needed


class Hardware(Protocol):
    """The vendors' work calls, each by the name of its vendor.

    Every call may be made again after a crash at any point. Errors are those of the vendor's
    contract, or SourceError where the vendor could not be asked or did not answer in time.
    """

    async def edits(self, vendor: str, grant: Grant) -> Edits:
        """What containers need for the set *grant*."""
        ...

    async def needs(self, vendor: str, grant: Grant) -> tuple[Setting, ...]:
        """What must hold while *grant* lives; empty for vendors that set nothing."""
        ...

    async def needed(self, vendor: str, grant: Grant) -> Needed:
        """Both in one turn: what must hold, and if that is nothing, what containers need."""
        ...

    async def apply(self, vendor: str, setting: Setting) -> None:
        """Make *setting* true."""
        ...

    async def revert(self, vendor: str, setting: Setting) -> None:
        """Undo *setting*; fine when its device or driver is gone."""
        ...

    async def create(self, parent: Device, placement: Placement) -> Device:
        """Make a partition and read it back."""
        ...

    async def destroy(self, partition: Device) -> None:
        """Return when it is gone; fine when it, its parent or the driver is."""
        ...

    async def set_mode(self, device: Device, mode: str) -> None:
        """Return when *device* is in *mode*."""
        ...

    async def find(self, device: DeviceId) -> Device | None:
        """*device* as the hardware shows it now, not as it was read last; None: not there."""
        ...

    def config(self, vendor: str, block: Mapping[str, object]) -> object:
        """A claim's block for *vendor* as the vendor's own class.

        Raises:
            ConfigRefused: With the path of everything that is wrong.
        """
        ...
