import pytest

from accelkit import Event, Severity, SourceError
from accelkit.core.errors import AccessDenied
from accelkit.core.host import Door
from accelkit.vendors.gaudi import facts, messages
from tests.vendors.gaudi.bench import Make, line
from tests.vendors.gaudi.doors import Denied, NeverOpened, Said

LOST = "accel accel0: Device heartbeat failed! PCI link is broken"


def test_sound_card_has_no_conditions(bench: Make) -> None:
    made = bench()

    assert [made.conditions(d) for d in made.devices()] == [{}] * 8


@pytest.mark.parametrize(
    "status, code",
    [
        ("in reset", "in-reset"),
        ("needs reset", "needs-reset"),
        ("in device creation", "starting"),
        ("disabled", "disabled"),
        ("malfunction", "disabled"),
    ],
)
def test_card_that_its_driver_does_not_let_be_used_is_unhealthy_until_it_does(
    bench: Make, status: str, code: str
) -> None:
    """Seen: a driver for claims that never calls a card healthy again."""
    made = bench(count=2)
    one, other = made.devices()
    made.do(f"status gaudi-0 {status}")

    assert made.severities(one) == {code: Severity.FATAL}
    assert made.severities(other) == {}
    made.do("status gaudi-0 operational")
    assert made.severities(one) == {}


def test_reset_after_each_use_makes_no_card_unhealthy(bench: Make) -> None:
    """The driver resets a Gaudi2 whenever its user goes: nodes would flap with every pod."""
    made = bench("gaudi2", 1)
    made.do("status gaudi-0 in reset after device release")

    assert made.severities(made.devices()[0]) == {"released": Severity.INFO}


def test_status_that_is_not_known_is_told_as_it_is(bench: Make) -> None:
    made = bench(count=1)
    device = made.devices()[0]
    door = Said(made.host, {"status": "Meditating"})

    (condition,) = made.vendor.conditions(door, device, ())
    assert (condition.code, condition.severity) == ("status-unknown", Severity.DEGRADED)
    assert "Meditating" in condition.message


def test_empty_status_is_told_as_none(bench: Make) -> None:
    made = bench(count=1)

    (condition,) = made.vendor.conditions(Said(made.host, {"status": "\n"}), made.devices()[0], ())
    assert (condition.code, condition.severity) == ("status-unknown", Severity.INFO)
    assert "it tells none" in condition.message


def test_status_that_may_not_be_read_is_unknown_and_not_bad(bench: Make) -> None:
    """Seen: tools show N/A to whoever is not root, and somebody takes the card for broken."""
    made = bench(count=1)
    device = made.devices()[0]

    with pytest.raises(AccessDenied):
        list(made.vendor.conditions(Denied(made.host, "status"), device, ()))


def test_card_that_is_gone_cannot_be_asked(bench: Make) -> None:
    made = bench(count=2)
    device = made.devices()[0]
    made.do("remove gaudi-0")

    with pytest.raises(SourceError) as caught:
        made.conditions(device)
    assert "there is no PCI function 0000:03:00.0" in str(caught.value)
    assert "modprobe" not in caught.value.remedy


def test_card_whose_driver_is_gone_cannot_be_asked(bench: Make) -> None:
    made = bench(count=1)
    device = made.devices()[0]
    made.do("unload")

    with pytest.raises(SourceError) as caught:
        made.conditions(device)
    assert caught.value.remedy == "modprobe habanalabs"


def test_looking_opens_no_device_file(bench: Make) -> None:
    """Seen: a probe has the card open, and the workload cannot acquire it."""
    made = bench()
    door = NeverOpened(made.host)
    devices = made.devices()

    for device in devices:
        list(made.vendor.conditions(door, device, ()))
    list(made.vendor.discover(door))
    list(made.vendor.holders(door, devices))
    list(made.vendor.samples(door, devices))
    list(made.vendor.diagnose(door))


