"""What the kernel says reaches the vendors that want to know."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from accelkit.agent.admission import Pending
from accelkit.agent.holders import Holders
from accelkit.agent.interpreting import Interpreting
from accelkit.agent.kernel import Ear, FileEar, log_line, uevent
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.core.clock import RealClock
from accelkit.core.host import Host
from accelkit.core.model import Device, Event, Unreadable
from accelkit.core.policy import Policy
from accelkit.core.real_host import RealHost
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import Signal, Signals, SupportsSignals, Vendor
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions

CLOCK = RealClock()
NULL = "/sys/class/mem/null/uevent"


def problems() -> Problems:
    return Problems(lambda: datetime(2026, 1, 1, tzinfo=UTC))


def test_uevent_is_its_path_and_its_fields() -> None:
    message = b"change@/devices/pci0000:00/card0\0ACTION=change\0SUBSYSTEM=drm\0WEDGED=rebind\0"

    assert uevent(message) == Signal(
        source="uevent",
        subject="/devices/pci0000:00/card0",
        fields=FrozenMap({"ACTION": "change", "SUBSYSTEM": "drm", "WEDGED": "rebind"}),
    )


@pytest.mark.parametrize(
    "message", [b"", b"libudev\0\xfe\xed", b"add@/x\0ACTION=remove\0", b"\xff"]
)
def test_what_is_no_uevent_of_the_kernel_is_nothing(message: bytes) -> None:
    assert uevent(message) is None


def test_line_of_the_log_is_its_text_and_its_number() -> None:
    record = b"4,1339,5140900,-,caller=T1;NVRM: Xid (PCI:0000:03:00): 79\n SUBSYSTEM=pci\n"

    assert log_line(record) == Signal(
        source="kernel",
        text="NVRM: Xid (PCI:0000:03:00): 79",
        fields=FrozenMap({"number": "1339"}),
    )


@pytest.mark.parametrize("record", [b"", b"text alone", b"4,1;x", b"\xff\xfe"])
def test_what_is_no_record_is_nothing(record: bytes) -> None:
    assert log_line(record) is None


class Heard:
    """Keeps what was told, until something is there."""

    def __init__(self) -> None:
        self.signals: list[Signal] = []

    async def take(self, signal: Signal) -> None:
        self.signals.append(signal)

    async def until(self, source: str, text: str) -> Signal:
        async with asyncio.timeout(30):
            while True:
                for one in self.signals:
                    if one.source == source and text in f"{one.text} {one.subject}":
                        return one
                await asyncio.sleep(0.01)


@asynccontextmanager
async def hearing(ear: Ear) -> AsyncIterator[Heard]:
    heard = Heard()
    task = asyncio.create_task(ear.listen(heard.take))
    try:
        await asyncio.sleep(0)
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_records_of_the_log_are_told_from_its_beginning_on(tmp_path: Path) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(writer, b"6,1,1,-;first\n")
        async with hearing(Ear(problems(), str(pipe))) as heard:
            await heard.until("kernel", "first")
            os.write(writer, b"6,2,2,-;second\n")
            await heard.until("kernel", "second")
    finally:
        os.close(writer)


async def test_what_may_not_be_heard_is_a_problem_and_the_rest_is_heard(tmp_path: Path) -> None:
    noted = problems()
    async with hearing(Ear(noted, str(tmp_path / "none"))):
        found = [(p.code, p.subject) for p in noted.all]

    assert ("kernel-unheard", "the kernel's log") in found


def test_log_of_this_machine_is_read_and_its_uevents_heard() -> None:
    """Whoever runs this may."""
    if os.geteuid() or not os.access("/dev/kmsg", os.R_OK) or not os.access(NULL, os.W_OK):
        pytest.skip("needs root, /dev/kmsg and uevents of this machine")

    def happen() -> None:
        Path("/dev/kmsg").write_text("accelkit: heard in a test\n")
        Path(NULL).write_text("change")

    async def hear() -> tuple[Signal, Signal]:
        noted = problems()
        async with hearing(Ear(noted)) as heard:
            await asyncio.to_thread(happen)
            line = await heard.until("kernel", "accelkit: heard in a test")
            event = await heard.until("uevent", "/mem/null")
        assert noted.all == ()
        return line, event

    line, event = asyncio.run(hear())
    assert line.text == "accelkit: heard in a test"
    assert (event.fields["SUBSYSTEM"], event.fields["ACTION"]) == ("mem", "change")


class Hearing(Vendor, SupportsSignals):
    name = "hearing"
    domain = "hearing.example"
    signals = Signals(uevents=("drm",), kernel_log=("^Toy: ", "("))

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        del host
        return ()

    def interpret(self, signal: Signal) -> Iterable[Event]:
        if signal.text.endswith("bug"):
            raise RuntimeError("a bug")
        yield Event(subject="a", code=signal.text[5:] or "wedged", source=signal.source)


class Waking(Vendor):
    """Has no meaning for uevents, but looks again."""

    name = "waking"
    domain = "waking.example"
    signals = Signals(uevents=("usb",))

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        del host
        return ()


def knowing(tmp_path: Path, *vendors: Vendor) -> Knowledge:
    sources = [Source(one, RealHost(str(tmp_path)), 1.0, CLOCK) for one in vendors]
    holders = Holders(None, problems())
    return Knowledge("n1", "boot", Policy(), sources, Pending(CLOCK), CLOCK, holders)


def of(subsystem: str) -> Signal:
    return Signal(source="uevent", fields=FrozenMap({"SUBSYSTEM": subsystem}))


async def test_signals_that_a_vendor_named_become_its_evidence(tmp_path: Path) -> None:
    knowledge = knowing(tmp_path, Hearing(None), Waking(None))
    interpreting = Interpreting(knowledge)

    for signal in (
        Signal(source="kernel", text="Toy: hot"),
        Signal(source="kernel", text="not Toy: cold"),
        of("drm"),
        of("usb"),
    ):
        await interpreting.take(signal)

    assert [(e.vendor, e.code) for e in knowledge.heard.evidence] == [
        ("hearing", "hot"),
        ("hearing", "wedged"),
    ]


async def test_uevent_wakes_the_readers_that_named_its_subsystem(tmp_path: Path) -> None:
    knowledge = knowing(tmp_path, Hearing(None), Waking(None))

    await Interpreting(knowledge).take(of("usb"))

    bells = {name: source.inventory for name, source in knowledge.sources.items()}
    woken = {name: await bell.wait(CLOCK, 0.01) for name, bell in bells.items()}
    assert woken == {"hearing": False, "waking": True}


async def test_vendor_that_breaks_at_a_signal_has_a_problem_and_hears_the_next(
    tmp_path: Path,
) -> None:
    knowledge = knowing(tmp_path, Hearing(None))
    interpreting = Interpreting(knowledge)
    await interpreting.take(Signal(source="kernel", text="Toy: bug"))
    noted = [p.code for p in knowledge.problems]
    await interpreting.take(Signal(source="kernel", text="Toy: hot"))

    assert noted == ["plugin-bug"]
    assert [e.code for e in knowledge.heard.evidence] == ["hot"]
    assert knowledge.problems == ()


async def test_what_the_kernel_of_a_simulated_machine_says_is_heard_too(tmp_path: Path) -> None:
    directory = str(tmp_path / "machine")
    simulate("nvidia", "h100", 1, directory)
    heard = Heard()
    task = asyncio.create_task(FileEar(MachineHost(directory), CLOCK).listen(heard.take))
    try:
        set_state(directory, ["kernel", "NVRM: Xid (PCI:0000:03:00): 79,", "fallen off the bus"])
        line = await heard.until("kernel", "fallen off the bus")
        set_state(directory, ["uevent", "change", "/devices/x", "SUBSYSTEM=drm"])
        event = await heard.until("uevent", "/devices/x")
        before = len(heard.signals)
        set_state(directory, ["reboot"])
        set_state(directory, ["kernel", "after the boot"])
        await heard.until("kernel", "after the boot")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert line.text == "NVRM: Xid (PCI:0000:03:00): 79, fallen off the bus"
    assert event.fields == {
        "ACTION": "change",
        "DEVPATH": "/devices/x",
        "SEQNUM": "1",
        "SUBSYSTEM": "drm",
    }
    assert (before, len(heard.signals)) == (2, 3)


async def test_xid_in_the_log_of_a_machine_is_a_condition_of_its_gpu(tmp_path: Path) -> None:
    directory = str(tmp_path / "machine")
    simulate("nvidia", "h100", 1, directory)
    set_state(directory, ["kernel", "NVRM: Xid (PCI:0000:03:00): 79, pid=1, fallen off the bus"])
    host = MachineHost(directory)
    source = Source(Nvidia(NvidiaOptions()), host, 1.0, CLOCK)
    knowledge = Knowledge(
        "n1", "boot", Policy(), [source], Pending(CLOCK), CLOCK, Holders(None, problems())
    )
    await knowledge.learn(source)
    (record,) = host.read("/dev/kmsg").splitlines()
    signal = log_line(record.encode())
    assert signal is not None

    await Interpreting(knowledge).take(signal)
    await knowledge.examine(source)

    (device,) = knowledge.store.view.snapshot.devices
    assert [c.code for c in device.conditions] == ["xid-79"]
    source.close()
