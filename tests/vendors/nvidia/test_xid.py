import pytest

from accelkit import Severity
from accelkit.vendors.nvidia import xid
from accelkit.vendors.nvidia.xid import Action


@pytest.mark.parametrize(
    "number,action",
    [
        (13, Action.RESTART_APP),
        (43, Action.NOTHING),
        (63, Action.NOTHING),
        (79, Action.REBOOT),
        (94, Action.RESTART_APP),
        (95, Action.RESET),
        (109, Action.RESET),
        (145, Action.LOOK),
        (999, Action.LOOK),
        (12345, Action.LOOK),
    ],
)
def test_xid_asks_for_what_the_catalog_says(number: int, action: Action) -> None:
    assert xid.fault_of(number).action is action


def test_only_resets_and_reboots_are_fatal() -> None:
    fatal = {n for n in range(1000) if xid.fault_of(n).severity is Severity.FATAL}

    assert fatal == {
        n for n in range(1000) if xid.fault_of(n).action in {Action.RESET, Action.REBOOT}
    }


def test_no_xid_is_in_two_classes() -> None:
    numbers = [n for text in xid._NUMBERS.values() for n in xid._expanded(text)]

    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    "line,heard",
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, fallen off the bus", ("0000:3b:00.0", 79)),
        ("[ 1.0] NVRM: Xid (PCI:0001:C1:00.0): 13, Graphics", ("0001:c1:00.0", 13)),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7, Contained", ("0000:01:00.0", 94)),
        ("NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 13, pid=9", ("0000:3b:00.0", 13)),
        ("NVRM: Xid (PCI:0000:3b:00): many", None),
        ("something else", None),
    ],
)
def test_kernel_log_line_is_read(line: str, heard: tuple[str, int] | None) -> None:
    assert xid.heard_in(line) == heard


def test_code_and_number_are_one_to_one() -> None:
    assert xid.number_of(xid.code_of(79)) == 79
    assert xid.number_of("recovery-action") is None
