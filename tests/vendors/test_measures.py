"""What vendors measure of their simulated hardware is what the page on measures says."""

import re
from pathlib import Path

import pytest

from accelkit.core.model import Device
from accelkit.core.samples import believed
from accelkit.core.telemetry import MEASURES
from accelkit.core.vendor import SupportsTelemetry
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.shared import vendor_class
from accelkit.testing.simulate import simulate

PAGE = Path(__file__).parents[2] / "docs/reference/telemetry.md"
PRODUCTS = {
    "nvidia": "h100",
    "amd": "mi300x",
    "intel": "arc-b580",
    "gaudi": "gaudi3",
    "neuron": "trn2",
    "tpu": "v5e",
}
_ROW = re.compile(r"\| `(hw_\w+)` \|.*\| ([^|]+) \|")


def told() -> dict[str, set[str]]:
    """By metric the vendors that the page names."""
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {metric: set(re.findall("[a-z]+", names)) for metric, names in rows}


@pytest.mark.parametrize("vendor", PRODUCTS)
def test_vendor_measures_what_the_page_says_and_nothing_else(vendor: str, tmp_path: Path) -> None:
    simulate(vendor, PRODUCTS[vendor], 1, str(tmp_path / "machine"))
    kind, host = vendor_class(vendor), MachineHost(str(tmp_path / "machine"))
    plugin = kind(kind.options())
    assert isinstance(plugin, SupportsTelemetry)
    devices = tuple(one for one in plugin.discover(host) if isinstance(one, Device))

    measured, wrong = believed(plugin.samples(host, devices), {d.id: d for d in devices})

    assert wrong == {}
    assert {one.metric for one in measured} == {m for m, who in told().items() if vendor in who}


def test_page_has_every_measure() -> None:
    assert told().keys() == {metric.name for metric in MEASURES}
