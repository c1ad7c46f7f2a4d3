import attrs

from accelkit.agent.news import News, Told
from accelkit.core.model import Device, Problem, Snapshot
from accelkit.core.values import FrozenMap, Health, Standing
from accelkit.core.view import Verdict, View
from tests.core.things import fatal, gpu

HEALTHY = Verdict(health=Health.HEALTHY)
SICK = Verdict(health=Health.UNHEALTHY, reasons=(fatal(message="smoke"), fatal("hot")))
UNKNOWN = Verdict(health=Health.UNKNOWN)


def view(*devices: Device, **verdicts: Verdict) -> View:
    return View(
        snapshot=Snapshot(devices=devices),
        verdicts=FrozenMap((d.id, verdicts.get(d.id.name, HEALTHY)) for d in devices),
    )


def told(news: News, *views: View) -> list[Told]:
    return [one for later in views for one in news.of_devices(later)]


def test_device_that_falls_ill_and_recovers_is_told_once_each() -> None:
    a, b = gpu("a"), gpu("b")
    well, sick = view(a, b), view(a, b, a=SICK)

    assert told(News(well), well, sick, sick, well, well) == [
        Told("DeviceUnhealthy", "toy/a is unhealthy: burnt: smoke; hot"),
        Told("DeviceRecovered", "toy/a is healthy again", warning=False),
    ]


def test_device_that_is_lost_and_found_is_told_once_each() -> None:
    lost = view(attrs.evolve(gpu("a"), standing=Standing.LOST), a=SICK)
    news = News(view(gpu("a")))

    assert [one.reason for one in told(news, lost, lost, view(gpu("a")))] == [
        "DeviceLost",
        "DeviceRecovered",
    ]


def test_device_of_which_nothing_is_known_is_neither_ill_nor_well() -> None:
    sick, unknown, well = view(gpu("a"), a=SICK), view(gpu("a"), a=UNKNOWN), view(gpu("a"))

    assert [one.reason for one in told(News(well), sick, unknown, sick, unknown, well)] == [
        "DeviceUnhealthy",
        "DeviceRecovered",
    ]


def test_device_that_is_gone_is_no_news_and_ill_when_it_comes_back_is() -> None:
    sick = view(gpu("a"), a=SICK)
    news = News(sick)

    assert told(news, sick, view()) == []
    assert [one.reason for one in told(news, sick)] == ["DeviceUnhealthy"]


def test_what_an_earlier_instance_knew_is_no_news() -> None:
    sick = view(gpu("a"), gpu("b"), a=SICK)

    assert [one.text for one in told(News(sick), sick, view(gpu("a"), gpu("b")))] == [
        "toy/a is healthy again"
    ]


def test_problems_worth_an_event_are_told_when_they_come() -> None:
    slow = Problem(vendor="toy", code="source-timeout", reason="no answer", remedy="look at dmesg")
    few = Problem(subject="expect[0]", code="devices-missing", reason="7 of 8 are there")
    other = Problem(subject="x", code="http-listen", reason="in use")
    bare = Problem(code="config-invalid", reason="not YAML")
    news = News(view())

    first = news.of_problems([slow, few, other, bare])
    again = news.of_problems([slow, few, other])
    later = news.of_problems([slow, bare])

    assert first == [
        Told("ConfigInvalid", "not YAML"),
        Told("OfferMismatch", "expect[0]: 7 of 8 are there"),
        Told("DriverUnresponsive", "toy: no answer; look at dmesg"),
    ]
    assert (again, later) == ([], [Told("ConfigInvalid", "not YAML")])
