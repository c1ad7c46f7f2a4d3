"""The life of pods and claims around the scheduler."""

import asyncio

import pytest

from accelkit.conformance.sims.api.kinds import TEMPLATES
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.scheduler.cel import UnsupportedCel
from accelkit.conformance.sims.scheduler.scheduler import SchedulerSim
from accelkit.core.kube import CLAIMS, NODES, PODS
from tests.conformance.sims.api.asking import MERGE
from tests.conformance.sims.api.client import ROOT, Client
from tests.conformance.sims.api_scheduler.simulated import SPACE, Simulated
from tests.conformance.sims.api_scheduler.world import (
    DRIVER,
    NODE,
    Document,
    World,
    ask,
    asked,
    device,
    got,
    names,
    offer,
    publish,
    start,
    waiting,
)


def one_device(world: World) -> None:
    publish(world, [device("d0")])
    offer(world, "any")


def pod_of_template(world: Simulated, name: str) -> None:
    spec = {"metadata": {"labels": {"l": "m"}}, "spec": {"devices": {"requests": [asked()]}}}
    if not world.api.has(TEMPLATES, "t", SPACE):
        world.put(TEMPLATES, {"metadata": {"name": "t"}, "spec": spec})
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    world.put(
        PODS, {"metadata": {"name": name}, "spec": {"containers": [], "resourceClaims": claims}}
    )


def claims(world: Simulated) -> list[Document]:
    return [dict(item) for item in world.api.items(CLAIMS)]


def test_claim_of_a_template_belongs_to_its_pod() -> None:
    world = Simulated.fresh()
    one_device(world)

    pod_of_template(world, "a")

    (claim,) = claims(world)
    meta, pod = claim["metadata"], world.pod("a")
    assert meta["name"].startswith("a-gpu-")
    assert meta["labels"] == {"l": "m"}
    assert meta["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert meta["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert pod["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": meta["name"]}
    ]
    assert names(claim) == ["d0"]


def test_claim_of_a_template_ends_with_its_pod() -> None:
    world = Simulated.fresh()
    one_device(world)
    pod_of_template(world, "a")

    world.remove(PODS, "a")

    assert claims(world) == []


def test_claim_of_a_template_ends_when_its_pod_is_over() -> None:
    world = Simulated.fresh()
    one_device(world)
    pod_of_template(world, "a")

    world.api.patch(PODS, "a", {"status": {"phase": "Succeeded"}}, SPACE, sub="status")
    world.scheduler.step()

    assert claims(world) == []


def test_claim_of_a_user_stays_without_devices_when_its_pod_is_gone() -> None:
    world = Simulated.fresh()
    one_device(world)
    ask(world, "a")

    world.remove(PODS, "a")

    (claim,) = claims(world)
    assert claim["status"] == {}
    assert "finalizers" not in claim["metadata"]


def test_pod_that_is_marked_keeps_its_devices_until_it_is_gone() -> None:
    world = Simulated.fresh()
    one_device(world)
    ask(world, "a")

    world.api.delete(PODS, "a", SPACE)
    world.scheduler.step()
    marked = names(world.claim("a"))
    world.remove(PODS, "a")

    assert marked == ["d0"]
    assert world.claim("a")["status"] == {}


def test_other_pod_of_a_claim_keeps_it() -> None:
    world = Simulated.fresh()
    one_device(world)
    ask(world, "a")
    start(world, "b", claims=["a"])

    world.remove(PODS, "a")

    assert names(world.claim("a")) == ["d0"]
    assert [one["name"] for one in world.claim("a")["status"]["reservedFor"]] == ["b"]


def test_claim_is_given_anew_when_its_binding_failed() -> None:
    world = Simulated.fresh()
    conditions = {"bindingConditions": ["ok"], "bindingFailureConditions": ["bad"]}
    publish(world, [device("d0", **conditions), device("d1", **conditions)])
    offer(world, "any")
    ask(world, "a")
    failed = {
        "type": "bad",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }

    before = world.claim("a")["status"]["allocation"]
    world.report("a", [{"driver": DRIVER, "pool": "p", "device": "d0", "conditions": [failed]}])
    world.scheduler.step()

    assert before["devices"]["results"][0]["device"] == "d0"
    assert "devices" not in world.claim("a")["status"]
    assert "nodeName" not in world.pod("a")["spec"]


def test_pod_goes_where_the_device_is_and_not_to_a_closed_node() -> None:
    world = Simulated.fresh()
    world.put(NODES, {"metadata": {"name": "a-closed"}, "spec": {"unschedulable": True}})
    world.put(NODES, {"metadata": {"name": "b-empty"}})
    publish(world, [device("x")], pool="closed", nodeName="a-closed")
    one_device(world)

    ask(world, "a")
    ask(world, "b")

    assert world.decided("a")["spec"]["nodeName"] == NODE
    assert got(world, "b") == "0/2 nodes are available: 2 cannot allocate all claims."


def test_claim_holds_its_other_pods_to_its_node() -> None:
    world = Simulated.fresh()
    one_device(world)
    ask(world, "a")
    world.put(NODES, {"metadata": {"name": "a-first"}})

    start(world, "b", claims=["a"])

    assert world.decided("b")["spec"]["nodeName"] == NODE


