import time

import attrs
import pytest

from accelkit import Event, Scope, Severity, SourceError
from accelkit.vendors.nvidia import health
from accelkit.vendors.nvidia.health import CONDITIONS, FADE_S
from accelkit.vendors.nvidia.vendor import NvidiaOptions
from tests.vendors.nvidia.bench import Make
from tests.vendors.opened import as_evidence

FATAL, DEGRADED, INFO = Severity.FATAL, Severity.DEGRADED, Severity.INFO


def xid(number: int, subject: str | None) -> Event:
    return Event(subject=subject, code=f"xid-{number}", source="nvml")


def test_healthy_gpu_has_no_conditions(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()

    assert made.conditions(device) == []


@pytest.mark.parametrize(
    "verb,code,severity",
    [
        ("recovery gpu-0 1", "needs-reset", FATAL),
        ("recovery gpu-0 2", "needs-reboot", FATAL),
        ("recovery gpu-0 3", "drain-p2p", DEGRADED),
        ("recovery gpu-0 4", "needs-reset", FATAL),
        ("recovery gpu-0 5", "imex-domain", DEGRADED),
        ("recovery gpu-0 6", "needs-reset", FATAL),
        ("recovery gpu-0 7", "needs-reboot", FATAL),
        ("lose gpu-0", "gpu-lost", FATAL),
        ("remap gpu-0 1", "row-remap-pending", DEGRADED),
        ("remap gpu-0 2", "row-remap-failed", FATAL),
        ("ecc gpu-0 3", "ecc-uncorrected", DEGRADED),
        ("slow gpu-0 64", "thermal-slowdown", DEGRADED),
        ("slow gpu-0 128", "power-brake", DEGRADED),
        ("slow gpu-0 8", "hardware-slowdown", DEGRADED),
        ("slow gpu-0 32", "software-thermal", INFO),
        ("fabric gpu-0 2", "fabric-not-ready", FATAL),
        ("fabric-mask gpu-0 1", "fabric-degraded", DEGRADED),
        ("fabric-mask gpu-0 4", "fabric-degraded", DEGRADED),
        ("fabric-mask gpu-0 16", "fabric-degraded", DEGRADED),
        ("fabric-mask gpu-0 1024", "fabric-misconfigured", DEGRADED),
        ("dark gpu-0 2", "nvlink-down", DEGRADED),
        ("dark gpu-0 18", "nvlink-down", DEGRADED),
        ("recovery gpu-0 99", "recovery-unknown", DEGRADED),
    ],
)
def test_fault_shows_while_it_lasts(bench: Make, verb: str, code: str, severity: Severity) -> None:
    """Seen elsewhere: health told by events only, so that faults stayed for ever or vanished."""
    made = bench("h100", 2)
    device = made.devices()[0]
    made.do(verb)
    during = made.codes(device)
    made.do("restore gpu-0")

    assert during == {code: severity}
    assert code in CONDITIONS
    assert made.codes(device) == {}


@pytest.mark.parametrize(
    "mask,reason", [(0x200, "another system GUID"), (0x400, "no partition"), (0xF00, "reason 15")]
)
def test_fabric_that_does_not_fit_says_why(bench: Make, mask: int, reason: str) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do(f"fabric-mask gpu-0 {mask}")
    (found,) = made.conditions(device)

    assert found.message == f"The NVLink fabric is not set up for the GPU ({reason})."


def test_older_driver_tells_the_state_of_its_fabric_and_no_health(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("fabric gpu-0 2", "fabric-mask gpu-0 1")
    made.fail("nvmlDeviceGetGpuFabricInfoV", "error 13")

    assert made.codes(device) == {"fabric-not-ready": FATAL}


def test_faults_that_ask_for_a_reset_reach_the_whole_tree(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("recovery gpu-0 4")

    assert {c.code: c.scope for c in made.conditions(device)} == {"needs-reset": Scope.TREE}


def test_older_gpu_tells_pages_that_wait_to_be_retired(bench: Make) -> None:
    made = bench("dgx1", 1)
    (device,) = made.devices()
    made.do("remap gpu-0 1")

    assert made.codes(device) == {"page-retirement-pending": DEGRADED}


def test_power_cap_in_normal_work_is_no_condition(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("slow gpu-0 4")

    assert made.codes(device) == {}


def test_facts_that_a_driver_does_not_tell_are_no_conditions(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.fail("nvmlDeviceGetCurrentClocksEventReasons", "error 13")

    assert made.codes(device) == {}


def test_gpu_that_cannot_be_asked_is_unknown_rather_than_healthy(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.fail("nvmlDeviceGetFieldValues", "error 999")

    with pytest.raises(SourceError, match="unknown error"):
        made.conditions(device)


@pytest.mark.parametrize("number", [13, 31, 43, 45, 63, 94, 999])
def test_xid_of_an_application_does_not_condemn_the_gpu(bench: Make, number: int) -> None:
    """Seen elsewhere: a contained error of one program took the GPU away from all."""
    made = bench("h100", 1)
    (device,) = made.devices()
    codes = made.codes(device, [xid(number, device.handle)])

    assert codes.keys() == {f"xid-{number}"}
    assert FATAL not in codes.values()


@pytest.mark.parametrize("number", [62, 95, 109, 119])
def test_xid_that_asks_for_a_reset_condemns_the_gpu_until_it_is_reset(
    bench: Make, number: int
) -> None:
    """Seen elsewhere: XID 109 was ignored, and others condemned a GPU for ever."""
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do(f"xid gpu-0 {number}")
    heard = [xid(number, device.handle)]
    during = made.codes(device, heard)
    made.do("restore gpu-0")

    assert during == {"needs-reset": FATAL, f"xid-{number}": FATAL}
    assert made.codes(device, heard) == {f"xid-{number}": DEGRADED}


@pytest.mark.parametrize("action,severity", [(3, DEGRADED), (5, DEGRADED), (1, FATAL), (99, FATAL)])
def test_xid_is_over_where_the_driver_asks_for_less_than_a_reset(
    bench: Make, action: int, severity: Severity
) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do(f"recovery gpu-0 {action}")

    assert made.codes(device, [xid(79, device.handle)])["xid-79"] is severity


def test_xid_counts_alone_where_the_driver_has_no_recovery_action(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.fail("nvmlDeviceGetFieldValues", "error 3")

    assert made.codes(device, [xid(95, device.handle)]) == {"xid-95": FATAL}


def test_later_harmless_xid_does_not_look_like_recovery(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do("xid gpu-0 79")

    codes = made.codes(device, [xid(79, device.handle), xid(43, device.handle)])
    assert codes == {"needs-reboot": FATAL, "xid-79": FATAL, "xid-43": INFO}


def test_xid_of_an_instance_is_that_instances_alone(bench: Make) -> None:
    """Seen elsewhere: the wrong instance was marked, or none."""
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "create-mig gpu-0 1g.10gb 1")
    parent, one, other = made.devices()
    heard = [xid(94, one.handle)]

    assert [c.code for c in made.conditions(one, heard, parent)] == ["xid-94"]
    assert made.conditions(other, heard, parent) == []
    assert made.conditions(parent, heard) == []


def test_xid_of_an_instance_that_asks_for_a_reset_reaches_the_whole_tree(bench: Make) -> None:
    """Seen elsewhere: siblings of an instance whose GPU must be reset stayed in use.

    With a driver that has no recovery action, nobody but the XID says so.
    """
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")
    parent, part = made.devices()
    heard = [xid(95, part.handle)]
    after_the_reset = made.conditions(part, heard, parent)
    made.fail("nvmlDeviceGetFieldValues", "error 3")
    (condition,) = made.conditions(part, heard, parent)

    assert [c.severity for c in after_the_reset] == [DEGRADED]
    assert (condition.severity, condition.scope) == (FATAL, Scope.TREE)


def test_xid_of_the_gpu_is_told_once_by_the_parent(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "xid gpu-0 95")
    parent, part = made.devices()
    heard = [xid(95, parent.handle), xid(95, parent.locality.pci_address)]

    assert made.codes(parent, heard) == {"needs-reset": FATAL, "xid-95": FATAL}
    assert made.conditions(part, heard, parent) == []


def test_ignored_xid_is_not_shown(bench: Make) -> None:
    made = bench("h100", 1, options=NvidiaOptions(ignore_xids=(95,)))
    (device,) = made.devices()

    assert made.codes(device, [xid(95, device.handle)]) == {}


def test_message_says_how_often_and_what_to_do(bench: Make) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    (found,) = made.conditions(device, [xid(31, device.handle)] * 3)

    assert found.message == "XID 31, 3 times: restart the application"


@pytest.mark.parametrize("number,fades", [(31, True), (48, True), (79, False)])
def test_event_that_asks_for_nothing_fades_from_when_it_was_told(
    bench: Make, number: int, fades: bool
) -> None:
    made = bench("h100", 1)
    (gpu,) = made.devices()
    told = as_evidence("nvidia", [xid(number, gpu.id.name)])

    def shown(ago_s: float) -> bool:
        last_s = time.monotonic() - ago_s
        evidence = tuple(attrs.evolve(entry, last_s=last_s) for entry in told)
        return bool([*made.vendor.conditions(made.host, gpu, evidence)])

    assert [shown(0), shown(FADE_S - 60), shown(FADE_S + 1)] == [True, True, not fades]


def test_vanished_gpu_raises_rather_than_being_healthy(bench: Make) -> None:
    made = bench("h100", 2)
    first, _ = made.devices()
    made.do("remove gpu-0")

    with pytest.raises(SourceError, match="not found"):
        made.conditions(first)


def test_every_action_has_a_documented_code() -> None:
    assert {code for code, _, _ in health._ACTIONS.values()} <= CONDITIONS.keys()
