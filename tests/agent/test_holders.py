from accelkit.agent.holders import Holders
from accelkit.agent.problems import Problems
from accelkit.core.clock import RealClock
from accelkit.core.errors import TransportError
from accelkit.core.model import Device, DeviceId, Holder, Holding, Snapshot
from accelkit.core.values import HolderKind
from accelkit.core.view import View


def held(name: str, pod: str = "p") -> Holding:
    return Holding(
        device=DeviceId(vendor="toy", name=name),
        through="kubelet",
        holder=Holder(kind=HolderKind.POD, pod=pod),
    )


def view(*names: str) -> View:
    ids = [DeviceId(vendor="toy", name=name) for name in names]
    return View(snapshot=Snapshot(devices=tuple(Device(id=i, kind="toy") for i in ids)))


class Kubelet:
    """Says what holds the devices that it is asked about."""

    def __init__(self, *holdings: Holding) -> None:
        self.holdings = holdings
        self.up = True

    async def read(self, asked: View) -> tuple[Holding, ...]:
        if not self.up:
            raise TransportError("no kubelet")
        return tuple(h for h in self.holdings if h.device in asked.devices)


async def test_answer_replaces_what_was_said_of_the_same_devices() -> None:
    kubelet = Kubelet(held("b"), held("a"))
    holders = Holders(kubelet.read, Problems(RealClock().now))
    unasked = holders.known
    await holders.ask(view("a", "b"))
    before = holders.holdings
    kubelet.holdings = (held("b", "q"),)
    await holders.ask(view("a", "b"))

    assert (unasked, holders.known) == (False, True)
    assert before == (held("a"), held("b"))
    assert holders.holdings == (held("b", "q"),)


async def test_answer_about_some_devices_leaves_the_others() -> None:
    """Two vendors are read beside each other, each with its own draft of the view."""
    kubelet = Kubelet(held("b"), held("a"))
    holders = Holders(kubelet.read, Problems(RealClock().now))

    await holders.ask(view("b"))
    await holders.ask(view("a"))

    assert holders.holdings == (held("a"), held("b"))


async def test_kubelet_that_does_not_answer_is_a_problem_and_the_last_answer_stays() -> None:
    kubelet = Kubelet(held("a"))
    problems = Problems(RealClock().now)
    holders = Holders(kubelet.read, problems)
    await holders.ask(view("a"))

    kubelet.up = False
    await holders.ask(view("a"))
    down = (holders.known, holders.holdings, [p.code for p in problems.all])
    kubelet.up = True
    await holders.ask(view("a"))

    assert down == (False, (held("a"),), ["holders-unknown"])
    assert holders.known
    assert problems.all == ()


async def test_nobody_to_ask_leaves_devices_free() -> None:
    holders = Holders(None, Problems(RealClock().now))

    await holders.ask(view("a"))

    assert holders.known
    assert holders.holdings == ()
