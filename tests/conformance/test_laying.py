"""Faults of a user's choice happen to the machines of a run, and to no other machine."""

import threading
import time
from pathlib import Path

import attrs
import pytest

from accelkit.conformance.bench import PluginBench, Scope
from accelkit.conformance.intree import subject_of
from accelkit.conformance.laying import fault_text, faults_for, lay
from accelkit.core.errors import ConfigError
from accelkit.testing.faults import Fault
from accelkit.testing.shared import Shared
from accelkit.testing.simulate import simulate

EXAMPLES = Path(__file__).parents[2] / "examples" / "faults"


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """A machine of two units."""
    simulate("sim", None, 2, str(tmp_path / "pair"))
    return str(tmp_path / "pair")


def lost(directory: str) -> str:
    return repr(Shared(directory).record().state)


def test_faults_happen_at_once_in_time_and_when_something_is_read(pair: str) -> None:
    untouched, scope = lost(pair), Scope(0, 1.0)
    read = Fault(read="*/faults", do="error EIO")

    lay(
        [Fault(at=0.2, do="lose accel-1"), Fault(at=0.0, do="lose accel-0"), read],
        pair,
        scope.later,
    )
    at_once = lost(pair)

    assert at_once != untouched
    assert "accel-1" not in at_once
    assert Shared(pair).record().faults == (read,)
    while "accel-1" not in lost(pair):
        time.sleep(0.01)
    scope.close()


def test_machine_without_the_unit_is_as_it_was(pair: str) -> None:
    before = Shared(pair).record()

    lay([Fault(at=0.0, do="lose accel-3")], pair, Scope(0, 1.0).later)

    assert Shared(pair).record() == before


def test_what_is_still_to_happen_does_not_when_the_check_has_ended(pair: str) -> None:
    before, scope = lost(pair), Scope(0, 1.0)

    lay([Fault(at=60.0, do="lose accel-1")], pair, scope.later)
    scope.close()
    for thread in threading.enumerate():
        if thread.name == "conformance-faults":
            thread.join()

    assert lost(pair) == before


def test_every_machine_that_a_check_makes_has_them() -> None:
    fault = Fault(read="*/faults", do="error EIO")
    bench = PluginBench(attrs.evolve(subject_of("sim"), faults=(fault,)), 0, 1.0)

    made = [bench.rig().directory for _ in range(2)]

    assert [Shared(str(directory)).record().faults for directory in made] == [(fault,)] * 2
    bench.close()


def test_fault_is_told_as_its_file_has_it() -> None:
    assert fault_text(Fault(at=3.0, do="lose gpu-2")) == "at 3s do lose gpu-2"
    told = fault_text(Fault(call="nvmlInit_v2", first=2, times=3, do="hang 30s"))
    assert told == "call nvmlInit_v2 from 2 times 3 do hang 30s"


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_example_can_happen(path: Path) -> None:
    assert faults_for("nvidia", None, str(path))


def test_everything_that_cannot_happen_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(
        "[{at: 0s, do: lose accel-4}, {at: 0s, do: lose accel-3}, {at: 0s, do: frobnicate}]"
    )

    with pytest.raises(ConfigError) as told:
        faults_for("sim", None, str(path))

    assert [where for where, _ in told.value.problems] == [f"{path}[0]", f"{path}[2]"]
    assert "there is no accel-4" in told.value.problems[0][1]
