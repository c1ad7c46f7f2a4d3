"""The simulated machine behaves as the driver does."""

import json
from pathlib import Path

import pytest

from accelkit import ConfigError, Device, NotThere
from accelkit.core.real_host import RealHost
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.neuron import facts
from accelkit.vendors.neuron.board import PRODUCTS
from accelkit.vendors.neuron.machine import NeuronMachine
from accelkit.vendors.neuron.vendor import Neuron, NeuronOptions
from tests.vendors.neuron.bench import CHIPS, Make


def test_number_of_cores_has_no_newline_and_is_for_root_only(bench: Make) -> None:
    made = bench("trn2", 1)
    file = Path(f"{made.directory}{CHIPS}/neuron0/core_count")

    assert file.read_bytes() == b"8"
    assert file.stat().st_mode & 0o777 == 0o400


def test_links_are_listed_as_the_driver_does(bench: Make) -> None:
    torus, single = bench("trn1", 16), bench("trn1", 1)

    assert Path(f"{torus.directory}{CHIPS}/neuron0/connected_devices").read_bytes() == (
        b"12, 3, 4, 1\n"
    )
    assert Path(f"{single.directory}{CHIPS}/neuron0/connected_devices").read_bytes() == b"\n"


def test_neuron_ls_lists_chips_as_the_tool_does(bench: Make) -> None:
    made = bench("trn2", 2)
    finished = made.host.run((facts.TOOL, "-j"), 1.0)
    listed = json.loads(finished.out)

    assert finished.code == 0
    assert listed[1] == {
        "neuron_device": 1,
        "bdf": "04:00.0",
        "connected_to": [0],
        "nc_count": 4,
        "logical_neuroncore_config": 2,
        "memory_size": 103079215104,
        "numa_node": "1",
        "neuron_processes": [],
    }
    made.do("lnc 1")
    listed = json.loads(made.host.run((facts.TOOL, "-j"), 1.0).out)
    assert [entry["nc_count"] for entry in listed] == [8, 8]


def test_neuron_ls_needs_the_driver_and_may_be_missing(bench: Make) -> None:
    made = bench("inf2", 1)
    assert made.host.run((facts.TOOL,), 1.0).code == 2
    made.do("unload")
    assert made.host.run((facts.TOOL, "-j"), 1.0).code == 1
    with pytest.raises(NotThere):
        bench("inf2", 1, {"tools": "no"}).host.run((facts.TOOL, "-j"), 1.0)


def test_serial_numbers_follow_the_seed_and_the_place(bench: Make) -> None:
    one, other = bench("inf2", 2), bench("inf2", 2)

    assert [c.id for c in one.chips()] == [c.id for c in other.chips()]
    assert len({c.id for c in one.chips()}) == 2


def test_file_of_logical_cores_is_that_of_the_machine(bench: Make) -> None:
    made = bench("trn2", 1)
    made.host.write(facts.LNC_FILE, f"{facts.LNC_VARIABLE}=1\n")
    made.do("ecc neuron-0 sram 1")

    assert made.host.read(facts.LNC_FILE) == f"{facts.LNC_VARIABLE}=1"


def test_what_happened_to_chips_ends_with_the_boot(bench: Make) -> None:
    made = bench("trn2", 2)
    before = made.chips()
    made.do("lose neuron-0", "remove neuron-1", "unload", "reboot")

    assert {c.id for c in made.chips()} == {c.id for c in before}


def test_driver_that_is_loaded_anew_counts_anew_and_repairs_memory(bench: Make) -> None:
    made = bench("trn2", 1)
    made.do("ecc neuron-0 repairable 2", "ecc neuron-0 mem 3", "fail neuron-0 1 hw_nc_ue_error 1")
    before = {code for device in made.devices() for code in made.codes(device)}
    made.do("unload", "load")
    after = {code for device in made.devices() for code in made.codes(device)}

    assert before == {"mem-ecc-repairable", "mem-ecc-uncorrected", "core-uncorrectable"}
    assert after == {"mem-ecc-uncorrected"}


def test_device_files_have_numbers(bench: Make) -> None:
    found = bench("inf2", 2).host.stat("/dev/neuron1")

    assert found is not None
    assert (found.kind, found.minor) == ("c", 1)


@pytest.mark.parametrize(
    "verb",
    [
        "ecc neuron-0 dram 1",
        "ecc neuron-0 sram many",
        "ecc neuron-0",
        "fail neuron-0 9 hw_nc_ue_error 1",
        "fail neuron-0 0 no_such_error 1",
        "use neuron-0 0",
        "use neuron-0 x 1",
        "reset neuron-0 3",
        "hold neuron-0 me",
        "lnc 3",
        "bind neuron-0",
        "lose neuron-7",
    ],
)
def test_verb_that_is_misused_says_how_it_is_written(bench: Make, verb: str) -> None:
    made = bench("trn2", 1)
    before = made.discover()

    with pytest.raises(ConfigError) as caught:
        set_state(made.directory, verb.split())
    assert caught.value.remedy == f"write: {NeuronMachine.verbs[verb.split(maxsplit=1)[0]]}"
    assert made.discover() == before


def test_chips_without_logical_cores_have_no_such_verb(bench: Make) -> None:
    with pytest.raises(ConfigError, match="Trainium2"):
        bench("inf2", 1).do("lnc 1")


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_machine_is_read_by_its_files_alone(bench: Make, product: str) -> None:
    made = bench(product, 1)
    found = list(made.vendor.discover(RealHost(made.directory)))

    assert found == made.discover()


def test_chips_beside_devices_of_another_maker_are_a_torus_of_their_own(tmp_path: Path) -> None:
    directory = str(tmp_path)
    simulate("gaudi", "gaudi3", 8, directory)
    simulate("neuron", "trn2", 16, directory)
    neuron, host = Neuron(NeuronOptions()), MachineHost(directory)
    chips = [d for d in neuron.discover(host) if isinstance(d, Device) and d.kind == "neuron"]

    assert sorted(int(str(chip.attributes["deviceId"])) for chip in chips) == [*range(16)]
    assert {chip.attributes["topology"] for chip in chips} == {"torus"}
