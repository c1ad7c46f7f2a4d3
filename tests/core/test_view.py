import pytest

from accelkit.core.model import Snapshot
from accelkit.core.values import Health
from accelkit.core.view import Verdict, View
from tests.core.things import gpu, of, pod, process


@pytest.mark.parametrize(
    "health,overdue,good",
    [
        (Health.HEALTHY, False, True),
        (Health.UNKNOWN, False, True),
        (Health.UNKNOWN, True, False),
        (Health.UNHEALTHY, False, False),
    ],
)
def test_a_device_is_to_be_had_if_healthy_or_not_unknown_for_too_long(
    health: Health, overdue: bool, good: bool
) -> None:
    assert Verdict(health=health, overdue=overdue).good is good


def test_a_view_knows_its_devices_and_who_is_held() -> None:
    view = View(
        snapshot=Snapshot(devices=(gpu("b"), gpu("a"))),
        holdings=(pod(of("a")), process(of("a"))),
    )

    assert list(view.devices) == [of("a"), of("b")]
    assert view.held == {of("a")}
