"""Devices that are kept from claims, and those that are looked at all the same."""

from accelkit.conformance.sims.api.kinds import NAMESPACES, TAINT_RULES
from tests.conformance.sims.api_scheduler.stories import FULL, seen
from tests.conformance.sims.api_scheduler.stories_shares import MEMORY, shared
from tests.conformance.sims.api_scheduler.world import (
    DRIVER,
    World,
    ask,
    asked,
    device,
    got,
    offer,
    publish,
    results,
)

NO_SCHEDULE = {"key": "k", "value": "v", "effect": "NoSchedule"}
TOLERATE = [{"key": "k", "operator": "Exists"}]


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


@seen([FULL, FULL, FULL, ["d0"]])
def toleration_is_for_its_key_effect_and_value(world: World) -> object:
    publish(world, [device("d0", taints=[NO_SCHEDULE])])
    offer(world, "any")
    found = []
    for pod, toleration in (
        ("a", {"key": "k", "operator": "Equal", "value": "other"}),
        ("b", {"key": "k", "operator": "Exists", "effect": "NoExecute"}),
        ("c", {"key": "other", "operator": "Exists"}),
        ("d", {"key": "k", "value": "v", "effect": "NoSchedule"}),
    ):
        ask(world, pod, asked(tolerations=[toleration]))
        found.append(got(world, pod))
    return found


@seen(["d0"])
def toleration_without_a_key_is_for_all_taints(world: World) -> object:
    taints = [NO_SCHEDULE, {"key": "other", "effect": "NoExecute"}]
    publish(world, [device("d0", taints=taints)])
    offer(world, "any")
    ask(world, "a", asked(tolerations=[{"operator": "Exists"}]))
    return got(world, "a")
