"""Claims, their classes and choices, and their pods."""

from accelkit.core.kube import PODS
from tests.conformance.sims.api_scheduler.stories import FULL, seen
from tests.conformance.sims.api_scheduler.world import (
    DRIVER,
    Document,
    World,
    ask,
    asked,
    device,
    got,
    names,
    offer,
    publish,
    results,
    start,
)


def kinds(*names: str) -> list[Document]:
    """Devices that tell their names in an attribute."""
    return [device(name, attributes={"kind": {"string": name}}) for name in names]


@seen(
    {
        "devices": {
            "results": [{"request": "r", "driver": DRIVER, "pool": "p", "device": "d0"}],
            "config": [
                {"source": "FromClass", "opaque": {"driver": DRIVER, "parameters": {"a": 1}}},
                {"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": {"b": 2}}},
            ],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["sched-1"]}]}
            ]
        },
    }
)
def claim_tells_its_devices_its_node_and_the_blocks_of_class_and_claim(world: World) -> object:
    publish(world, [device("d0")])
    offer(world, "any", config=[{"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}])
    ask(world, "a", config=[{"opaque": {"driver": DRIVER, "parameters": {"b": 2}}}])
    got(world, "a")
    found = world.claim("a")["status"]["allocation"]
    assert found.pop("allocationTimestamp") >= world.claim("a")["metadata"]["creationTimestamp"]
    return found


@seen([["FromClass", ["x/big"]], ["FromClaim", ["y"]], ["FromClaim", ["x/big"]]])
def blocks_name_their_requests_where_they_are_not_for_all(world: World) -> object:
    publish(world, kinds("big", "other"))
    block = {"driver": DRIVER, "parameters": {"a": 1}}
    offer(world, "big", 'device.attributes["s.test"].kind == "big"', config=[{"opaque": block}])
    offer(world, "other", 'device.attributes["s.test"].kind == "other"')
    first = {"name": "x", "firstAvailable": [{"name": "big", "deviceClassName": "big"}]}
    configs = [{"requests": [name], "opaque": block} for name in ("y", "x/big")]
    ask(world, "a", first, asked("y", "other"), config=configs)
    got(world, "a")
    found = world.claim("a")["status"]["allocation"]["devices"]["config"]
    return [[one["source"], one.get("requests")] for one in found]


@seen(["0/1 nodes are available: request r: device class late does not exist.", ["d0"]])
def class_that_comes_later_lets_the_pod_go(world: World) -> object:
    publish(world, [device("d0")])
    ask(world, "a", asked(of="late"))
    before = got(world, "a")
    offer(world, "late")
    world.scheduled("a")
    return [before, got(world, "a")]


@seen([["mid"], "r/mid"])
def second_choice_is_taken_where_the_first_is_not_to_be_had(world: World) -> object:
    publish(world, kinds("big", "mid"))
    for kind in ("big", "mid"):
        offer(world, kind, f'device.attributes["s.test"].kind == "{kind}"')
    ask(world, "a", asked(of="big"))
    got(world, "a")
    choices = [{"name": kind, "deviceClassName": kind} for kind in ("big", "mid")]
    ask(world, "b", {"name": "r", "firstAvailable": choices})
    return [got(world, "b"), results(world.claim("b"))[0]["request"]]


@seen([["d0", "d1"], FULL])
def all_takes_every_device_and_fails_if_one_is_held(world: World) -> object:
    publish(world, [device("d0"), device("d1")])
    offer(world, "any")
    ask(world, "a", asked(allocationMode="All"))
    first = got(world, "a")
    ask(world, "b", asked(allocationMode="All"))
    return [first, got(world, "b")]


@seen(
    'running "DynamicResources" filter plugin: class picky: selector #0 on device s.test/p/d0: '
    "CEL runtime error: no such key: kind. consider using CEL optional chaining (.? followed by "
    "orValue()) or guarding the check with has() for optional fields"
)
def attribute_that_one_device_lacks_stops_the_pod(world: World) -> object:
    publish(world, [device("d0"), *kinds("d1")])
    offer(world, "picky", 'device.attributes["s.test"].kind == "d1"')
    ask(world, "a", asked(of="picky"))
    return got(world, "a")


@seen([["d0"], "allocated, waiting", "bound"])
def pod_is_bound_when_its_binding_conditions_hold(world: World) -> object:
    conditions = {"bindingConditions": ["ok"], "bindingFailureConditions": ["bad"]}
    publish(world, [device("d0", bindsToNode=True, **conditions)])
    offer(world, "any")
    ask(world, "a")
    first = names(world.allocated("a"))
    bound = world.pod("a")["spec"].get("nodeName")
    state = "allocated, waiting" if not bound else "bound at once"
    condition = {
        "type": "ok",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    world.report("a", [{"driver": DRIVER, "pool": "p", "device": "d0", "conditions": [condition]}])
    world.scheduled("a")
    return [first, state, "bound"]


@seen([["d0"], ["d0"]])
def claim_is_shared_by_two_pods(world: World) -> object:
    publish(world, [device("d0")])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    start(world, "b", claims=["a"])
    world.scheduled("b")
    reserved = {pod["name"] for pod in world.claim("a")["status"]["reservedFor"]}
    assert reserved == {"a", "b"}
    return [first, names(world.claim("a"))]


@seen([["d0"], FULL, ["d0"]])
def device_is_given_to_the_next_when_its_pod_is_gone(world: World) -> object:
    publish(world, [device("d0")])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    ask(world, "b")
    second = got(world, "b")
    world.remove(PODS, "a")
    world.scheduled("b")
    return [first, second, got(world, "b")]


def too_many(where: str, more: int, before: int) -> str:
    return (
        f'running "DynamicResources" filter plugin: claim default/{where}: adding {more} devices '
        f"exceeds the claim limit of 32, with {before} already accounted for"
    )


@seen(
    [
        too_many("a, request r", 33, 0),
        too_many("b, request r", 33, 0),
        too_many("c, request y", 16, 17),
        32,
    ]
)
def claim_has_thirty_two_devices_at_most(world: World) -> object:
    publish(world, [device(f"d{index}") for index in range(33)])
    offer(world, "any")
    ask(world, "a", asked(allocationMode="All"))
    ask(world, "b", asked(count=33))
    ask(world, "c", asked("x", count=17), asked("y", count=16))
    ask(world, "d", asked(count=32))
    found = got(world, "d")
    return [got(world, "a"), got(world, "b"), got(world, "c"), len(found)]
