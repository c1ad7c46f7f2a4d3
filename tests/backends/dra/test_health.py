"""What the kubelet is told of devices' health."""

from collections.abc import Iterable

import attrs
import pytest

from accelkit.backends.dra.health import DeviceHealth, health_of, message_of
from accelkit.backends.wire.messages import drahealth
from accelkit.core.model import Condition, Device, Holder, Holding, Placement, Profile, Snapshot
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap, Health, HolderKind, Severity, Standing
from accelkit.core.view import Assignment, Verdict, View
from tests.backends.dra.service_world import ident

GOOD = Verdict(health=Health.HEALTHY)
DRA = Assignment(terms=Offer(name="x", through="dra"))
KUBELET = Assignment(terms=Offer(name="x", through="kubelet"))


def gpu(name: str, vendor: str = "acme") -> Device:
    profile = Profile(name="1g", slug="1g", size=1, starts=(0,))
    ours = attrs.evolve(ident(name), vendor=vendor)
    return Device(id=ours, kind="gpu", slots=1, profiles=(profile,))


def part(parent: Device) -> Device:
    place = Placement(profile="1g", start=0, size=1)
    name = ident(f"{parent.id.name}-1g-0")
    return Device(id=name, kind="part", parent=parent.id, placement=place)


def reason(code: str, severity: Severity = Severity.FATAL, message: str = "") -> Condition:
    return Condition(code=code, severity=severity, message=message)


def bad(*reasons: Condition) -> Verdict:
    return Verdict(health=Health.UNHEALTHY, reasons=reasons)


def view_of(
    *devices: Device,
    verdict: Verdict = GOOD,
    given: Assignment = DRA,
    potential: Iterable[Device] = (),
    holdings: Iterable[Holding] = (),
) -> View:
    potential = tuple(potential)
    return View(
        snapshot=Snapshot(devices=devices),
        verdicts=FrozenMap((device.id, verdict) for device in devices),
        assignments=FrozenMap((device.id, given) for device in (*devices, *potential)),
        potential=potential,
        holdings=tuple(holdings),
    )


def told(verdict: Verdict) -> DeviceHealth:
    (one,) = health_of(view_of(gpu("gpu-0"), verdict=verdict), "acme", "dra")
    return one


@pytest.mark.parametrize(
    "verdict, expected",
    [
        (GOOD, Health.HEALTHY),
        (bad(reason("burnt")), Health.UNHEALTHY),
        (Verdict(health=Health.UNKNOWN), Health.HEALTHY),
        (Verdict(health=Health.UNKNOWN, overdue=True), Health.UNKNOWN),
    ],
)
def test_health_is_told_as_judged_and_unknown_only_after_the_grace(
    verdict: Verdict, expected: Health
) -> None:
    assert told(verdict).health is expected


def test_message_says_first_what_to_do() -> None:
    verdict = bad(
        reason("xid-79", message="The GPU fell off the bus."),
        reason("hot", Severity.DEGRADED),
        reason("dusty", Severity.INFO),
    )

    assert told(verdict).message == (
        "delete the pod to get another device; xid-79: The GPU fell off the bus; hot"
    )
    assert told(Verdict(health=Health.UNKNOWN, overdue=True)).message == (
        "it cannot be asked how it is"
    )
    assert told(GOOD).message == ""


@pytest.mark.parametrize("filler", ["x", "\u00e4", "\u20ac", "\U0001d11e"])
def test_message_is_cut_at_1000_bytes_and_a_whole_character(filler: str) -> None:
    """Cut inside a character it freezes the whole status of the pod."""
    text = told(bad(reason("burnt", message=filler * 2000))).message

    assert 990 < len(text.encode()) <= 1000
    assert text.endswith(f"{filler} ...")


def test_device_that_is_gone_is_unhealthy_for_whoever_holds_it() -> None:
    lost = attrs.evolve(gpu("gpu-0"), standing=Standing.LOST)
    holding = Holding(
        device=lost.id, through="dra", holder=Holder(kind=HolderKind.CLAIM, claim="c1")
    )
    view = view_of(lost, given=Assignment(terms=None), holdings=[holding])

    assert health_of(view, "acme", "dra") == (
        DeviceHealth("gpu-0", Health.UNHEALTHY, "delete the pod to get another device: it is gone"),
    )


def test_devices_of_others_are_left_out() -> None:
    view = view_of(gpu("gpu-0"), gpu("gpu-1", vendor="other"))

    assert [device.name for device in health_of(view, "acme", "dra")] == ["gpu-0"]
    assert health_of(view_of(gpu("gpu-0"), given=KUBELET), "acme", "dra") == ()


def test_partition_that_is_not_made_yet_is_as_its_parent_is() -> None:
    parent = gpu("gpu-0")
    view = view_of(parent, verdict=bad(reason("burnt")), potential=[part(parent)])

    assert [device.health for device in health_of(view, "acme", "dra")] == [Health.UNHEALTHY] * 2


def test_device_without_a_verdict_is_not_known() -> None:
    view = attrs.evolve(view_of(gpu("gpu-0")), verdicts=FrozenMap())

    assert health_of(view, "acme", "dra")[0].health is Health.UNKNOWN


def test_held_device_that_the_view_lacks_is_left_to_what_the_kubelet_knows() -> None:
    holding = Holding(
        device=ident("gpu-9"), through="dra", holder=Holder(kind=HolderKind.CLAIM, claim="c1")
    )

    assert health_of(View(holdings=(holding,)), "acme", "dra") == ()


def test_list_is_spelt_for_the_kubelet() -> None:
    devices = (
        DeviceHealth("a", Health.HEALTHY),
        DeviceHealth("b", Health.UNHEALTHY, "burnt"),
        DeviceHealth("c", Health.UNKNOWN),
    )
    message = message_of(devices, "node-a", now_s=7, expires_s=30)

    assert [device.health for device in message.devices] == [
        drahealth.HEALTHY,
        drahealth.UNHEALTHY,
        drahealth.UNKNOWN,
    ]
    assert message.devices[1] == drahealth.DeviceHealth(
        device=drahealth.DeviceIdentifier(pool_name="node-a", device_name="b"),
        health=drahealth.UNHEALTHY,
        last_updated_time=7,
        health_check_timeout_seconds=30,
        message="burnt",
    )
