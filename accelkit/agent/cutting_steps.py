"""One step of cutting a device, with everybody else kept out. Not here: which steps."""

import json
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from accelkit.agent.disk import in_words
from accelkit.agent.hardware import Hardware
from accelkit.agent.ledger import Ledger
from accelkit.agent.memory import write_whole
from accelkit.core.clock import Clock
from accelkit.core.errors import PartitionError, PartitionInUse
from accelkit.core.model import Device, DeviceId, Snapshot
from accelkit.core.partitioning import Create, Destroy, SetMode, Step
from accelkit.core.places import places_on
from accelkit.core.values import Scope, Standing
from accelkit.core.view import View

log = logging.getLogger(__name__)

FILE = "partitions.json"
LOCK_S = 30.0


class Steps:
    """Makes and unmakes partitions for the policy, and remembers which are ours.

    Args:
        hardware: The vendors.
        ledger: The record of claims, of all instances.
        directory: Of this boot.
    """

    def __init__(self, hardware: Hardware, ledger: Ledger, directory: Path, clock: Clock) -> None:
        self._hardware = hardware
        self._ledger = ledger
        self._path = directory / FILE
        self._clock = clock
        self._made: frozenset[DeviceId] | None = None

    @property
    def made(self) -> frozenset[DeviceId]:
        """Partitions that were made for the policy, by whichever instance of this boot."""
        if self._made is None:
            self._made = made_before(self._path.parent)
        return self._made

    async def come_back(self, snapshot: Snapshot) -> frozenset[DeviceId]:
        """Partitions that claims gave back while their whole device was away, and that are back.

        What did not come back with its device is forgotten.

        Raises:
            SourceError: The vendor does not answer.
            LedgerError: It cannot be known.
        """
        back = set()
        for device, gone in self._ledger.left.all().items():
            root = snapshot.by_id.get(gone.root)
            if root is None or root.standing is not Standing.PRESENT:
                continue
            found = await self._hardware.find(device)  # what was given back is not believed at once
            if found is None or gone.handle not in {None, found.handle}:
                self._ledger.left.forget(device)
            elif device in snapshot.by_id:
                back.add(device)
        return frozenset(back)

    async def do(self, view: View, step: Step) -> None:
        """Do *step* and read back what came of it.

        Raises:
            PartitionError: It cannot be done, or not now.
            SourceError: The vendor does not answer.
            LedgerError: It cannot be known who has what, or be written down what is ours.
        """
        match step:
            case Destroy():
                await self._destroy(view.devices[step.partition])
            case SetMode():
                await self._set_mode(view, step)
            case Create():
                await self._create(step)

    async def _destroy(self, partition: Device) -> None:
        async with self._unclaimed({partition.id, partition.root}):
            await self._hardware.destroy(partition)
        if await self._hardware.find(partition.id) is not None:
            raise PartitionError(f"{partition.id} is still there", device=str(partition.id))
        self._ledger.left.forget(partition.id)
        self._keep(self.made - {partition.id})

    async def _set_mode(self, view: View, step: SetMode) -> None:
        async with self._unclaimed(touched(view.snapshot, step)):
            await self._hardware.set_mode(view.devices[step.device], step.mode)
        after = await self._hardware.find(step.device)
        if after is None or after.mode != step.mode:
            now = "gone" if after is None else f"in mode {after.mode}"
            raise PartitionError(f"{step.device} is {now}", device=str(step.device))

    async def _create(self, step: Create) -> None:
        parent = await self._hardware.find(step.device)  # its profiles may follow from its mode
        if parent is None:
            raise PartitionError(f"{step.device} is gone", device=str(step.device))
        self._keep(self.made | {step.partition})
        await self._hardware.create(parent, step.placement)
        if await self._hardware.find(step.partition) is None:
            said = f"{step.partition} was made, says its plugin, and is not there"
            raise PartitionError(said, device=str(step.partition))

    @asynccontextmanager
    async def _unclaimed(self, devices: Collection[DeviceId]) -> AsyncIterator[None]:
        """No claim has any of *devices*, and none can come to have one inside, on any instance."""
        async with self._ledger.locks.places(self._clock.monotonic() + LOCK_S):
            self._ledger.refresh(locked=True)
            held = {
                piece.device: f"claim {entry.claim.namespace}/{entry.claim.name}"
                for entry in self._ledger.entries.values()
                for piece in entry.places
            }
            held |= {i: f"claim {one.uid}" for one in self._ledger.unread for i in one.devices}
            for device in sorted(held.keys() & set(devices)):
                raise PartitionInUse(f"{device} is held by {held[device]}", device=str(device))
            yield

    def _keep(self, made: frozenset[DeviceId]) -> None:
        """Write down what is ours: before it is made, and after it was unmade."""
        if made == self.made:
            return
        with in_words(f"{self._path} cannot be written"):
            write_whole(self._path, json.dumps(sorted(map(str, made))).encode())
        self._made = made


def root_of(snapshot: Snapshot, step: Step) -> DeviceId:
    """The whole device that *step* works at."""
    return snapshot.by_id[step.partition].root if isinstance(step, Destroy) else step.device


def touched(snapshot: Snapshot, step: Step) -> frozenset[DeviceId]:
    """Devices that nobody may have while *step* is done; those that are not there, too."""
    root = snapshot.by_id[root_of(snapshot, step)]
    if isinstance(step, Destroy):
        return frozenset({step.partition, root.id})
    if isinstance(step, Create):
        return frozenset({root.id})
    alone = all(m.disturbs is not Scope.VENDOR for m in root.modes if m.name == step.mode)
    roots = [
        one
        for one in snapshot.devices
        if one.parent is None and (one == root or (not alone and one.id.vendor == root.id.vendor))
    ]
    known = {one.id for one in snapshot.devices if one.root in {root.id for root in roots}}
    return frozenset(known.union(*(places_on(one) for one in roots)))


def made_before(directory: Path) -> frozenset[DeviceId]:
    """Partitions that were made for the policy in the boot of *directory*, and written down."""
    try:
        written = json.loads((directory / FILE).read_bytes())
        return frozenset(map(DeviceId.parse, written))
    except FileNotFoundError:
        return frozenset()
    except Exception as error:  # noqa: BLE001 - whatever is in it: its partitions are foreign then
        log.warning("made partitions forgotten", extra={"error": str(error)})
        return frozenset()
