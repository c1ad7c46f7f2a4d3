"""What the doctor says of a host with chips."""

import shutil
from pathlib import Path

from accelkit.vendors.neuron import facts
from tests.vendors.neuron.bench import CHIPS, Make, Unprivileged


def test_nothing_is_said_of_a_host_that_is_well(bench: Make) -> None:
    assert bench("trn2", 2).findings() == []


def test_host_without_chips_is_said_to_have_none(bench: Make) -> None:
    """Seen elsewhere: a plugin that crashed again and again on such hosts."""
    made = bench("inf2", 1)
    made.do("remove neuron-0", "unload")
    (found,) = made.findings()

    assert (found.suspect, found.sure) == ("hardware", False)


def test_missing_driver_is_named(bench: Make) -> None:
    made = bench("inf2", 1)
    made.do("unload")

    assert made.suspects()[0] == "the neuron kernel module"
    assert made.findings()[0].remedy.startswith("modprobe neuron")


def test_chips_that_the_driver_does_not_take_are_counted(bench: Make) -> None:
    made = bench("inf2", 2)
    made.do("bind neuron-1 none")
    (found,) = made.findings()

    assert (found.suspect, found.proof) == ("the driver", "of 2 PCI functions it shows 1 chips")


def test_driver_of_a_virtual_machine_is_named(bench: Make) -> None:
    made = bench("inf2", 2)
    made.do("bind neuron-1 vfio-pci")

    assert made.suspects() == ["vfio-pci"]


def test_driver_is_not_missed_where_virtual_machines_have_all_chips(bench: Make) -> None:
    made = bench("inf2", 2)
    made.do("bind neuron-0 vfio-pci", "bind neuron-1 vfio-pci", "unload")

    assert made.suspects() == ["vfio-pci", "vfio-pci"]
    assert not any(finding.sure for finding in made.findings())


def test_driver_without_chips_is_told(bench: Make) -> None:
    made = bench("inf2", 1)
    shutil.rmtree(made.directory + CHIPS)

    assert made.suspects() == ["the driver"]


def test_chip_that_does_not_answer_is_told(bench: Make) -> None:
    made = bench("inf2", 2)
    made.do("lose neuron-1")
    (found,) = made.findings()

    assert found.symptom == "neuron1 is not offered"
    assert "firmware does not answer" in found.proof


def test_agent_that_is_not_root_is_told_so(bench: Make) -> None:
    made = bench("inf2", 2)
    made.host = Unprivileged(made.directory)

    assert made.suspects() == ["permissions"]


def test_missing_and_closed_device_files_are_told(bench: Make) -> None:
    made = bench("inf2", 2)
    made.do("no-node neuron-0")
    made.put("/dev/neuron1", "")
    Path(made.directory, "dev/neuron1").chmod(0o600)

    assert made.suspects() == ["device files", "permissions"]


def test_nonsense_in_the_file_of_logical_cores_is_told(bench: Make) -> None:
    made = bench("trn2", 1)
    made.put(facts.LNC_FILE, f"{facts.LNC_VARIABLE}=7\n")

    assert facts.LNC_FILE in made.suspects()


def test_missing_neuron_ls_is_told_where_it_matters(bench: Make) -> None:
    (found,) = bench("inf2", 2, {"tools": "no"}).findings()

    assert (found.suspect, "aws-neuronx-tools" in found.remedy) == ("neuron-ls", True)
    assert bench("inf2", 1, {"tools": "no"}).findings() == []
