"""The size of logical cores: one file for all chips of a host, and the mode of each."""

import pytest

from accelkit import Device, ModeBusy, PartitionError, Placement, SourceError
from accelkit.core.reading import read_inventory
from accelkit.core.working import create_partition, destroy_partition, set_device_mode
from accelkit.vendors.neuron import facts
from accelkit.vendors.neuron.lnc import read_lnc
from tests.vendors.neuron.bench import Bench, Make, grant


def set_mode(made: Bench, mode: str, device: Device | None = None) -> None:
    set_device_mode(made.vendor, made.host, device or made.chips()[0], mode)


def test_mode_of_one_chip_is_that_of_all(bench: Make) -> None:
    made = bench("trn2", 2)
    set_mode(made, "lnc1")

    assert made.host.read(facts.LNC_FILE) == "NEURON_LOGICAL_NC_CONFIG=1"
    assert [chip.mode for chip in made.chips()] == ["lnc1", "lnc1"]
    assert len(made.cores()) == 16
    set_mode(made, "lnc2", made.chips()[1])
    assert len(made.cores()) == 8


def test_mode_that_is_there_is_not_set_again(bench: Make) -> None:
    made = bench("trn2", 1)
    made.do("hold neuron-0 4711")
    made.put(facts.LNC_FILE, "# by hand\nNEURON_LOGICAL_NC_CONFIG=2\n")
    set_mode(made, "lnc2")

    assert made.host.read(facts.LNC_FILE).startswith("# by hand")


def test_mode_is_not_set_while_a_process_has_any_chip(bench: Make) -> None:
    """Containers see the file, and what runs in them began with other cores."""
    made = bench("trn2", 2)
    made.do("hold neuron-1 4711")

    with pytest.raises(ModeBusy, match="4711"):
        set_mode(made, "lnc1", made.chips()[0])
    made.do("free neuron-1")
    set_mode(made, "lnc1")
    assert made.chips()[0].mode == "lnc1"


def test_mode_needs_the_file(bench: Make) -> None:
    made = bench("trn2", 1)
    made.do("no-lnc-file")

    with pytest.raises(PartitionError) as caught:
        set_mode(made, "lnc1")
    assert "touch /opt/aws/neuron/logical_nc_config" in caught.value.remedy
    set_mode(made, "lnc2")


@pytest.mark.parametrize("product", ["inf2", "trn1"])
def test_older_chips_have_one_mode(bench: Make, product: str) -> None:
    made = bench(product, 1)
    set_mode(made, "core")

    with pytest.raises(PartitionError, match="its modes: core"):
        set_mode(made, "lnc1")


def test_mode_that_is_not_known_is_refused(bench: Make) -> None:
    with pytest.raises(PartitionError, match="lnc1 and lnc2"):
        set_mode(bench("trn3", 1), "lnc4")


def test_mode_survives_a_reboot(bench: Make) -> None:
    made = bench("trn3", 1)
    set_mode(made, "lnc1")
    made.do("reboot")

    assert made.chips()[0].mode == "lnc1"


@pytest.mark.parametrize(
    "text, lnc",
    [
        ("", 2),
        ("# nothing\n", 2),
        ("NEURON_LOGICAL_NC_CONFIG=1", 1),
        (' NEURON_LOGICAL_NC_CONFIG = "1" \n\n', 1),
        ("NEURON_LOGICAL_NC_CONFIG=1\nNEURON_LOGICAL_NC_CONFIG=2\n", 2),
        ("OTHER=1\n", 2),
    ],
)
def test_file_is_read_as_people_write_it(bench: Make, text: str, lnc: int) -> None:
    made = bench("trn2", 1)
    made.put(facts.LNC_FILE, text)

    assert read_lnc(made.host) == lnc


@pytest.mark.parametrize(
    "text", ["NEURON_LOGICAL_NC_CONF", "\xff\x00", "OTHER=1\nNEURON_LOGICAL_NC_CONFIG\n"]
)
def test_file_that_is_cut_off_is_not_taken_for_the_default(bench: Make, text: str) -> None:
    """Guessing would hand out cores that there are not."""
    made = bench("trn2", 1)
    made.put(facts.LNC_FILE, text)

    with pytest.raises(SourceError, match="is no setting"):
        read_lnc(made.host)
    assert [code for _, code in made.unreadable()] == ["lnc-unknown"]


@pytest.mark.parametrize("text", ["=3", "=", "=0", "=two", "=-1", "=1,2", "=²"])
def test_value_that_cannot_be_makes_devices_stale_rather_than_wrong(bench: Make, text: str) -> None:
    """Guessing would hand out cores that there are not."""
    made = bench("trn2", 2)
    names = [chip.id.name for chip in made.chips()]
    made.put(facts.LNC_FILE, f"{facts.LNC_VARIABLE}{text}\n")

    with pytest.raises(SourceError):
        read_lnc(made.host)
    assert made.unreadable() == [(name, "lnc-unknown") for name in names]
    assert read_inventory(made.vendor, made.host).answered


def test_file_says_nothing_to_older_chips(bench: Make) -> None:
    made = bench("trn1", 1)
    made.put(facts.LNC_FILE, f"{facts.LNC_VARIABLE}=nonsense\n")

    assert len(made.cores()) == 2
    assert made.unreadable() == []


def test_core_that_is_there_is_answered_and_none_is_made(bench: Make) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()
    core = made.cores()[1]
    assert core.placement is not None

    assert create_partition(made.vendor, made.host, chip, core.placement) == core
    with pytest.raises(PartitionError, match="not made"):
        create_partition(made.vendor, made.host, chip, Placement(profile="lnc1", start=0, size=1))


def test_core_is_not_unmade_and_one_that_is_not_there_is(bench: Make) -> None:
    made = bench("trn2", 1)
    core = made.cores()[0]

    with pytest.raises(PartitionError, match="a part of its chip"):
        destroy_partition(made.vendor, made.host, core)
    made.do("lnc 1")
    destroy_partition(made.vendor, made.host, core)


def test_containers_are_told_the_mode_that_was_set(bench: Make) -> None:
    made = bench("trn2", 1)
    set_mode(made, "lnc1")
    core = made.cores()[6]
    edits = made.vendor.edits(made.host, grant(core))

    assert edits.each[core.id].env == {"NEURON_LOGICAL_NC_CONFIG": "1"}
    assert edits.whole.env == {"NEURON_RT_VISIBLE_CORES": "6"}
