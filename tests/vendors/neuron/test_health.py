"""What is wrong with chips and cores: files of the driver, and the kernel log of this boot."""

import pytest

from accelkit import Event, FrozenMap, Scope, Severity, Signal, SourceError
from accelkit.core.reading import read_conditions, read_inventory
from accelkit.vendors.neuron import health, kernel
from accelkit.vendors.neuron.board import kernel_line
from tests.vendors.neuron.bench import CHIPS, Bench, Make, Unprivileged

FATAL, DEGRADED = Severity.FATAL, Severity.DEGRADED


def heard(made: Bench, *lines: str) -> list[Event]:
    return [e for line in lines for e in made.vendor.interpret(Signal(source="kernel", text=line))]


def serial(made: Bench, position: int = 0) -> str:
    return str(made.chips()[position].attributes["serial"])


@pytest.mark.parametrize("product", ["inf2", "trn2"])
def test_well_chips_and_cores_have_no_conditions(bench: Make, product: str) -> None:
    made = bench(product, 2)
    told = read_conditions(made.vendor, made.host, made.devices(), ())

    assert {*told.conditions.values()} == {()}
    assert told.failed == {}


@pytest.mark.parametrize(
    "what, code, severity",
    [
        ("sram", "sram-ecc-uncorrected", FATAL),
        ("mem", "mem-ecc-uncorrected", FATAL),
        ("repairable", "mem-ecc-repairable", DEGRADED),
    ],
)
def test_memory_errors_show_until_they_are_gone(
    bench: Make, what: str, code: str, severity: Severity
) -> None:
    made = bench("trn2", 2)
    one, other = made.chips()
    made.do(f"ecc neuron-0 {what} 3")
    found = made.conditions(one)

    assert [(c.code, c.severity, c.scope) for c in found] == [(code, severity, Scope.TREE)]
    assert "3 counted" in found[0].message
    assert made.codes(other) == {}
    made.do("restore neuron-0")
    assert made.codes(one) == {}


def test_memory_errors_are_folders_with_totals_in_other_drivers(bench: Make) -> None:
    made = bench("trn1", 1)
    (chip,) = made.chips()
    path = f"{CHIPS}/neuron0/stats/hardware/sram_ecc_uncorrected"
    made.take(path)
    made.put(f"{path}/total", "2\n")
    made.put(f"{path}/present", "0\n")

    assert made.codes(chip) == {"sram-ecc-uncorrected": FATAL}


def test_counters_that_a_driver_does_not_have_say_nothing(bench: Make) -> None:
    made = bench("trn1", 1)
    (chip,) = made.chips()
    for name in ("sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected"):
        made.take(f"{CHIPS}/neuron0/stats/hardware/{name}")

    assert made.codes(chip) == {}


def test_chip_that_cannot_be_asked_comes_with_what_to_do(bench: Make) -> None:
    made = bench("trn1", 1)
    (chip,) = made.chips()
    made.put(f"{CHIPS}/neuron0/stats/hardware/mem_ecc_uncorrected", "x")
    with pytest.raises(SourceError, match="no count") as caught:
        made.codes(chip)
    assert "kernel log" in caught.value.remedy
    made.do("unload")
    with pytest.raises(SourceError, match="no such file") as caught:
        made.codes(chip)
    assert caught.value.remedy.startswith("modprobe neuron")


@pytest.mark.parametrize("text", ["", "x", "-1", "1e9", "9" * 30, "²", "\x00"])
def test_counter_that_is_no_number_is_not_taken_for_health(bench: Make, text: str) -> None:
    made = bench("trn1", 1)
    (chip,) = made.chips()
    made.put(f"{CHIPS}/neuron0/stats/hardware/mem_ecc_uncorrected", text)

    with pytest.raises(SourceError, match="no count"):
        made.conditions(chip)


@pytest.mark.parametrize(
    "state, codes", [("0", {"resetting": FATAL}), ("1", {}), ("2", {"reset-failed": FATAL})]
)
def test_reset_is_told_while_it_lasts_or_failed(
    bench: Make, state: str, codes: dict[str, Severity]
) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()
    made.do(f"reset neuron-0 {state}")

    assert made.codes(chip) == codes


def test_state_of_resets_is_for_root_only_and_not_missed(bench: Make) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()
    made.do("reset neuron-0 2", "ecc neuron-0 sram 1")
    made.host = Unprivileged(made.directory)

    assert made.codes(chip) == {"sram-ecc-uncorrected": FATAL}


@pytest.mark.parametrize(
    "counter, code, severity",
    [
        ("hw_nc_ue_error", "core-uncorrectable", FATAL),
        ("hw_hbm_ue_error", "core-memory-uncorrectable", FATAL),
        ("hw_dma_abort_error", "core-dma-aborted", FATAL),
        ("hw_repairable_hbm_ue_error", "core-memory-repairable", DEGRADED),
        ("hw_collectives_error", "core-collectives-failed", DEGRADED),
    ],
)
def test_errors_of_a_core_are_those_of_its_logical_core_and_of_the_whole_chip(
    bench: Make, counter: str, code: str, severity: Severity
) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()
    cores = made.cores()
    made.do(f"fail neuron-0 5 {counter} 2")

    assert [made.codes(core) for core in cores] == [{}, {}, {code: severity}, {}]
    assert made.codes(chip) == {code: severity}
    assert {c.scope for c in made.conditions(chip)} == {Scope.DEVICE}


