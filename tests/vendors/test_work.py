"""How the work of discovery grows with the machine. Not here: its time, see benchmarks."""

import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType

import attrs
import pytest

from accelkit.core.model import Device
from accelkit.core.policy_check import options_of
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.shared import vendor_class
from accelkit.testing.simulate import set_state, simulate
from benchmarks.discovery import RULES


@attrs.frozen(kw_only=True)
class Case:
    """A machine whose units can be doubled, and how it is told to have most devices."""

    vendor: str
    product: str
    units: int
    verb: str = ""
    options: Mapping[str, object] = attrs.Factory(dict)


CASES = (
    Case(vendor="amd", product="mi300x", units=2, verb="mode CPX"),
    Case(vendor="gaudi", product="gaudi3", units=4),
    Case(vendor="intel", product="arc-pro-b60", units=4),
    Case(vendor="neuron", product="trn2", units=4, verb="lnc 1"),
    Case(vendor="nvidia", product="h100", units=4),
    Case(vendor="tpu", product="v6e", units=4),
    *(Case(vendor="generic", product=p, units=16, options=rules) for p, rules in RULES.items()),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.vendor}-{case.product}")
def test_twice_the_machine_is_at_most_twice_the_work(case: Case, tmp_path: Path) -> None:
    few, calls_of_few = discovered(case, case.units, tmp_path / "few")
    many, calls_of_many = discovered(case, 2 * case.units, tmp_path / "many")

    assert many == 2 * few
    assert calls_of_many <= 2 * calls_of_few


def discovered(case: Case, units: int, folder: Path) -> tuple[int, int]:
    """How many devices a machine has, and how many calls of Python it takes to find them."""
    simulate(case.vendor, case.product, units, str(folder))
    if case.verb:
        set_state(str(folder), case.verb.split())
    kind = vendor_class(case.vendor)
    vendor, host = kind(options_of(kind, case.options)), MachineHost(str(folder))
    list(vendor.discover(host))  # what is looked up once is known afterwards
    # The kernel follows no link below a root while others rename files; then it is done in Python.
    return min(counted(lambda: list(vendor.discover(host))) for _ in range(3))


def counted(discover: Callable[[], Iterable[object]]) -> tuple[int, int]:
    calls = 0

    def count(_frame: FrameType, event: str, _what: object) -> None:
        nonlocal calls
        calls += event == "call"

    gc.disable()  # or the ends of what other tests left are counted
    sys.setprofile(count)
    try:
        found = discover()
    finally:
        sys.setprofile(None)
        gc.enable()
    return sum(isinstance(one, Device) for one in found), calls