def test_hard_resets_are_told_and_no_reason_to_worry(bench: Make) -> None:
    made = bench(count=1)
    made.do("reset gaudi-0", "reset gaudi-0")

    (condition,) = made.conditions(made.devices()[0]).values()
    assert (condition.code, condition.severity) == ("was-reset", Severity.INFO)
    assert "(2)" in condition.message


def test_link_with_fewer_lanes_is_degraded(bench: Make) -> None:
    made = bench(count=1)
    made.do("link gaudi-0 8")

    (condition,) = made.conditions(made.devices()[0]).values()
    assert (condition.code, condition.severity) == ("pcie-narrow", Severity.DEGRADED)
    assert "8 of 16 lanes" in condition.message


def test_link_that_is_slower_is_degraded(bench: Make) -> None:
    made = bench(count=1)
    door = Said(made.host, {"current_link_speed": "8.0 GT/s PCIe"})

    (condition,) = made.vendor.conditions(door, made.devices()[0], ())
    assert (condition.code, condition.severity) == ("pcie-slow", Severity.DEGRADED)


def test_slot_that_can_do_less_than_the_card_is_no_fault(bench: Make) -> None:
    made = bench(count=1)
    made.do("link gaudi-0 8")
    device = made.devices()[0]
    bridge = made.host.resolve(f"/sys/bus/pci/devices/{device.locality.pci_address}")
    port = bridge.split("/")[-2]

    door = Said(made.host, {f"{port}/max_link_width": "8"})

    assert list(made.vendor.conditions(door, device, ())) == []


def test_port_without_link_beside_others_is_degraded(bench: Make) -> None:
    made = bench(count=1)
    made.do("port gaudi-0 1 down")

    (condition,) = made.conditions(made.devices()[0]).values()
    assert (condition.code, condition.severity) == ("port-down", Severity.DEGRADED)
    assert "(1 of 3)" in condition.message
    made.do("port gaudi-0 1 up")
    assert made.conditions(made.devices()[0]) == {}


def test_ports_without_cables_are_no_fault(bench: Make) -> None:
    made = bench(count=1)
    made.do(*(f"port gaudi-0 {port} down" for port in range(3)))

    assert made.conditions(made.devices()[0]) == {}


@pytest.mark.parametrize("said", ["", "x16", "0", "-4", "nan", "1e400", "9" * 400])
def test_link_that_tells_nonsense_tells_nothing(bench: Make, said: str) -> None:
    made = bench(count=1)
    door = Said(made.host, {"current_link_width": said, "current_link_speed": said})

    assert list(made.vendor.conditions(door, made.devices()[0], ())) == []


@pytest.mark.parametrize(
    "text, subject, code",
    [
        (LOST, "accel0", "heartbeat-lost"),
        ("habanalabs hl3: Device heartbeat failed! PCI link is healthy", "hl3", "heartbeat-lost"),
        (
            "habanalabs 0000:03:00.0: 0000:03:00.0 Failed to reset! Device is NOT usable",
            "0000:03:00.0",
            "reset-failed",
        ),
        (
            "accel accel1: 0000:04:00.0 Consecutive fatal errors, stopping hard reset",
            "0000:04:00.0",
            "errors-repeated",
        ),
        (
            "accel accel1: 0000:04:00.0 Failed to kill all open processes, stopping hard reset",
            "0000:04:00.0",
            "processes-stuck",
        ),
        (
            "habanalabs: Failed to initialize accel2. Device 0000:13:00.0 is NOT usable!",
            "0000:13:00.0",
            "start-failed",
        ),
        (
            "habanalabs 0000:03:00.0: PCI frozen state error detected",
            "0000:03:00.0",
            "pcie-error",
        ),
        (
            (
                "accel accel0: HBM0_MC0_SEI_SEVERE: ECC error detected. address: 0x10. "
                "Syndrome: 0x3. wrapper id 1. block id 0x2. critical 1."
            ),
            "accel0",
            "memory-critical",
        ),
        (
            (
                "accel accel0: TPC0_ECC_SERR: ECC error detected. address: 0x10. Syndrom: 0x3. "
                "block id 2. critical 0."
            ),
            "accel0",
            "memory-error",
        ),
        (
            (
                "accel accel0: System Error Interrupt - HBM(2) MC(1) MC_CH(0) MC_PC(1). "
                "Critical(1). Error cause: HBM_SEI_CATTRIP"
            ),
            "accel0",
            "memory-critical",
        ),
        (
            'habanalabs hl0: Received H/W interrupt 308 ["MMU_PAGE_FAULT"]',
            "hl0",
            "hardware-event",
        ),
    ],
)
def test_line_of_the_kernel_log_is_understood(
    bench: Make, text: str, subject: str, code: str
) -> None:
    (event,) = bench(count=1).vendor.interpret(line(f"[ 69.8] {text}"))

    assert (event.subject, event.code, event.source) == (subject, code, "kernel")


