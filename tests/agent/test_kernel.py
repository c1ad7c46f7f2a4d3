"""What the kernel says reaches the vendors that want to know."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from accelkit.agent import interpreting as interpretation, kernel
from accelkit.agent.admission import Pending
from accelkit.agent.holders import Holders
from accelkit.agent.interpreting import Interpreting
from accelkit.agent.kernel import MISSED, SAID_US, Ear, FileEar, log_line, uevent
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.core.clock import RealClock
from accelkit.core.errors import DriverNotReady
from accelkit.core.host import Host
from accelkit.core.model import Device, Event, Unreadable
from accelkit.core.policy import Policy
from accelkit.core.real_host import RealHost
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import Signal, Signals, SupportsSignals, Vendor
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.agent.signalled import interpreting
from tests.agent.toys import until

CLOCK = RealClock()
NULL = "/sys/class/mem/null/uevent"
ROOM = 1 << 16
"""How much is read at most of the kernel's log."""


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


def test_line_that_was_there_before_says_when_it_was_said() -> None:
    found = log_line(b"4,1339,5140900,-;NVRM: Xid\n", early=True)

    assert found is not None
    assert found.fields == {"number": "1339", "said": "5140900"}


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

    assert [one.fields.get(SAID_US) for one in heard.signals if one.source == "kernel"] == [
        "1",
        None,
    ]


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOBUFS])
async def test_who_listens_is_told_that_the_kernel_said_more_than_was_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    lost, read = [OSError(number, "lost")], os.read

    def read_with_loss(handle: int, room: int) -> bytes:
        if lost and room == ROOM:
            raise lost.pop()
        return read(handle, room)

    monkeypatch.setattr(os, "read", read_with_loss)
    try:
        os.write(writer, b"6,7,7,-;later\n")
        async with hearing(Ear(problems(), str(pipe))) as heard:
            await heard.until("kernel", "later")
    finally:
        os.close(writer)

    assert [one.source for one in heard.signals] == [MISSED, "kernel"]


async def test_of_more_than_can_wait_it_is_told_that_something_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_MOST_WAITING", 2)
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    monkeypatch.setattr(os, "read", one_by_one(os.read))
    try:
        os.write(writer, b"".join(b"6,%d,1,-;line %d\n" % (n, n) for n in range(4)))
        async with hearing(Ear(problems(), str(pipe))) as heard:
            await heard.until("kernel", "line 1")
            os.write(writer, b"6,9,1,-;line 9\n")
            await heard.until("kernel", "line 9")
    finally:
        os.close(writer)

    told = [one.text or one.source for one in heard.signals]
    assert told == [MISSED, "line 0", "line 1", "line 9"]


async def test_log_that_ends_is_a_problem_and_costs_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    noted = problems()
    async with hearing(Ear(noted, str(pipe))):
        os.close(writer)
        await until(lambda: noted.all)

    (problem,) = (p for p in noted.all if p.subject == "the kernel's log")
    assert problem.reason == "the kernel's log cannot be heard: it has come to an end"


