import pytest

from accelkit import SourceError
from accelkit.core.real_host import RealHost
from tests.vendors.gaudi.bench import Bench, Make
from tests.vendors.gaudi.doors import Denied, Modes, NoCard, Said


def suspects(made: Bench) -> list[str]:
    return [f.suspect for f in made.vendor.diagnose(made.host)]


@pytest.mark.parametrize("layout", ["accel", "virtual", "hl"])
def test_sound_machine_has_no_findings(bench: Make, layout: str) -> None:
    assert suspects(bench(machine={"layout": layout})) == []


def test_host_without_cards_is_told_so(
    bench: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = RealHost(str(tmp_path_factory.mktemp("empty")))

    assert [f.suspect for f in bench(count=1).vendor.diagnose(empty)] == ["hardware"]


def test_each_card_without_driver_is_named(bench: Make) -> None:
    made = bench(count=2)
    made.do("unload")
    found = list(made.vendor.diagnose(made.host))

    assert [f.symptom for f in found] == [
        "Gaudi card 0000:03:00.0 is not offered",
        "Gaudi card 0000:04:00.0 is not offered",
    ]
    assert {(f.suspect, f.sure) for f in found} == {("the habanalabs kernel module", True)}


@pytest.mark.parametrize("driver, sure", [("vfio-pci", False), ("acme", True)])
def test_card_at_another_driver_is_told(bench: Make, driver: str, sure: bool) -> None:
    made = bench(count=2)
    made.do(f"bind gaudi-0 {driver}")

    assert made.findings()[driver].sure is sure


def test_missing_device_files_are_named(bench: Make) -> None:
    made = bench(count=1)
    made.do("no-nodes")

    assert [f.proof for f in made.vendor.diagnose(made.host)][:1] == [
        "/dev/accel/accel0 is not there"
    ]


def test_device_files_for_root_only_are_told(bench: Make) -> None:
    made = bench(count=1)
    found = list(made.vendor.diagnose(Modes(made.host, 0o600)))

    assert [f.suspect for f in found] == ["permissions"] * 3
    assert found[0].proof == "/dev/accel/accel0 has mode 600"


def test_what_may_not_be_read_is_a_matter_of_rights(bench: Make) -> None:
    """Seen: N/A is shown without root, and taken for a fault."""
    made = bench(count=1)
    (finding,) = made.vendor.diagnose(Denied(made.host, "status"))

    assert finding.suspect == "the rights of whoever asks"
    assert "says nothing of the cards" in finding.remedy


def test_card_that_its_driver_has_given_up_is_told(bench: Make) -> None:
    made = bench(count=2)
    made.do("status gaudi-1 disabled")

    assert made.findings()["the card"].symptom == "Gaudi card 0000:04:00.0 cannot be used"


def test_card_that_is_reset_after_its_last_user_is_no_finding(bench: Make) -> None:
    """The driver does so after each use."""
    made = bench("gaudi2", 1)
    made.do("status gaudi-0 in reset after device release")

    assert suspects(made) == []


@pytest.mark.parametrize("said", ["3", "none"])
def test_modules_that_do_not_tell_cards_apart_are_told(bench: Make, said: str) -> None:
    made = bench(count=2)
    made.do(f"module gaudi-0 {said}", f"module gaudi-1 {said}")

    assert "0000:03:00.0" in made.findings()["module ids"].proof


def test_driver_without_its_network_modules_is_told(bench: Make) -> None:
    made = bench(count=2)
    made.do("no-verbs")

    assert suspects(made) == ["habanalabs_cn, habanalabs_en and habanalabs_ib"]


def test_missing_hook_is_told(bench: Make) -> None:
    assert suspects(bench(machine={"hook": "none"})) == ["the container hook"]


def test_firmware_of_another_release_than_the_driver_is_told(bench: Make) -> None:
    """Seen: pods crash at their start, since driver and container are of different releases."""
    made = bench(machine={"driver": "1.18.0-95323a5", "firmware": "1.16.2"})
    (finding,) = made.vendor.diagnose(made.host)

    assert finding.suspect == "versions that do not fit"
    assert finding.proof == "0000:03:00.0 has firmware 1.16, and driver 1.18"


def test_process_that_has_a_card_open_is_named(bench: Make) -> None:
    """Seen: programs only say that a device cannot be acquired, synStatus 20 or 26."""
    made = bench(count=2)
    made.do("hold gaudi-1 4711")
    finding = made.findings()["a process that has the card"]

    assert finding.proof == "process 4711 (python3) has /dev/accel/accel1 open"
    assert not finding.sure


def test_driver_that_contradicts_itself_is_told(bench: Make) -> None:
    made = bench(count=1)
    found = list(made.vendor.diagnose(Said(made.host, {"status": "\x00" * 500})))

    assert [f.suspect for f in found] == ["the card"]
    assert all(f.proof.isprintable() for f in found)


@pytest.mark.parametrize(
    "names, proof", [((), "shows no accelerator"), (("accel3", "accel4"), "and accel4")]
)
def test_card_that_the_driver_could_not_start_is_told(
    bench: Make, names: tuple[str, ...], proof: str
) -> None:
    made = bench(count=1)
    (finding,) = made.vendor.diagnose(NoCard(made.host, *names))

    assert finding.suspect == "the start of the card"
    assert proof in finding.proof


def test_status_that_cannot_be_read_is_told(bench: Make) -> None:
    made = bench(count=1)
    away = SourceError("Input/output error", operation="read")
    (finding,) = made.vendor.diagnose(Said(made.host, {"status": away}))

    assert "Input/output error" in finding.proof
