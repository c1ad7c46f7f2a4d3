import pytest
from hypothesis import given, strategies as st

from accelkit import Event, Signal
from accelkit.vendors.tpu.kernel import PATTERNS, SEVERITIES, heard

AT = "0000:00:04.0"
LINES = {
    f"vfio-pci {AT}: not ready 65535ms after FLR; giving up": "reset-failed",
    f"vfio-pci {AT}: not ready 65535ms after bus reset; giving up": "reset-failed",
    f"vfio-pci {AT}: Unable to change power state from D3cold to D0, device inaccessible": (
        "power-lost"
    ),
    f"vfio-pci {AT}: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer": (
        "pcie-fatal"
    ),
    f"vfio-pci {AT}: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Data Link Layer": (
        "pcie-error"
    ),
    "pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from "
    f"{AT}": "pcie-fatal",
    "pcieport 0000:00:01.0: AER: Multiple Uncorrected (Non-Fatal) error received: "
    f"{AT}": "pcie-error",
}
SILENT = (
    f"vfio-pci {AT}: not ready 1023ms after FLR; waiting",
    f"vfio-pci {AT}: ready 1023ms after FLR",
    f"vfio-pci {AT}: enabling device (0000 -> 0002)",
    f"vfio-pci {AT}: PCIe Bus Error: severity=Corrected, type=Physical Layer",
    f"vfio-pci {AT}: vfio_bar_restore: reset recovery - restoring BARs",
    f"nvme {AT}: not ready 65535ms after FLR; giving up",
    "vfio-pci nowhere: not ready 65535ms after FLR; giving up",
    "",
)


@pytest.mark.parametrize("line,code", LINES.items())
def test_line_about_a_chip_is_understood(line: str, code: str) -> None:
    assert [*heard(Signal(source="kernel", text=line))] == [
        Event(subject=AT, code=code, source="kernel")
    ]


@pytest.mark.parametrize("line", LINES)
def test_line_about_a_chip_is_looked_at(line: str) -> None:
    assert any(pattern in line for pattern in PATTERNS)


@pytest.mark.parametrize("line", SILENT)
def test_line_that_asks_for_nothing_is_passed_over(line: str) -> None:
    assert [*heard(Signal(source="kernel", text=line))] == []


def test_every_event_has_a_severity() -> None:
    assert {*LINES.values()} == {*SEVERITIES}


@given(st.text(), st.sampled_from([*LINES]), st.integers(0, 200))
def test_any_text_is_read(noise: str, line: str, cut: int) -> None:
    for text in (noise, line[:cut] + noise, noise + line[cut:]):
        assert len([*heard(Signal(source="kernel", text=text))]) <= 1
