"""Claims, classes, pools, taints and conditions of binding."""

from accelkit.conformance.sims.api.kinds import NAMESPACES, TAINT_RULES
from accelkit.core.kube import NODES, PODS
from tests.conformance.sims.api_scheduler.stories import FULL, seen
from tests.conformance.sims.api_scheduler.stories_shares import MEMORY, shared
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

NO_SCHEDULE = {"key": "k", "value": "v", "effect": "NoSchedule"}
TOLERATE = [{"key": "k", "operator": "Exists"}]


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


@seen(["d1", "d0", "d2"])
def devices_are_tried_by_pool_then_slice_then_in_the_order_of_the_list(world: World) -> object:
    publish(world, [device("d2")], pool="q")
    publish(world, [device("d1")], pool="p", name="p-a", count=2)
    publish(world, [device("d0")], pool="p", name="p-b", count=2)
    offer(world, "any")
    ask(world, "a", asked(count=3))
    return got(world, "a")


@seen(["plain", "bound"])
def pools_with_binding_conditions_are_tried_last(world: World) -> object:
    conditions = {"bindingConditions": ["ok"], "bindingFailureConditions": ["bad"]}
    publish(world, [device("bound", **conditions)], pool="a")
    publish(world, [device("plain")], pool="z")
    offer(world, "any")
    ask(world, "a", asked(count=2))
    return names(world.allocated("a"))


@seen([FULL, ["d0"]])
def pool_is_used_when_it_is_complete(world: World) -> object:
    publish(world, [device("d0")], name="p-a", count=2)
    offer(world, "any")
    ask(world, "a")
    before = got(world, "a")
    publish(world, [device("d1")], name="p-b", count=2)
    world.scheduled("a")
    return [before, got(world, "a")]


@seen([["new"], FULL])
def only_the_latest_generation_counts(world: World) -> object:
    publish(world, [device("old")], name="p-a")
    publish(world, [device("new")], name="p-b", generation=2)
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    ask(world, "b")
    return [first, got(world, "b")]


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


@seen([["a0", "b0"], FULL])
def devices_of_one_root_are_found_together(world: World) -> object:
    def on(name: str, root: str) -> Document:
        attributes = {
            "resource.kubernetes.io/pcieRoot": {"string": root},
            "kind": {"string": name[0]},
        }
        return device(name, attributes=attributes)

    publish(world, [on("a1", "r1"), on("a0", "r0"), on("b0", "r0")])
    for kind in "ab":
        offer(
            world,
            kind,
            f'device.driver == "{DRIVER}" && device.attributes["s.test"].kind == "{kind}"',
        )
    same = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    ask(world, "x", asked("a", "a"), asked("b", "b"), constraints=same)
    first = got(world, "x")
    ask(world, "y", asked("a", "a"), asked("b", "b"), constraints=same)
    return [first, got(world, "y")]


@seen([["d0", "d1"], FULL])
def all_takes_every_device_and_fails_if_one_is_held(world: World) -> object:
    publish(world, [device("d0"), device("d1")])
    offer(world, "any")
    ask(world, "a", asked(allocationMode="All"))
    first = got(world, "a")
    ask(world, "b", asked(allocationMode="All"))
    return [first, got(world, "b")]


@seen(
    'running "DynamicResources" filter plugin: claim default/a, request r: asks for all devices, '
    "but resource pool s.test/p is currently being updated"
)
def all_of_a_pool_that_is_not_complete_stops_the_pod(world: World) -> object:
    publish(world, [device("d0")], count=2)
    offer(world, "any")
    ask(world, "a", asked(allocationMode="All"))
    return got(world, "a")


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


@seen([FULL, ["d0"], [{**TOLERATE[0]}]])
def tainted_device_is_for_those_who_tolerate_it(world: World) -> object:
    publish(world, [device("d0", taints=[NO_SCHEDULE])])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    ask(world, "b", asked(tolerations=TOLERATE))
    return [first, got(world, "b"), results(world.claim("b"))[0]["tolerations"]]


