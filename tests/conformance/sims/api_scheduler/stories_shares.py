"""Devices that several claims have at a time, and how much of them each takes."""

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
    results,
)


def shared(name: str = "gpu", **capacity: Document | str) -> Document:
    """A shareable device; a text is a value without a policy."""
    found = {
        key: {"value": value} if isinstance(value, str) else value
        for key, value in capacity.items()
    }
    return device(name, allowMultipleAllocations=True, capacity=found)


def wanting(amounts: Document) -> Document:
    return asked(capacity={"requests": amounts})


def taken(world: World, pod: str) -> object:
    """What each of the pod's shares takes; a text: why it waits."""
    found = got(world, pod)
    if isinstance(found, str):
        return found
    shares = results(world.claim(pod))
    assert len({share["shareID"] for share in shares}) == len(shares)
    return [share.get("consumedCapacity") for share in shares]


MEMORY: Document = {
    "value": "80Gi",
    "requestPolicy": {
        "default": "10Gi",
        "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"},
    },
}
"""In steps of 1Gi, 10Gi where nothing is asked for."""


@seen(
    [
        [{"memory": "30Gi", "cores": "0"}],
        [{"memory": "31Gi", "cores": "0"}],
        [{"memory": "1Gi", "cores": "0"}],
        [{"memory": "10Gi", "cores": "0"}],
        FULL,
    ]
)
def amounts_are_rounded_up_and_all_capacities_are_told(world: World) -> object:
    cores = {"value": "100", "requestPolicy": {"default": "0", "validRange": {"min": "0"}}}
    publish(world, [shared(memory=MEMORY, cores=cores)])
    offer(world, "any")
    ask(world, "a", wanting({"memory": "30Gi"}))
    one = taken(world, "a")
    ask(world, "b", wanting({"memory": "30.5Gi"}))
    two = taken(world, "b")
    ask(world, "c", wanting({"memory": "0"}))
    three = taken(world, "c")
    ask(world, "d")
    four = taken(world, "d")
    ask(world, "e", wanting({"memory": "9Gi"}))
    return [one, two, three, four, taken(world, "e")]


@seen([FULL, FULL])
def key_in_another_spelling_and_unknown_key_make_a_device_unusable(world: World) -> object:
    publish(world, [shared(memory=MEMORY)])
    offer(world, "any")
    ask(world, "a", wanting({"s.test/memory": "1Gi"}))
    ask(world, "b", wanting({"other": "1"}))
    return [taken(world, "a"), taken(world, "b")]


@seen([[{"memory": "30Gi"}], FULL, [{"memory": "50Gi"}]])
def without_a_policy_as_much_is_taken_as_is_asked_for_or_all(world: World) -> object:
    publish(world, [shared(memory="80Gi")])
    offer(world, "any")
    ask(world, "a", wanting({"memory": "30Gi"}))
    one = taken(world, "a")
    ask(world, "b")
    two = taken(world, "b")
    ask(world, "c", wanting({"memory": "50Gi"}))
    return [one, two, taken(world, "c")]


@seen([*([[{"memory": "0", "shares": "1"}]] * 4), FULL])
def number_of_shares_is_a_capacity_of_which_one_is_taken(world: World) -> object:
    only_one = {"default": "1", "validValues": ["1"]}
    free = {"value": "80Gi", "requestPolicy": {"default": "0", "validRange": {"min": "0"}}}
    publish(world, [shared(shares={"value": "4", "requestPolicy": only_one}, memory=free)])
    offer(world, "any")
    found = []
    for pod in "abcde":
        ask(world, pod)
        found.append(taken(world, pod))
    return found


@seen([["gpu", "gpu"], FULL, FULL])
def two_requests_share_a_device_and_a_count_of_two_does_not(world: World) -> object:
    attributes = {"s.test/id": {"string": "x"}}
    item = shared(memory=MEMORY)
    publish(world, [{**item, "attributes": attributes}])
    offer(world, "any")
    ask(world, "a", asked("x"), asked("y"))
    one = got(world, "a")
    ask(world, "b", asked(count=2))
    two = got(world, "b")
    distinct = [{"distinctAttribute": "s.test/id"}]
    ask(world, "c", asked("x"), asked("y"), constraints=distinct)
    return [one, two, got(world, "c")]