def test_chip_that_does_not_answer_is_not_known_rather_than_ill(bench: Make) -> None:
    made = bench("trn2", 2)
    devices = made.devices()
    made.do("lose neuron-1")
    told = read_conditions(made.vendor, made.host, devices, ())
    lost = {d.id for d in devices if d.handle == "neuron1"}

    assert {*told.failed} == lost
    assert {*told.conditions} == {d.id for d in devices} - lost


def test_chip_is_found_again_under_another_number(bench: Make) -> None:
    """Health is asked for devices of an earlier read, too."""
    made = bench("inf2", 2)
    one, other = made.chips()
    made.do("reboot", "ecc neuron-0 mem 1")

    assert made.codes(one) == {"mem-ecc-uncorrected": FATAL}
    assert made.codes(other) == {}


def test_chip_that_is_gone_cannot_be_asked(bench: Make) -> None:
    made = bench("inf2", 2)
    chips = made.chips()
    made.do("remove neuron-1")

    with pytest.raises(SourceError):
        made.conditions(chips[1])


def test_every_error_of_the_makers_problem_detector_is_known() -> None:
    assert {*kernel.HARDWARE} == {
        "SRAM_UNCORRECTABLE_ERROR",
        "NC_UNCORRECTABLE_ERROR",
        "HBM_UNCORRECTABLE_ERROR",
        "DMA_ERROR",
        "HANG_ON_COLLECTIVES",
    }


@pytest.mark.parametrize("error", sorted(kernel.HARDWARE))
def test_hardware_error_in_the_kernel_log_stays_for_the_boot(bench: Make, error: str) -> None:
    """It asks to end the instance: nothing on the node mends it."""
    made = bench("trn2", 2)
    one, other = made.chips()
    line = "[ 1234.5] " + kernel_line(error, 0, serial(made), core=3)
    (event,) = heard(made, line)
    code, severity = kernel.HARDWARE[error]

    assert (event.subject, event.code) == (one.id.name, code)
    assert event.data == {"error": error, "core": "3", "action": "TERMINATE_INSTANCE"}
    assert made.codes(one, [event]) == {code: severity}
    assert made.codes(other, [event]) == {}
    assert [c.scope for c in made.conditions(one, [event])] == [Scope.TREE]
    assert "on core 3" in made.conditions(one, [event, event])[0].message


def test_line_that_names_only_the_number_is_for_the_chip_that_has_it(bench: Make) -> None:
    made = bench("trn2", 2)
    (event,) = heard(made, "NEURON_HW_ERR=DMA_ERROR nd-id=1 nc-id=0 action=TERMINATE_INSTANCE")

    assert event.subject == "neuron1"
    assert made.codes(made.chips()[1], [event]) == {"dma-error": FATAL}
    assert made.codes(made.chips()[0], [event]) == {}


def test_line_that_names_no_chip_condemns_none(bench: Make) -> None:
    """Tests of others write such lines by hand, and nobody knows which chip they mean."""
    made = bench("trn2", 2)
    (event,) = heard(made, "kernel: NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR affecting devices")

    assert event.subject is None
    assert made.codes(made.chips()[0], [event]) == {"sram-uncorrectable-error": DEGRADED}


def test_error_that_is_not_known_is_told_and_condemns_none(bench: Make) -> None:
    made = bench("trn2", 1)
    (event,) = heard(made, kernel_line("NEW_SORT_OF_ERROR", 0, serial(made)))

    assert made.codes(made.chips()[0], [event]) == {"hardware-error-other": DEGRADED}


def test_two_chips_with_one_routing_id_are_told(bench: Make) -> None:
    made = bench("trn1", 1)
    (event,) = heard(made, "neuron:neuron_pci_get_device_id_v2: duplicate routing id 3 found")

    assert event == Event(subject=None, code="duplicate-routing-id", source="kernel")
    assert made.codes(made.chips()[0], [event]) == {"duplicate-routing-id": DEGRADED}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NEURON_HW_ERR=",
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus",
        "neuron: probe done",
    ],
)
def test_other_lines_mean_nothing(bench: Make, line: str) -> None:
    assert heard(bench("inf2", 1), line) == []


def test_events_of_others_say_nothing_of_a_chip(bench: Make) -> None:
    made = bench("inf2", 1)
    event = Event(subject=None, code="xid-79", source="kernel", data=FrozenMap())

    assert made.codes(made.chips()[0], [event]) == {}


def test_every_condition_is_explained(bench: Make) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()
    made.do("reset neuron-0 0", *(f"ecc neuron-0 {what} 1" for what in ("sram", "mem")))
    made.do("ecc neuron-0 repairable 1")
    for name in ("hw_nc_ue_error", "hw_hbm_ue_error", "hw_dma_abort_error"):
        made.do(f"fail neuron-0 1 {name} 1")
    lines = [kernel_line(error, 0, serial(made)) for error in (*kernel.HARDWARE, "OTHER")]
    found = made.conditions(chip, heard(made, *lines))

    assert {c.code for c in found} <= health.CONDITIONS.keys()
    assert all(c.message.startswith(health.CONDITIONS[c.code]) for c in found)


def test_faults_of_a_chip_reach_its_cores_and_those_of_a_core_stay_there(bench: Make) -> None:
    made = bench("trn2", 1)
    report = read_inventory(made.vendor, made.host)
    made.do("fail neuron-0 0 hw_nc_ue_error 1")
    told = read_conditions(made.vendor, made.host, report.devices, ()).conditions

    assert [len(told[d.id]) for d in report.devices] == [1, 1, 0, 0, 0]
