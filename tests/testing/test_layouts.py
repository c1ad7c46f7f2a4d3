"""What vendors read on real machines is on the simulated ones, by hand-written captures."""

from pathlib import Path

import pytest

from accelkit.testing.captures.replaying import CaptureHost
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from tests.testing.layout import LAYOUTS, load_layout
from tests.testing.watching import asked


@pytest.mark.parametrize("name", LAYOUTS)
def test_whatever_is_read_on_a_real_machine_is_on_the_simulated_one(
    tmp_path: Path, name: str
) -> None:
    layout = load_layout(name)
    layout.lay_out(tmp_path / "capture")
    simulate(layout.vendor, layout.product, max(1, layout.devices), str(tmp_path / "machine"))

    real, there = asked(layout.vendor, CaptureHost(str(tmp_path / "capture")))
    _, here = asked(layout.vendor, MachineHost(str(tmp_path / "machine")))

    wholes = [device for device in real.devices if device.parent is None]
    assert len(wholes) == layout.devices, real.problems
    assert there - here == set()
