"""How tests ask vendors in processes of their own, and look at these processes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from accelkit.agent.calls import Isolated
from accelkit.agent.remote import Remote
from accelkit.agent.sources import Source
from accelkit.core.allocation import Grant, Granted
from accelkit.core.clock import RealClock
from accelkit.core.model import Device, VendorReport
from accelkit.core.real_host import RealHost
from tests.agent.toys import Toy, device

PATIENCE_S = 90.0
"""A process is there after a third of a second; on a busy machine after a hundred times that."""
HURRY = 0.02
"""Scale of deadlines of calls that hang: 0.2 s."""


@asynccontextmanager
async def asked(vendor: Isolated | Toy) -> AsyncIterator[Source]:
    """The vendor, asked until the end."""
    host = vendor.host if isinstance(vendor, Isolated) else "/"
    source = Source(vendor, RealHost(host), 1.0, RealClock())
    try:
        yield source
    finally:
        source.close()
        if isinstance(source._asked, Remote):
            await until(lambda: pid_of(source) is None or not is_alive(pid_of(source)))


async def until(condition: Callable[[], object]) -> None:
    """Wait until *condition* is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)


def pid_of(source: Source) -> int | None:
    """The number of the process that is asked now."""
    assert isinstance(source._asked, Remote)
    return source._asked.pid


def is_alive(pid: int | None) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "XZ"
    except OSError:
        return False


def pids(report: VendorReport) -> set[object]:
    return {device.attributes["pid"] for device in report.devices}


async def read_again(source: Source) -> VendorReport:
    """What it says once it can be asked again."""
    async with asyncio.timeout(PATIENCE_S):
        while not (report := await source.read()).answered:
            await source.inventory.wait(RealClock(), PATIENCE_S)
    return report


async def hurried(source: Source) -> VendorReport:
    """What it says when it has little time; it was started before."""
    source.lanes.scale = HURRY
    report = await source.read()
    source.lanes.scale = 1.0
    return report


def grant(config: object = None) -> Grant:
    """The first device of Acme, for a claim."""
    ours = Device(id=device("acme", "a0"), kind="toy")
    return Grant(owner="claim", granted=(Granted(device=ours),), config=config)