@seen([["d0"], ["d0"], True, FULL, FULL, ["d0"]])
def admins_look_at_devices_that_others_hold_if_they_tolerate_their_taints(world: World) -> object:
    world.label(NAMESPACES, "default", {"resource.kubernetes.io/admin-access": "true"})
    publish(world, [device("d0")])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    ask(world, "b", asked(adminAccess=True))
    second = got(world, "b")
    (result,) = results(world.claim("b"))
    publish(world, [device("d0", taints=[NO_SCHEDULE])])
    ask(world, "c", asked(adminAccess=True))
    third = got(world, "c")
    ask(world, "d", asked(adminAccess=True, count=2, tolerations=TOLERATE))
    fourth = got(world, "d")
    ask(world, "e", asked(adminAccess=True, tolerations=TOLERATE))
    return [first, second, result["adminAccess"], third, fourth, got(world, "e")]


@seen([{"memory": "10Gi"}, True, {"memory": "80Gi"}])
def admins_get_a_share_that_takes_nothing(world: World) -> object:
    world.label(NAMESPACES, "default", {"resource.kubernetes.io/admin-access": "true"})
    publish(world, [shared(memory=MEMORY)])
    offer(world, "any")
    ask(world, "a", asked(adminAccess=True))
    got(world, "a")
    (share,) = results(world.claim("a"))
    ask(world, "b", asked(capacity={"requests": {"memory": "80Gi"}}))
    got(world, "b")
    (whole,) = results(world.claim("b"))
    return [share["consumedCapacity"], bool(share["shareID"]), whole["consumedCapacity"]]


@seen(["d0"])
def taint_without_effect_keeps_nobody_away(world: World) -> object:
    publish(world, [device("d0", taints=[{"key": "k", "effect": "None"}])])
    offer(world, "any")
    ask(world, "a")
    return got(world, "a")


@seen([FULL, ["d0"]])
def rule_taints_devices_until_it_is_deleted(world: World) -> object:
    publish(world, [device("d0")])
    offer(world, "any")
    selector = {"driver": DRIVER, "pool": "p", "device": "d0"}
    spec = {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoSchedule"}}
    world.put(TAINT_RULES, {"metadata": {"name": "rule"}, "spec": spec})
    ask(world, "a")
    before = got(world, "a")
    world.remove(TAINT_RULES, "rule")
    world.scheduled("a")
    return [before, got(world, "a")]


@seen([["d0"], "marked"])
def taint_that_executes_ends_the_pod(world: World) -> object:
    publish(world, [device("d0")])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    publish(world, [device("d0", taints=[{"key": "k", "effect": "NoExecute"}])])
    return [first, "marked" if world.ended("a") else ""]


@seen([["d0"], "marked"])
def rule_that_executes_ends_the_pod(world: World) -> object:
    publish(world, [device("d0")])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    taint = {"key": "k", "effect": "NoExecute"}
    world.put(
        TAINT_RULES, {"metadata": {"name": "rule"}, "spec": {"deviceSelector": {}, "taint": taint}}
    )
    return [first, "marked" if world.ended("a") else ""]


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


@seen([["d0"], "anywhere"])
def device_of_all_nodes_binds_its_claim_to_none(world: World) -> object:
    publish(world, [device("d0")], allNodes=True)
    offer(world, "any")
    ask(world, "a")
    found = got(world, "a")
    return [found, world.claim("a")["status"]["allocation"].get("nodeSelector", "anywhere")]


@seen([["d0"], {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}, FULL])
def device_of_nodes_with_a_label_binds_its_claim_to_those(world: World) -> object:
    def selecting(value: str) -> Document:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}
        return {"nodeSelectorTerms": [term]}

    world.label(NODES, "sched-1", {"zone": "z"})
    publish(world, [device("d0")], pool="p", nodeSelector=selecting("z"))
    publish(world, [device("d1")], pool="q", nodeSelector=selecting("other"))
    offer(world, "any")
    ask(world, "a")
    found = got(world, "a")
    ask(world, "b")
    terms = world.claim("a")["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    return [found, terms[0], got(world, "b")]


@seen([["mine"], "sched-1"])
def devices_may_be_for_nodes_one_by_one(world: World) -> object:
    devices = [device("theirs", nodeName="other"), device("mine", nodeName="sched-1")]
    publish(world, devices, perDeviceNodeSelection=True)
    offer(world, "any")
    ask(world, "a")
    found = got(world, "a")
    selector = world.claim("a")["status"]["allocation"]["nodeSelector"]
    return [found, selector["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]]
