"""Which devices there are for a node, and in which order."""

from accelkit.core.kube import NODES
from tests.conformance.sims.api_scheduler.stories import FULL, seen
from tests.conformance.sims.api_scheduler.world import (
    NODE,
    Document,
    World,
    ask,
    asked,
    counters,
    device,
    got,
    names,
    offer,
    publish,
)


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


@seen(
    'running "DynamicResources" filter plugin: claim default/a, request r: asks for all devices, '
    "but resource pool s.test/p is currently being updated"
)
def all_of_a_pool_that_is_not_complete_stops_the_pod(world: World) -> object:
    publish(world, [device("d0")], count=2)
    offer(world, "any")
    ask(world, "a", asked(allocationMode="All"))
    return got(world, "a")


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


@seen([["not-in", "exists", "not-there", "by-name"]])
def nodes_are_selected_by_labels_and_by_name(world: World) -> object:
    def publish_for(name: str, kind: str, requirement: Document) -> None:
        selector = {"nodeSelectorTerms": [{kind: [requirement]}]}
        publish(world, [device(name)], pool=name, nodeSelector=selector)

    world.label(NODES, NODE, {"zone": "z"})
    labels = "matchExpressions"
    publish_for("a-not-in", labels, {"key": "zone", "operator": "NotIn", "values": ["y"]})
    publish_for("b-exists", labels, {"key": "zone", "operator": "Exists"})
    publish_for("c-not-there", labels, {"key": "other", "operator": "DoesNotExist"})
    by_name = {"key": "metadata.name", "operator": "In", "values": [NODE]}
    publish_for("d-by-name", "matchFields", by_name)
    publish_for("e-never", labels, {"key": "zone", "operator": "DoesNotExist"})
    publish_for("f-never", labels, {"key": "zone", "operator": "NotIn", "values": ["z"]})
    offer(world, "any")
    ask(world, "a", asked(allocationMode="All"))
    found = got(world, "a")
    return [[name.partition("-")[2] for name in found]]


@seen("0/1 nodes are available: 1 invalid resource pools were encountered.")
def device_of_one_name_in_two_slices_spoils_the_pool(world: World) -> object:
    publish(world, [device("d0")], name="p-a", count=2)
    publish(world, [device("d0")], name="p-b", count=2)
    offer(world, "any")
    ask(world, "a")
    return got(world, "a")


@seen("0/1 nodes are available: 1 invalid resource pools were encountered.")
def counter_set_of_one_name_in_two_slices_spoils_the_pool(world: World) -> object:
    publish(world, [device("d0")], counters(memory=1), count=4)
    publish(world, [device("d1")], counters(memory=1), count=4, name="q")
    offer(world, "any")
    ask(world, "a")
    return got(world, "a")
