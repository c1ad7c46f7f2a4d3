"""A node in directories: agents that keep claims there come and go. Not here: any check."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, TypeVar

import attrs

from accelkit.agent.admission import Pending
from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.duties import TOGETHER_S
from accelkit.agent.keeper import Keeper
from accelkit.agent.knowledge import Claimed, Knowledge
from accelkit.agent.ledger import MARKER, Ledger
from accelkit.agent.sources import Source
from accelkit.agent.works import Works
from accelkit.conformance.mortal import MortalDisk, Process, ToldDoor
from accelkit.core.allocation import Allocation, Prepared
from accelkit.core.errors import LedgerBusy
from accelkit.core.host import BOOT_ID, Host
from accelkit.core.model import VendorReport
from accelkit.core.policy import Offer, Partitioning, PartitioningHow, Paths, Policy, Sharing
from accelkit.core.reading import HealthReading
from accelkit.core.snapshot import assemble, build_view
from accelkit.core.vendor import SupportsPartitioning, Vendor
from accelkit.core.view import View
from accelkit.testing.hosts import open_host
from accelkit.testing.record import NAME, Record
from accelkit.testing.shared import Shared, machines

logging.getLogger("accelkit.agent").addHandler(logging.NullHandler())  # findings say it all

T = TypeVar("T")
NODE = "conformance"
KEPT = "agent: "
"""Before the path of what agents keep, to tell it from what is on the machine."""
JUMP_S = 1.0
"""Waiting for up to so long takes hardly any time; what is longer takes as long as the rest."""
_LOOK_S = 0.005
OtherDoor: TypeAlias = Callable[[Host], Host]


class HastyClock:
    """Time in which short waits are skipped: who looks again and again does so at once."""

    def __init__(self) -> None:
        self._skipped_s = 0.0

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self._skipped_s

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        until = self.monotonic() + seconds
        await asyncio.sleep(0.0)
        if seconds <= JUMP_S:
            self._skipped_s += max(0.0, until - self.monotonic())
        while self.monotonic() < until:  # noqa: ASYNC110 - others skip time meanwhile
            await asyncio.sleep(_LOOK_S)


def policy_of(
    directory: Path, sharing: Sharing, how: PartitioningHow = PartitioningHow.DYNAMIC
) -> Policy:
    """Claims may have everything, and have it set, and cut unless *how* is another one."""
    may_ask = attrs.evolve(sharing, claims_may_ask=("timeslice", "enforce"))
    return Policy(
        paths=Paths(run=str(directory / "run"), cdi=str(directory / "cdi")),
        offers=(Offer(name="all", through="dra", sharing=may_ask),),
        partitioning=(Partitioning(how=how),),
    )


def view_of(report: VendorReport, reading: HealthReading, vendor: Vendor) -> View:
    """What an agent sees that offers everything to claims, of what a plugin said."""
    now = datetime.now(UTC)
    return build_view(
        assemble(NODE, (report,), (reading,), previous=None, held=(), now=now),
        policy_of(Path("/"), Sharing()),
        edits={},
        domains={vendor.name: vendor.domain},
        previous=None,
        now_s=0.0,
        now=now,
        makers=(vendor.name,) if isinstance(vendor, SupportsPartitioning) else (),
    )


class Agent:
    """What an agent keeps claims with, in a process of its own.

    Args:
        node: Where it is.
        vendor: The plugin, built for this process.
        process: That may end.
        door: What is between the plugin and the machine.
    """

    def __init__(self, node: "Node", vendor: Vendor, process: Process, door: OtherDoor) -> None:
        clock = self.clock = HastyClock()
        host = ToldDoor(door(open_host(node.machine)), process.around)
        self.process = process
        self.vendor = vendor
        self.source = Source(vendor, host, 1.0, clock)
        policy = policy_of(node.home, node.sharing, node.how)
        self.knowledge = Knowledge(NODE, node.boot, policy, [self.source], Pending(clock), clock)
        disk = MortalDisk(process)
        self.works = Works(self.knowledge.sources, lambda: self.view)
        self._ledger = Ledger(node.run, node.boot, writer="conformance", clock=clock, disk=disk)
        self.keeper = Keeper(
            ledger=self._ledger,
            files=ClaimFiles(node.cdi, disk=disk),
            hardware=self.works,
            view=lambda: self.view,
            clock=clock,
            drivers=lambda: (policy.backends.dra.driver_of(vendor.name),),
            give_up_after_s=lambda: policy.release.give_up_after,
            changed=self._change,
            tell=_tell_nobody,
            observe=lambda _metric, _seconds, _labels: None,
        )
        self.knowledge.claimed = lambda: Claimed(
            holdings=self.keeper.holdings(), made=self.keeper.made, stuck=self.keeper.stuck
        )

        self._changed_s: float | None = None

    def _change(self) -> None:
        if self._changed_s is None:
            self._changed_s = self.clock.monotonic()

    @property
    def view(self) -> View:
        """What is published, a little later than it changes."""
        if self._changed_s is not None and self.clock.monotonic() > self._changed_s + TOGETHER_S:
            self._changed_s = None
            self.knowledge.commit()
        return self.knowledge.store.view

    async def begin(self) -> None:
        """Read what is written down of this boot, and see the machine."""
        self._ledger.forget_other_boots()
        await self.keeper.load()
        await self.look()

    async def look(self) -> None:
        """See the machine as it is now."""
        await self.knowledge.learn(self.source)

    async def prepare(self, allocation: Allocation) -> Prepared:
        """The answer for a claim, however long it takes.

        Raises:
            AccelkitError: It cannot be prepared.
        """
        while True:
            with contextlib.suppress(LedgerBusy):  # it goes on
                return await self.keeper.prepare(allocation)

    async def release(self, uid: str) -> None:
        """Give a claim back, however long it takes.

        Raises:
            AccelkitError: It cannot be given back.
        """
        while True:
            with contextlib.suppress(LedgerBusy):  # it goes on
                return await self.keeper.release(uid)

    async def pass_time(self) -> None:
        """Let a second pass, and releases that are due go on."""
        await self.clock.sleep(JUMP_S)
        await self.keeper.retry()

    def close(self) -> None:
        """End the threads of the plugin's calls."""
        self.source.lanes.close(lambda: None)