def test_pod_waits_for_a_claim_that_is_not_there() -> None:
    world = Simulated.fresh()
    one_device(world)

    start(world, "a", claims=["later"])
    before = waiting(world.decided("a"))
    spec = {"devices": {"requests": [asked()]}}
    world.put(CLAIMS, {"metadata": {"name": "later"}, "spec": spec})

    assert before == "waiting for its claims"
    assert world.scheduled("a")["spec"]["nodeName"] == NODE


@pytest.mark.parametrize(
    "expression",
    [
        "true",
        'device.driver == "s.test" || true',
        'device.driver != "s.test"',
        'device.capacity["s.test"].memory.compareTo(quantity("1Gi")) > 0',
        'device.attributes["s.test"].?kind.orValue("x") == "x"',
    ],
)
def test_selector_of_another_form_is_refused_loudly(expression: str) -> None:
    world = Simulated.fresh()
    publish(world, [device("d0")])
    offer(world, "any", expression)

    with pytest.raises(UnsupportedCel, match="is not simulated: write"):
        ask(world, "a")


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("device.driver == 's.test'", ["d0"]),
        ('device.attributes["s.test"].index == 1', ["d1"]),
        ('device.attributes["s.test"].good == true', ["d1"]),
        ('device.attributes["s.test"].index == "1"', []),
        ('device.attributes["other.test"].x == -2 && device.driver == "s.test"', ["d1"]),
    ],
)
def test_selector_compares_values_with_their_types(expression: str, expected: list[str]) -> None:
    world = Simulated.fresh()
    found = [
        device(
            f"d{i}",
            attributes={
                "index": {"int": i},
                "good": {"bool": bool(i)},
                "other.test/x": {"int": -2 * i},
            },
        )
        for i in range(2)
    ]
    publish(world, found)
    offer(world, "any", expression)

    ask(world, "a")

    none = "0/1 nodes are available: 1 cannot allocate all claims."
    assert got(world, "a") == (expected or none)


@pytest.mark.slow
def test_search_without_end_is_given_up() -> None:
    """Seventeen of eighteen that fit one by one and never together."""
    world = Simulated.fresh()
    attributes = [{"s.test/x": {"int": i % 2}} for i in range(36)]
    publish(world, [device(f"d{i}", attributes=a) for i, a in enumerate(attributes)])
    offer(world, "any")

    same = [{"matchAttribute": "s.test/x"}]
    ask(world, "a", *(asked(f"r{i}") for i in range(19)), constraints=same)

    assert "timed out trying to allocate devices" in str(got(world, "a"))


async def test_scheduler_follows_what_changes() -> None:
    async with ApiSim() as api, SchedulerSim(api):
        world = Simulated(api, SchedulerSim(api))
        api.create(NODES, {"metadata": {"name": NODE}})
        api.create(CLAIMS, {"metadata": {"name": "a"}, "spec": _spec()}, SPACE)
        wanted = [{"name": "c", "resourceClaimName": "a"}]
        pod = {"containers": [], "resourceClaims": wanted}
        api.create(PODS, {"metadata": {"name": "a"}, "spec": pod}, SPACE)
        await api.wait_for(lambda: "conditions" in world.pod("a")["status"])
        one_device_by_api(api)
        await api.wait_for(lambda: "nodeName" in world.pod("a")["spec"])

        assert names(world.claim("a")) == ["d0"]


def _spec() -> Document:
    return {"devices": {"requests": [asked()]}}


def one_device_by_api(api: ApiSim) -> None:
    quiet = Simulated(api, SchedulerSim(api))
    one_device(quiet)


async def test_scheduler_that_breaks_is_not_fine() -> None:
    async with ApiSim() as api:
        quiet = _Quiet(api)
        api.create(NODES, {"metadata": {"name": NODE}})
        publish(quiet, [device("d0")])
        offer(quiet, "any", "true")
        ask(quiet, "a")

        with pytest.raises(UnsupportedCel):
            await _run(SchedulerSim(api))


async def _run(scheduler: SchedulerSim) -> None:
    async with scheduler:
        await asyncio.sleep(0)  # its first step


class _Quiet(Simulated):
    """A world in which nothing is scheduled by the test."""

    def __init__(self, api: ApiSim) -> None:
        super().__init__(api, _Idle(api))


class _Idle(SchedulerSim):
    def step(self) -> None:
        return


async def test_parameters_with_spaces_lock_a_claim_once_it_is_allocated() -> None:
    """A user's client wrote them so; the scheduler copies them, and a patch loses the spaces."""
    world = Simulated.fresh()
    one_device(world)
    body = (
        '{"metadata":{"name":"a"},"spec":{"devices":{"requests":[{"name":"r","exactly":'
        '{"deviceClassName":"any"}}],"config":[{"opaque":{"driver":"s.test",'
        '"parameters":{"a": 1}}}]}}}'
    )
    path = f"{ROOT}/namespaces/default/resourceclaims"
    report = {"status": {"devices": [{"driver": DRIVER, "pool": "p", "device": "d0"}]}}
    async with world.api:
        client = Client(world.api.port)
        await client.ask("POST", path, body)
        start(world, "a", claims=["a"])
        answer = await client.ask("PATCH", f"{path}/a/status", report, kind=MERGE)

    assert names(world.claim("a")) == ["d0"]
    assert answer.status == 422
    assert "status.allocation" in answer.document["message"]
