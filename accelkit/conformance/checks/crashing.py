"""C: libraries that crash. Not here: hardware that hangs."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from accelkit.agent.calls import INVENTORY, Isolated
from accelkit.agent.remote import Remote
from accelkit.conformance.bench import PluginBench, Rig, told
from accelkit.conformance.checks.discovery import differences
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.model import Check, Feature, Inapplicable
from accelkit.conformance.mortal import ToldDoor
from accelkit.core.errors import AccelkitError, WorkerDied
from accelkit.testing.faults import Fault
from accelkit.testing.simulate import set_faults

T = TypeVar("T")
ANSWER_S = 30.0
PAUSE_S = 61.0
"""More than any pause between two processes of a plugin."""
ALWAYS = 1_000_000
_OF_FILES = ("read ", "look ", "list ", "write ", "run ", "ioctl ")


class _Clock:
    """Time that can be skipped."""

    def __init__(self) -> None:
        self.skipped_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped_s

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def contained(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    crash, native = _crash(rig)
    if native and not bench.subject.vendor.native:
        yield "it calls functions of a library without `native`: their crash ends the agent"
    assert rig.directory is not None
    clock = _Clock()
    options = dict(bench.subject.options)
    remote = Remote(Isolated(kind=bench.subject.vendor, options=options, host=rig.directory), clock)
    bench.later(remote.close)

    def ask() -> Iterator[str]:
        found = remote.ask(INVENTORY, (), bench.patience(ANSWER_S))
        yield from differences(before, found)

    before = remote.ask(INVENTORY, (), bench.patience(ANSWER_S))
    set_faults(rig.directory, [*bench.subject.faults, crash])
    try:
        list(ask())
    except WorkerDied:
        pass
    except AccelkitError as error:
        yield f"a crash in the midst of discovery is told as {error.code}: {error}"
    else:
        raise Inapplicable("nothing of what it calls can crash here")
    set_faults(rig.directory, bench.subject.faults)
    clock.skipped_s = PAUSE_S
    yield from told("after a crash", ask())


def _crash(rig: Rig) -> tuple[Fault, bool]:
    """A crash in the last that discovery reads, and whether that is a function of a library.

    Raises:
        Inapplicable: It reads nothing.
    """
    names: list[str] = []

    def note(name: str, call: Callable[[], T], refuse: Callable[[], T]) -> T:  # noqa: ARG001 - all is done
        names.append(name)
        return call()

    list(rig.vendor.discover(ToldDoor(rig.door, note)))
    if functions := [name for name in names if not name.startswith(_OF_FILES)]:
        return Fault(call=functions[-1], times=ALWAYS, do="crash"), True
    files = [name.removeprefix("read ") for name in names if name.startswith("read ")]
    if not files:
        raise Inapplicable("its discovery reads nothing")
    return Fault(read=files[-1], times=ALWAYS, do="crash"), False


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "C07",
        "A crash in a library ends the process of its plugin alone, and is told.",
        contained,
        Feature.MACHINE,
    ),
)
