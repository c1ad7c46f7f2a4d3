"""Partitions: devices that take counters, and what is not listed any more."""

from accelkit.core.kube import PODS
from tests.conformance.sims.api_scheduler.stories import FULL, seen
from tests.conformance.sims.api_scheduler.world import (
    Document,
    World,
    ask,
    asked,
    consuming,
    counters,
    device,
    got,
    offer,
    publish,
)

SETS = counters(memory=8, compute=7)
WHOLE = consuming("whole", {"memory": 8, "compute": 7}, attributes={"profile": {"string": "whole"}})


def part(profile: str, place: int, memory: int, compute: int) -> Document:
    """A partition: its memory is at a place, as it is in MIG."""
    attributes = {"profile": {"string": profile}, "s.test/parent": {"string": "gpu"}}
    return consuming(
        f"p{profile}-{place}", {"memory": memory, "compute": compute}, attributes=attributes
    )


SMALL = [part("1g", place, 1, 1) for place in range(7)]
HALVES = [part("3g", place, 4, 3) for place in (0, 4)]


def mig(world: World) -> None:
    """A GPU, its halves and its sevenths, wholes first."""
    publish(world, [WHOLE, *HALVES, *SMALL], SETS)
    offer(world, "any")
    for profile in ("whole", "1g", "3g"):
        offer(
            world,
            f"of-{profile}",
            f'device.driver == "s.test" && device.attributes["s.test"].profile == "{profile}"',
        )


@seen([["whole"], FULL])
def partition_of_a_whole_that_is_taken_is_not_given(world: World) -> object:
    mig(world)
    ask(world, "a", asked(of="of-whole"))
    first = got(world, "a")
    ask(world, "b", asked(of="of-1g"))
    return [first, got(world, "b")]


@seen([["p3g-0"], ["p3g-4"], FULL, FULL])
def two_halves_leave_neither_memory_nor_a_whole(world: World) -> object:
    mig(world)
    for pod, of in (("a", "3g"), ("b", "3g"), ("c", "1g"), ("d", "whole")):
        ask(world, pod, asked(of=f"of-{of}"))
    return [got(world, pod) for pod in "abcd"]


@seen([[f"p1g-{place}" for place in range(7)]])
def seven_small_ones_fit_in_one_claim(world: World) -> object:
    mig(world)
    ask(world, "a", asked(of="of-1g", count=7))
    return [got(world, "a")]


@seen([FULL])
def all_of_a_pool_with_wholes_and_parts_is_never_had(world: World) -> object:
    mig(world)
    ask(world, "a", asked(allocationMode="All"))
    return [got(world, "a")]


@seen([["p3g-0", "p3g-4"]])
def two_requests_get_partitions_of_one_parent(world: World) -> object:
    mig(world)
    same = [{"matchAttribute": "s.test/parent", "requests": ["x", "y"]}]
    ask(world, "a", asked("x", "of-3g"), asked("y", "of-3g"), constraints=same)
    return [got(world, "a")]


@seen([["whole"]])
def whole_is_taken_first_where_it_is_listed_first(world: World) -> object:
    mig(world)
    ask(world, "a")
    return [got(world, "a")]


@seen([["whole"], ["p1g-0"]])
def held_whole_that_is_not_listed_any_more_is_given_away_in_parts(world: World) -> object:
    mig(world)
    ask(world, "a", asked(of="of-whole"))
    first = got(world, "a")
    publish(world, [*HALVES, *SMALL], SETS)
    ask(world, "b", asked(of="of-1g"))
    return [first, got(world, "b")]


@seen([["whole"], FULL, ["p1g-0"]])
def partition_is_given_when_the_whole_is_given_back(world: World) -> object:
    mig(world)
    ask(world, "a", asked(of="of-whole"))
    first = got(world, "a")
    ask(world, "b", asked(of="of-1g"))
    second = got(world, "b")
    world.remove(PODS, "a")
    world.scheduled("b")
    return [first, second, got(world, "b")]


@seen([["d0"], ["d1"]])
def device_that_consumes_less_than_nothing_is_given(world: World) -> object:
    publish(
        world, [consuming("d0", {"memory": -1}), consuming("d1", {"memory": 2})], counters(memory=1)
    )
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    ask(world, "b")
    return [first, got(world, "b")]


@seen(["0/1 nodes are available: 1 invalid resource pools were encountered."] * 2)
def counter_set_or_counter_that_is_nowhere_spoils_the_whole_pool(world: World) -> object:
    offer(world, "any")
    found = []
    for pod, bad in (
        ("a", [{"counterSet": "other", "counters": {"memory": {"value": "1"}}}]),
        ("b", [{"counterSet": "gpu", "counters": {"other": {"value": "1"}}}]),
    ):
        publish(world, [device("good"), device("bad", consumesCounters=bad)], counters(memory=1))
        ask(world, pod)
        found.append(got(world, pod))
    return found
