"""Pods that ask for extended resources, served by devices."""

from collections.abc import Mapping

from tests.conformance.sims.api_scheduler.stories import FULL, seen
from tests.conformance.sims.api_scheduler.stories_shares import MEMORY, shared
from tests.conformance.sims.api_scheduler.world import (
    Document,
    World,
    device,
    names,
    offer,
    publish,
    results,
    start,
    waiting,
)

NAME = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/any"


def devices(world: World, count: int) -> None:
    publish(world, [device(f"d{i}") for i in range(count)])
    offer(world, "any", extendedResourceName=NAME)


def served(world: World, pod: str) -> Document | str:
    """The pod's extended claim; a text: why it waits."""
    found = world.decided(pod)
    if not found["spec"].get("nodeName"):
        return waiting(found)
    status = found["status"].get("extendedResourceClaimStatus")
    return world.claim(status["resourceClaimName"]) if status else "no claim"


def asks(claim: Document) -> Mapping[str, int]:
    return {r["name"]: r["exactly"]["count"] for r in claim["spec"]["devices"]["requests"]}


def mapped(world: World, pod: str) -> list[tuple[str, str]]:
    """Containers and their requests."""
    found = world.decided(pod)["status"]["extendedResourceClaimStatus"]["requestMappings"]
    return sorted((one["containerName"], one["requestName"]) for one in found)


def _devices_of(claim: Document | str) -> list[str] | str:
    return claim if isinstance(claim, str) else names(claim)


@seen([{"container-0-request-0": 2}, ["d0", "d1"], [("main", "container-0-request-0")], True])
def name_of_a_class_is_served_by_a_claim_of_the_pod(world: World) -> object:
    devices(world, 2)
    start(world, "a", limits={NAME: "2"})
    claim = served(world, "a")
    assert not isinstance(claim, str)
    meta = claim["metadata"]
    own = (
        meta["name"].startswith("a-extended-resources-")
        and meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        and meta["ownerReferences"][0]["kind"] == "Pod"
        and meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    )
    return [asks(claim), names(claim), mapped(world, "a"), own]


@seen({"container-0-request-1": 1})
def other_resources_are_counted_in_the_name_of_the_request(world: World) -> object:
    devices(world, 1)
    start(world, "a", limits={NAME: "1", "cpu": "1m"})
    claim = served(world, "a")
    assert not isinstance(claim, str)
    return asks(claim)


@seen([["d0"], ["d1", "d2"]])
def class_has_a_name_of_its_own_beside_the_given_one(world: World) -> object:
    devices(world, 3)
    start(world, "a", limits={IMPLICIT: "1"})
    first = _devices_of(served(world, "a"))
    start(world, "b", limits={IMPLICIT: "1", NAME: "1"})
    return [first, _devices_of(served(world, "b"))]


@seen(
    [
        {"container-1-request-0": 2},
        [("init", "container-1-request-0"), ("main", "container-1-request-0")],
    ]
)
def init_container_borrows_what_another_will_have(world: World) -> object:
    devices(world, 3)
    start(world, "a", limits={NAME: "2"}, init={NAME: "1"})
    claim = served(world, "a")
    assert not isinstance(claim, str)
    return [asks(claim), mapped(world, "a")]


@seen(
    [
        {"container-0-request-0": 2, "container-1-request-0": 1},
        [
            ("init", "container-0-request-0"),
            ("init", "container-1-request-0"),
            ("main", "container-1-request-0"),
        ],
    ]
)
def init_container_that_needs_more_gets_what_is_missing(world: World) -> object:
    devices(world, 3)
    start(world, "a", limits={NAME: "1"}, init={NAME: "3"})
    claim = served(world, "a")
    assert not isinstance(claim, str)
    return [asks(claim), mapped(world, "a")]


@seen([FULL, ["gpu", "gpu"]])
def two_shares_for_one_container_need_two_devices(world: World) -> object:
    publish(world, [shared(memory=MEMORY)])
    offer(world, "any", extendedResourceName=NAME)
    start(world, "a", limits={NAME: "2"})
    first = _devices_of(served(world, "a"))
    start(world, "b", limits={NAME: "1"}, more=[{NAME: "1"}])
    return [first, _devices_of(served(world, "b"))]


@seen({"memory": "10Gi"})
def share_takes_the_default(world: World) -> object:
    publish(world, [shared(memory=MEMORY)])
    offer(world, "any", extendedResourceName=NAME)
    start(world, "a", limits={NAME: "1"})
    claim = served(world, "a")
    assert not isinstance(claim, str)
    return results(claim)[0]["consumedCapacity"]


@seen(["0/1 nodes are available: 1 Insufficient example.com/gpu.", ["d0"]])
def name_without_a_class_waits_until_there_is_one(world: World) -> object:
    publish(world, [device("d0")])
    start(world, "a", limits={NAME: "1"})
    before = _devices_of(served(world, "a"))
    offer(world, "any", extendedResourceName=NAME)
    world.scheduled("a")
    return [before, _devices_of(served(world, "a"))]


@seen([["d1"]])
def newer_of_two_classes_of_a_name_serves_it(world: World) -> object:
    attributes = [{"kind": {"string": kind}} for kind in ("old", "new")]
    publish(world, [device(f"d{i}", attributes=a) for i, a in enumerate(attributes)])
    for kind in ("old", "new"):
        of_kind = f'device.attributes["s.test"].kind == "{kind}"'
        offer(world, kind, of_kind, extendedResourceName=NAME)
        world.pass_second()
    start(world, "a", limits={NAME: "1"})
    return [_devices_of(served(world, "a"))]


@seen(FULL)
def more_than_there_is_waits(world: World) -> object:
    devices(world, 1)
    start(world, "a", limits={NAME: "2"})
    return _devices_of(served(world, "a"))


@seen(["no claim", "0/1 nodes are available: 1 Insufficient example.com/gpu.", ["d0"]])
def plugin_of_the_name_serves_it_alone_until_it_has_none(world: World) -> object:
    devices(world, 1)
    world.allocatable({NAME: "1"})
    start(world, "a", limits={NAME: "1"})
    first = _devices_of(served(world, "a"))
    start(world, "b", limits={NAME: "1"})
    second = _devices_of(served(world, "b"))
    world.allocatable({NAME: "0"})
    world.scheduled("b")
    return [first, second, _devices_of(served(world, "b"))]