def one_by_one(read: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    """Reads a pipe as the kernel's log is read: one record at a time."""
    kept = bytearray()

    def read_one(handle: int, room: int) -> bytes:
        if room != ROOM:
            return read(handle, room)
        if b"\n" not in kept:
            kept.extend(read(handle, room))
        record, _, rest = bytes(kept).partition(b"\n")
        kept[:] = rest
        return record + b"\n"

    return read_one


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
        if signal.text.endswith("unready"):
            raise DriverNotReady("it is not loaded")
        yield Event(subject="a", code=signal.text[5:] or "wedged", source=signal.source)


class Hanging(Hearing):
    """Does not come back from the first signal until it is let go."""

    name = "hanging"

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self.asked, self.go = threading.Event(), threading.Event()

    def interpret(self, signal: Signal) -> Iterable[Event]:
        self.asked.set()
        self.go.wait()
        return super().interpret(signal)


class Secretive(Hearing):
    """Does not say what it wants to hear."""

    name = "secretive"

    @property
    def signals(self) -> Signals:  # type: ignore[override]  # where options decide
        raise RuntimeError("a bug")


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


def line(text: str) -> Signal:
    return Signal(source="kernel", text=text)


async def test_signals_that_a_vendor_named_become_its_evidence(tmp_path: Path) -> None:
    knowledge = knowing(tmp_path, Hearing(None), Waking(None))

    async with interpreting(knowledge) as told:
        await told(line("Toy: hot"), line("not Toy: cold"), of("drm"), of("usb"))

    assert [(e.vendor, e.code) for e in knowledge.heard.evidence] == [
        ("hearing", "hot"),
        ("hearing", "wedged"),
    ]


@pytest.mark.parametrize("ago_s,counts_s", [(60, 60), (-60, 0)])
async def test_line_from_before_the_first_start_has_the_time_when_it_was_said(
    tmp_path: Path, ago_s: int, counts_s: int
) -> None:
    knowledge = knowing(tmp_path, Hearing(None))
    said_us = str(int((CLOCK.monotonic() - ago_s) * 1e6))

    async with interpreting(knowledge) as told:
        await told(attrs.evolve(line("Toy: hot"), fields=FrozenMap({SAID_US: said_us})))
        await told(line("Toy: cold"))

    now_s, now = CLOCK.monotonic(), CLOCK.now()
    cold, hot = knowledge.heard.evidence
    assert [now_s - (e.last_s or 0) for e in (cold, hot)] == pytest.approx([0, counts_s], abs=20)
    assert (now - hot.last).total_seconds() == pytest.approx(counts_s, abs=20)


async def test_uevent_wakes_the_readers_that_named_its_subsystem(tmp_path: Path) -> None:
    knowledge = knowing(tmp_path, Hearing(None), Waking(None))

    async with interpreting(knowledge) as told:
        await told(of("usb"))

    assert await rung(knowledge) == {"hearing": False, "waking": True}


async def test_who_may_have_missed_something_looks_for_himself(tmp_path: Path) -> None:
    knowledge = knowing(tmp_path, Hearing(None), Waking(None))

    async with interpreting(knowledge) as told:
        await told(Signal(source=MISSED))

    assert await rung(knowledge) == {"hearing": True, "waking": True}
    assert all([await s.health.wait(CLOCK, 0.01) for s in knowledge.sources.values()])


async def rung(knowledge: Knowledge) -> dict[str, bool]:
    """Which readers of devices were woken."""
    bells = {name: source.inventory for name, source in knowledge.sources.items()}
    return {name: await bell.wait(CLOCK, 0.01) for name, bell in bells.items()}


async def test_vendor_that_breaks_at_a_signal_has_a_problem_and_hears_the_next(
    tmp_path: Path,
) -> None:
    knowledge = knowing(tmp_path, Hearing(None))

    async with interpreting(knowledge) as told:
        await told(line("Toy: bug"))
        noted = [p.code for p in knowledge.problems]
        await told(line("Toy: hot"))

    assert noted == ["plugin-bug"]
    assert [e.code for e in knowledge.heard.evidence] == ["hot"]
    assert knowledge.problems == ()


async def test_what_was_said_while_a_vendor_hung_is_heard_afterwards_and_by_others_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpretation, "PAUSES_S", (600.0, 600.0))
    hanging = Hanging(None)
    knowledge = knowing(tmp_path, hanging, Hearing(None))

    async with interpreting(knowledge) as told:
        hung = asyncio.create_task(told(line("Toy: hot"), line("Toy: cold")))
        await asyncio.to_thread(hanging.asked.wait, 30)
        await until(lambda: heard_of(knowledge) == {"hearing": ["cold", "hot"]})
        await until(lambda: [p.code for p in knowledge.problems] == ["source-timeout"])
        hanging.go.set()
        await hung

    assert heard_of(knowledge) == {"hanging": ["cold", "hot"], "hearing": ["cold", "hot"]}
    assert knowledge.problems == ()


async def test_signal_at_which_a_vendor_fails_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(interpretation, "PAUSES_S", (0.0, 0.0))
    knowledge = knowing(tmp_path, Hearing(None))

    async with interpreting(knowledge) as told:
        await told(line("Toy: unready"), line("Toy: hot"))

    (record,) = (r for r in caplog.records if r.message == "signal is given up")
    assert vars(record)["signal"] == "Toy: unready"
    assert heard_of(knowledge) == {"hearing": ["hot"]}


async def test_more_than_may_wait_for_a_vendor_is_dropped_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(interpretation, "MOST_WAITING", 2)
    made = Interpreting(knowing(tmp_path, Hearing(None)), CLOCK)

    for n in range(3):
        await made.take(line(f"Toy: {n}"))

    (record,) = (r for r in caplog.records if r.message == "signal is dropped")
    assert vars(record)["signal"] == "Toy: 2"


async def test_vendor_that_does_not_say_what_it_wants_hears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpretation, "PAUSES_S", (0.0, 0.0))
    knowledge = knowing(tmp_path, Secretive(None))

    async with interpreting(knowledge) as told:
        await told(line("Toy: hot"))

    assert heard_of(knowledge) == {}
    assert [p.code for p in knowledge.problems] == ["plugin-bug"]


def heard_of(knowledge: Knowledge) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for entry in knowledge.heard.evidence:
        codes.setdefault(entry.vendor, []).append(entry.code)
    return codes


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

    async with interpreting(knowledge) as told:
        await told(signal)
    await knowledge.examine(source)

    (device,) = knowledge.store.view.snapshot.devices
    assert [c.code for c in device.conditions] == ["xid-79"]
    source.close()
