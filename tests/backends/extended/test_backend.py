"""Classes that are there or not, at a simulated API server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from accelkit.backends.extended.backend import check, create, wanted
from accelkit.backends.extended.document import class_object, render
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.errors import ConfigError
from accelkit.core.kube import CLASSES, Json
from accelkit.core.policy import DraPolicy, Kube, Offer, Paths, Policy
from accelkit.core.policy_check import parse_policy
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.slices_world import kube_port
from tests.backends.dra.views import gpu, view_of

OFFER = Offer(name="gpus", through="dra", extended_resource="example.com/gpu")
VIEW = view_of(gpu("a"), offers=(OFFER,))
PATIENCE_S = 20.0


class Node:
    """The backend on a node with one device, and what it says."""

    def __init__(self, sim: ApiSim, port: NodePortDouble) -> None:
        self.sim = sim
        self.port = port

    def reason(self, code: str, subject: str = "gpus") -> str | None:
        found = self.port.problems.get((code, subject))
        return found[0] if found else None

    async def until(self, holds: Callable[[], object]) -> None:
        await self.sim.wait_for(holds, PATIENCE_S)


def needed() -> Json:
    (one,) = render(VIEW, DraPolicy()).values()
    return class_object(one)


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with ApiSim() as sim:
        port = NodePortDouble(paths=Paths(run=str(tmp_path)), kube=kube_port(sim, tmp_path))
        port.publish(VIEW)
        task = asyncio.create_task(create(Policy(offers=(OFFER,))).serve(port))
        yield Node(sim, port)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert port.kube is not None
        await port.kube.close()


async def test_missing_class_is_told_until_it_is_there(node: Node) -> None:
    await node.until(lambda: node.reason("class-missing"))
    assert node.reason("class-missing") == (
        "class gpus of example.com/gpu: there is no such class, so that pods wait"
    )

    node.sim.create(CLASSES, needed())

    await node.until(lambda: not node.port.problems)


@pytest.mark.parametrize(
    "spec,reason",
    [
        ({"selectors": []}, "it has no extendedResourceName: 1.36 keeps it, not example.com/gpu"),
        ({"extendedResourceName": "a.b/c"}, "it has the name a.b/c, not example.com/gpu"),
        (
            {"extendedResourceName": "example.com/gpu"},
            "it has 0 selectors, not the one that is needed",
        ),
        (
            {
                "extendedResourceName": "example.com/gpu",
                "selectors": [{"cel": {"expression": 'device.driver == "x"'}}],
            },
            (
                'it does not select device.driver == "acme.accelkit.dev"'
                ' && device.attributes["acme.accelkit.dev"].offer == "gpus"'
            ),
        ),
    ],
)
async def test_class_that_does_something_else_is_told(node: Node, spec: Json, reason: str) -> None:
    node.sim.create(CLASSES, {**needed(), "spec": spec})

    await node.until(lambda: node.reason("class-differs"))

    assert node.reason("class-differs") == f"class gpus of example.com/gpu: {reason}"


async def test_class_for_more_drivers_than_this_node_has_is_fine(node: Node) -> None:
    await node.until(lambda: node.reason("class-missing"))
    both = view_of(gpu("a"), gpu("b", vendor="nvidia"), offers=(OFFER,))
    (one,) = render(both, DraPolicy()).values()

    node.sim.create(CLASSES, class_object(one))

    await node.until(lambda: not node.port.problems)


async def test_name_of_two_classes_is_told_with_what_to_do(node: Node) -> None:
    node.sim.create(CLASSES, needed())
    node.sim.create(CLASSES, {**needed(), "metadata": {"name": "rival"}})

    await node.until(lambda: node.reason("name-taken"))

    assert node.port.problems["name-taken", "gpus"] == (
        (
            "class gpus of example.com/gpu: example.com/gpu is the name of rival, too, "
            "and the newest has it"
        ),
        "delete rival, then label gpus so that the scheduler sees it",
    )


async def test_follower_says_nothing(node: Node) -> None:
    await node.until(lambda: node.reason("class-missing"))

    node.port.leading.set(now=False)

    await node.until(lambda: not node.port.problems)


async def test_api_server_that_is_away_is_told_until_it_is_back(node: Node) -> None:
    node.sim.create(CLASSES, needed())
    await node.until(lambda: node.sim.watching("deviceclasses"))
    await node.sim.stop()

    await node.until(lambda: node.reason("classes-unknown", "extended"))
    await node.sim.start()

    await node.until(lambda: not node.port.problems)


async def test_without_api_access_it_does_not_serve(tmp_path: Path) -> None:
    port = NodePortDouble(paths=Paths(run=str(tmp_path)))

    with pytest.raises(ConfigError, match="classes cannot be watched"):
        await create(Policy(offers=(OFFER,))).serve(port)


def test_it_is_wanted_where_an_offer_has_an_extended_resource() -> None:
    off = {"backends": {"extended": {"check": False}}}
    offers = [{"name": "a", "through": "dra", "extendedResource": "a.b/c"}]

    assert wanted(Policy(offers=(OFFER,)))
    assert not wanted(Policy())
    assert not wanted(Policy(offers=(OFFER,), kube=Kube(config="none")))
    assert not wanted(parse_policy({**off, "offers": offers}))


def test_no_offer_goes_through_it() -> None:
    assert check(Policy(offers=(OFFER, Offer(name="b", through="extended")))) == (
        ("$.offers[1].through", "write dra, and the resource name as extendedResource"),
    )