async def until(predicate: Callable[[], object], patience_s: float) -> None:
    """Return when *predicate* holds, which other threads bring about, or it takes too long."""
    end = time.monotonic() + patience_s
    while not predicate() and time.monotonic() < end:  # noqa: ASYNC110 - of other threads
        await asyncio.sleep(_LOOK_S)


def _tell_nobody(reason: str, text: str, **_: object) -> None:
    """What is told to people is none of a check's business."""


Seen: TypeAlias = Mapping[str, object]
"""What is on a node, by path."""


@attrs.define(kw_only=True)
class Node:
    """What outlives every agent: a machine, and what is written down of claims."""

    machine: str
    home: Path
    """Of the directories of agents."""
    make: Callable[[], Vendor]
    """Builds the plugin anew."""
    sharing: Sharing = Sharing()
    """How devices are offered."""
    how: PartitioningHow = PartitioningHow.DYNAMIC
    """How they are cut."""

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def cdi(self) -> Path:
        return self.home / "cdi"

    @property
    def boot(self) -> str:
        return open_host(self.machine).read(BOOT_ID)

    def during(
        self,
        story: Callable[[Agent], Awaitable[T]],
        *,
        process: Process | None = None,
        door: OtherDoor = lambda host: host,
    ) -> T:
        """What *story* comes to in the life of one agent, which has read all there is.

        Args:
            story: What happens.
            process: That of the agent.
            door: What is between the plugin and the machine.

        Raises:
            Crash: The process ended before.
        """

        async def live() -> T:
            # What a process left that is no more is nobody's.
            asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
            async with self.agent(process, door) as agent:
                return await story(agent)

        with asyncio.Runner() as runner:
            return runner.run(live())

    @contextlib.asynccontextmanager
    async def agent(
        self, process: Process | None = None, door: OtherDoor = lambda host: host
    ) -> AsyncIterator[Agent]:
        """An agent that has read all there is, and ends after this."""
        agent = Agent(self, self.make(), process or Process(self.machine), door)
        try:
            await agent.begin()
            yield agent
        finally:
            agent.process.end()
            agent.close()

    def restore(self, record: Record) -> None:
        """Let the machine be as it was."""
        Shared(self.machine).change(lambda _: record)

    @property
    def record(self) -> Record:
        """What the machine is like, to *restore* it."""
        return Shared(self.machine).record()

    def seen(self) -> Seen:
        """Everything that is on the node, but for locks."""
        return {**seen_of(self.machine), **_files(self.home, KEPT)}


def seen_of(machine: str) -> Seen:
    """Everything that tells how the machine in a directory is."""
    record = Shared(machine).record()
    told = frozenset().union(*(part.history for part in machines(record.parts)))
    return {
        **_files(Path(machine), "/"),
        **{
            f"{unit} {key}": value
            for unit, fields in record.state.items()
            for key, value in fields.items()
            if value and key not in told  # one that is empty says the same as none
        },
    }


def other(before: Seen, after: Seen) -> tuple[str, ...]:
    """What is not the same in both."""
    return tuple(sorted(p for p in {*before, *after} if before.get(p) != after.get(p)))


def _files(directory: Path, mark: str) -> dict[str, object]:
    found: dict[str, object] = {}
    below = [""]
    while below:
        folder = below.pop()
        with os.scandir(directory / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.is_symlink():
                    found[mark + name] = os.readlink(entry.path)  # noqa: PTH115 - of thousands
                elif entry.is_dir():
                    below.append(f"{name}/")
                elif entry.is_file() and entry.name not in _OWN and not name.endswith(".lock"):
                    found[mark + name] = Path(entry.path).read_bytes()
    return found


_OWN = frozenset({NAME, MARKER})
"""Files that say nothing of the hardware and of claims, or say it another time."""
