"""A driver that is taken out and loaded anew: what is the same then, and what is not."""

import pytest

from accelkit.core.errors import ConfigError
from tests.vendors.amd.bench import Bench, Make


def reload(made: Bench) -> None:
    made.do("unload", "load")


def test_gpus_are_the_same_ones_under_a_driver_that_was_loaded_anew(bench: Make) -> None:
    made = bench("mi300x", 4)
    before = made.devices()
    made.do("unload")
    gone = (made.devices(), made.wrong())
    made.do("load")

    assert gone == ((), [(d.locality.pci_address, "driver-not-ready") for d in before])
    assert made.devices() == before
    assert made.wrong() == []


@pytest.mark.parametrize("verb", ["unload", "mode CPX", "mode gpu-0 CPX", "memory NPS4"])
def test_driver_that_is_in_use_neither_goes_nor_takes_another_mode(bench: Make, verb: str) -> None:
    made = bench("mi300x", 2)
    before = made.devices()
    made.do("hold gpu-1 4711")

    with pytest.raises(ConfigError, match="in use by process 4711") as caught:
        made.do(verb)
    assert caught.value.remedy == "first: free gpu-1"
    assert made.devices() == before

    made.do("free gpu-1", verb)
    assert made.devices() != before


def test_compute_modes_end_with_the_driver_and_the_memory_mode_that_was_asked_for_begins(
    bench: Make,
) -> None:
    made = bench("mi300x", 2)
    first = made.wholes()[0]
    made.do("mode CPX")
    made.host.write(made.function(first, "current_memory_partition"), "NPS4")
    modes = {whole.mode for whole in made.wholes()}

    reload(made)

    assert modes == {"cpx-nps1"}
    assert {str(whole.mode).rpartition("-")[2] for whole in made.wholes()} == {"nps4"}
    assert "cpx-nps1" not in {whole.mode for whole in made.wholes()}
    assert [whole.id for whole in made.wholes()] == [first.id, made.wholes()[1].id]


def test_errors_are_counted_since_the_driver_was_loaded(bench: Make) -> None:
    made = bench("mi300x", 1)
    (device,) = made.devices()
    made.do("ras gpu-0 umc 2")
    before = made.codes(device)

    reload(made)

    assert "ecc-uncorrected" in before
    assert made.codes(device) == {}