@seen([[{"memory": "10Gi"}], [{"memory": "10Gi"}], FULL, ["part"]])
def shareable_device_pays_its_counters_once_and_keeps_its_parts_away(world: World) -> object:
    whole = {**consuming("whole", {"memory": 8}), **shared("whole", memory=MEMORY)}
    part = consuming("part", {"memory": 4}, attributes={"kind": {"string": "part"}})
    whole["attributes"] = {"kind": {"string": "whole"}}
    publish(world, [whole, part], counters(memory=8))
    for kind in ("whole", "part"):
        offer(world, kind, f'device.attributes["s.test"].kind == "{kind}"')
    for pod in "ab":
        ask(world, pod, asked(of="whole"))
    shares = [taken(world, pod) for pod in "ab"]
    ask(world, "c", asked(of="part"))
    kept = got(world, "c")
    for pod in "ab":
        world.remove(PODS, pod)
    world.scheduled("c")
    return [*shares, kept, got(world, "c")]


@seen([["gpu"], FULL, ["gpu"]])
def device_with_shares_out_that_is_exclusive_now_is_given_whole_if_its_capacity_is_gone(
    world: World,
) -> object:
    publish(world, [shared(memory=MEMORY)])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    publish(world, [device("gpu", capacity={"memory": {"value": "80Gi"}})])
    ask(world, "b")
    kept = got(world, "b")
    publish(world, [device("gpu")])
    world.scheduled("b")
    return [first, kept, got(world, "b")]


@seen([["gpu"], FULL])
def exclusive_device_that_is_held_is_not_shared_later(world: World) -> object:
    publish(world, [device("gpu", capacity={"memory": {"value": "80Gi"}})])
    offer(world, "any")
    ask(world, "a")
    first = got(world, "a")
    publish(world, [shared(memory=MEMORY)])
    ask(world, "b")
    return [first, got(world, "b")]


@seen([[{"units": "250m"}], [{"units": "250m"}], FULL, FULL])
def fractions_of_a_step_fit_only_as_the_default_and_below_the_minimum(world: World) -> object:
    parts = {"default": "0.25", "validRange": {"min": "0.25", "max": "1", "step": "0.25"}}
    publish(world, [shared(units={"value": "1", "requestPolicy": parts})])
    offer(world, "any")
    ask(world, "a")
    one = taken(world, "a")
    ask(world, "b", wanting({"units": "0.2"}))
    two = taken(world, "b")
    ask(world, "c", wanting({"units": "0.25"}))
    three = taken(world, "c")
    ask(world, "d", wanting({"units": "0.3"}))
    return [one, two, three, taken(world, "d")]


@seen([["whole", "whole"], FULL])
def two_shares_of_one_claim_pay_the_counters_of_their_device_once(world: World) -> object:
    whole = {**consuming("whole", {"memory": 8}), **shared("whole", memory=MEMORY)}
    other = {**consuming("other", {"memory": 8}), **shared("other", memory=MEMORY)}
    publish(world, [whole, other], counters(memory=8))
    offer(world, "any")
    ask(world, "a", asked("x"), asked("y"))
    first = got(world, "a")
    ask(world, "b", asked(count=2))
    return [first, got(world, "b")]


@seen([[{"memory": "20Gi"}], FULL, [{"memory": "10Gi"}]])
def amount_is_the_next_of_the_values_that_are_valid(world: World) -> object:
    policy = {"default": "10Gi", "validValues": ["10Gi", "20Gi"]}
    publish(world, [shared(memory={"value": "80Gi", "requestPolicy": policy})])
    offer(world, "any")
    ask(world, "a", wanting({"memory": "15Gi"}))
    first = taken(world, "a")
    ask(world, "b", wanting({"memory": "25Gi"}))
    second = taken(world, "b")
    ask(world, "c")
    return [first, second, taken(world, "c")]


@seen([FULL, [{"memory": "40Gi"}]])
def no_more_than_the_maximum_is_taken(world: World) -> object:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "40Gi"}}
    publish(world, [shared(memory={"value": "80Gi", "requestPolicy": policy})])
    offer(world, "any")
    ask(world, "a", wanting({"memory": "41Gi"}))
    first = taken(world, "a")
    ask(world, "b", wanting({"memory": "40Gi"}))
    return [first, taken(world, "b")]


@seen([FULL, [None]])
def exclusive_device_must_have_what_is_asked_for(world: World) -> object:
    publish(world, [device("d0", capacity={"memory": {"value": "80Gi"}})])
    offer(world, "any")
    ask(world, "a", wanting({"memory": "81Gi"}))
    ask(world, "b", wanting({"memory": "30Gi"}))
    assert got(world, "b") == ["d0"]
    return [got(world, "a"), [one.get("consumedCapacity") for one in results(world.claim("b"))]]