def test_event_of_the_hardware_keeps_its_name(bench: Make) -> None:
    (event,) = bench(count=1).vendor.interpret(
        line('habanalabs hl0: Received H/W interrupt 308 ["MMU_PAGE_FAULT"]')
    )

    assert event.data == {"event": "MMU_PAGE_FAULT"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "amdgpu 0000:03:00.0: Device heartbeat failed!",
        "habanalabs 0000:03:00.0: habanalabs device found [1da3:1060] (rev 1)",
        "accel accel0: Successfully added device 0000:21:00.0 to habanalabs driver",
        "accel accel0: Going to reset device",
        "habanalabs: loading driver, version: 1.22.0-ee698fb",
        "habanalabs: Device heartbeat failed! where?",
    ],
)
def test_line_that_says_nothing_is_no_event(bench: Make, text: str) -> None:
    assert list(bench(count=1).vendor.interpret(line(text))) == []


def test_lost_heartbeat_is_fatal_until_the_driver_uses_the_card_again(bench: Make) -> None:
    made = bench(count=2)
    one, other = made.devices()
    heard = list(made.vendor.interpret(line(LOST)))
    made.do("status gaudi-0 in reset")

    assert made.severities(one, *heard)["heartbeat-lost"] is Severity.FATAL
    assert made.severities(other, *heard) == {}
    made.do("reset gaudi-0")
    assert made.severities(one, *heard) == {
        "was-reset": Severity.INFO,
        "heartbeat-lost": Severity.DEGRADED,
    }


def test_event_that_is_heard_under_two_names_is_told_once(bench: Make) -> None:
    made = bench(count=1)
    device = made.devices()[0]
    events = [
        Event(subject=name, code="pcie-error", source="kernel")
        for name in ("accel0", "0000:03:00.0", "0000:03:00.0")
    ]

    assert made.severities(device, *events) == {"pcie-error": Severity.DEGRADED}


def test_every_code_has_a_meaning_of_its_own() -> None:
    codes = [*facts.CONDITIONS, *messages.BY_CODE]

    assert len(set(codes)) == len(codes)
    assert {code for entry in facts.STATUS.values() if entry for code in entry[:1]} <= {*codes}


@pytest.mark.parametrize("rubbish", ["hard_reset_cnt", "status"])
def test_only_what_says_whether_a_card_can_be_used_may_leave_it_unknown(
    bench: Make, rubbish: str
) -> None:
    made = bench(count=1)
    (card,) = made.devices()
    made.do(f"rubbish gaudi-0 {rubbish}", "reset gaudi-0")

    expected = {"status-unknown", "was-reset"} if rubbish == "status" else set()
    assert made.conditions(card).keys() == expected


def test_network_that_cannot_be_listed_says_nothing_against_a_card(bench: Make) -> None:
    made = bench(count=1)
    (card,) = made.devices()

    class Closed(Door):
        def names(self, path: str) -> tuple[str, ...]:
            if path.endswith("/net"):
                raise SourceError(f"{path}: Input/output error")
            return super().names(path)

    assert list(made.vendor.conditions(Closed(made.host), card, ())) == []
