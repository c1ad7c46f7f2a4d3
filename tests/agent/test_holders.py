import attrs
import pytest

from accelkit.agent.holders import Holders, joined, split_sets
from accelkit.agent.problems import Problems
from accelkit.core.clock import RealClock
from accelkit.core.errors import TransportError
from accelkit.core.model import Device, DeviceId, Holder, Holding, Snapshot
from accelkit.core.policy import Offer, Sharing
from accelkit.core.values import Enforcement, FrozenMap, HolderKind
from accelkit.core.view import Assignment, View


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


def claimed(
    name: str, *, share: str | None = None, pod: str | None = None, uid: str | None = "1-2"
) -> Holding:
    return Holding(
        device=DeviceId(vendor="toy", name=name),
        share=share,
        through="dra",
        holder=Holder(
            kind=HolderKind.CLAIM,
            namespace="ns",
            claim="c",
            pod=pod,
            container="main" if pod else None,
            uid=uid,
        ),
    )


async def test_claims_that_the_kubelet_names_no_more_are_forgotten_whatever_was_asked() -> None:
    claims = [claimed("gone", uid=None)]

    async def read(_asked: View) -> tuple[Holding, ...]:
        return tuple(claims)

    holders = Holders(read, Problems(RealClock().now))
    await holders.ask(view("a"))
    before = holders.holdings
    claims.clear()
    await holders.ask(view("b"))

    assert (before, holders.holdings) == ((claimed("gone", uid=None),), ())


def test_claim_is_held_by_the_containers_that_the_kubelet_names() -> None:
    told = [claimed("a", pod="p", uid=None), claimed("a", pod="q", uid=None), held("b")]

    assert list(joined([claimed("a"), claimed("c")], told)) == [
        claimed("a", pod="p"),
        claimed("a", pod="q"),
        claimed("c"),
        held("b"),
    ]


def test_shares_of_a_claim_are_told_apart_where_the_kubelet_knows_them() -> None:
    mine = [claimed("a", share="1"), claimed("a", share="2")]
    exact = [claimed("a", share="2", pod="p", uid=None)]
    vague = [claimed("a", pod="p", uid=None)]

    assert list(joined(mine, exact)) == [claimed("a", share="1"), claimed("a", share="2", pod="p")]
    assert list(joined(mine, vague)) == [
        claimed("a", share="1", pod="p"),
        claimed("a", share="2", pod="p"),
    ]


def test_claim_that_only_the_kubelet_names_is_held() -> None:
    """As after the run directory was wiped."""
    told = claimed("a", pod="p", uid=None)

    assert list(joined([], [told])) == [told]


def used(
    name: str, *, resource: str | None = None, claim: str | None = None, container: str = "main"
) -> Holding:
    kind = HolderKind.CLAIM if claim else HolderKind.POD
    holder = Holder(kind=kind, namespace="ns", pod="p", container=container, claim=claim)
    device = DeviceId(vendor="toy", name=name)
    return Holding(device=device, through="x", holder=holder, resource=resource)


@pytest.mark.parametrize(
    "holdings, found",
    [
        ([used("a", resource="t/a"), used("b", resource="t/a")], {}),
        (
            [used("a", resource="t/a"), used("b", resource="t/b")],
            {"ns/p/main": "ns/p/main has resource t/a and resource t/b of toy at once"},
        ),
        (
            [used("a", claim="c"), used("b", claim="d"), used("b", claim="d")],
            {"ns/p/main": "ns/p/main has claim c and claim d of toy at once"},
        ),
        ([used("a", claim="c"), used("b", claim="d", container="other")], {}),
        ([claimed("a"), used("b", claim="d")], {}),
    ],
)
def test_container_with_two_sets_of_a_vendor_is_found(
    holdings: list[Holding], found: dict[str, str]
) -> None:
    with_sets = attrs.evolve(view("a", "b"), holdings=tuple(holdings), sets=frozenset({"toy"}))
    terms = Offer(name="all", sharing=Sharing(enforce=Enforcement.LIBRARY))
    library = attrs.evolve(
        view("a", "b"),
        holdings=tuple(holdings),
        assignments=FrozenMap((h.device, Assignment(terms=terms)) for h in holdings),
    )

    assert split_sets(with_sets) == found
    assert split_sets(library) == found
    assert split_sets(attrs.evolve(with_sets, sets=frozenset())) == {}
