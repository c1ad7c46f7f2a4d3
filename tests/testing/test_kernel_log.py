"""What the kernel said of devices is in a capture, and is heard again."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from accelkit.core.errors import SourceError
from accelkit.core.host import KMSG, Host, Stat
from accelkit.core.policy_check import options_of
from accelkit.core.real_host import RealHost
from accelkit.core.registry import load_plugins
from accelkit.core.vendor import Vendor
from accelkit.testing.captures.capturing import capture
from accelkit.testing.captures.kernel import patterns_of, read_log
from accelkit.testing.captures.layout import LOG
from accelkit.testing.captures.replaying import CaptureHost
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LINE = (
    "NEURON_HW_ERR=DMA_ERROR instance-id=i-0 hostname=h nd-id=0 nc-id=0 "
    "serial-num=5c11e8d907a4f32b action=TERMINATE_INSTANCE"
)


def neuron() -> Vendor:
    kind = load_plugins().vendors["neuron"]
    return kind(options_of(kind, {}))


def machine(folder: Path, *lines: str) -> Host:
    simulate("neuron", "trn1", 1, str(folder))
    for line in lines:
        set_state(str(folder), ["kernel", line])
    return MachineHost(str(folder))


def test_lines_of_the_vendor_are_kept_and_replayed_as_they_were(tmp_path: Path) -> None:
    host = machine(tmp_path / "machine", "usb 1-1: new device", LINE)

    capture(host, [neuron()], tmp_path / "capture", NOW, mask=False)

    again = CaptureHost(str(tmp_path / "capture"))
    records = [r for r in host.read_bytes(KMSG).splitlines(keepends=True) if b"NEURON" in r]
    assert again.read_bytes(KMSG) == b"".join(records) != b""
    assert again.stat(KMSG) == Stat(kind="f", mode=0o444)


def test_serial_numbers_in_the_log_are_masked_whoever_has_them(tmp_path: Path) -> None:
    host = machine(tmp_path / "machine", LINE)

    capture(host, [neuron()], tmp_path / "capture", NOW, mask=True)

    kept = (tmp_path / "capture" / LOG).read_text()
    assert "nd-id=0" in kept
    assert "5c11e8d907a4f32b" not in kept


def test_host_whose_kernel_said_nothing_has_no_log(tmp_path: Path) -> None:
    found = capture(machine(tmp_path / "m"), [neuron()], tmp_path / "capture", NOW, mask=False)

    assert not (tmp_path / "capture" / LOG).exists()
    assert not any("kernel log" in problem for problem in found.problems)
    assert CaptureHost(str(tmp_path / "capture")).stat(KMSG) is None


def test_log_of_this_machine_is_read_or_may_not_be() -> None:
    with suppress(SourceError):
        assert read_log(RealHost("/"), ("no line of a kernel says this",)) == b""


def test_nothing_is_kept_for_vendors_that_hear_nothing(tmp_path: Path) -> None:
    assert patterns_of([]) == ()
    assert read_log(machine(tmp_path / "m", LINE), ()) == b""
