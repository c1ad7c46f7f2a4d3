"""What devices of a claim must have in common, or must not."""

from tests.conformance.sims.api_scheduler.stories import FULL, seen
from tests.conformance.sims.api_scheduler.world import (
    DRIVER,
    Document,
    World,
    ask,
    asked,
    device,
    got,
    offer,
    publish,
    results,
)


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


def having(name: str, **attributes: Document) -> Document:
    return device(name, attributes=attributes)


@seen([["d1", "d0"]])
def constraint_on_one_request_wants_the_attribute_of_its_devices_alone(world: World) -> object:
    publish(world, [device("d0"), having("d1", parent={"string": "a"})])
    offer(world, "any")
    same = [{"matchAttribute": "s.test/parent", "requests": ["x"]}]
    ask(world, "a", asked("x"), asked("y"), constraints=same)
    return [got(world, "a")]


@seen([["a0", "b0"], ["r/two", "y"]])
def constraint_on_a_request_holds_for_its_alternatives(world: World) -> object:
    odd, even = {"string": "odd"}, {"string": "even"}
    publish(
        world,
        [
            having("a1", parent=odd, kind={"string": "one"}),
            having("a0", parent=even, kind={"string": "two"}),
            having("b0", parent=even, kind={"string": "other"}),
        ],
    )
    for kind in ("one", "two", "other"):
        offer(world, kind, f'device.attributes["s.test"].kind == "{kind}"')
    choices = [{"name": kind, "deviceClassName": kind} for kind in ("one", "two")]
    same = [{"matchAttribute": "s.test/parent", "requests": ["r", "y"]}]
    first = {"name": "r", "firstAvailable": choices}
    ask(world, "a", first, asked("y", "other"), constraints=same)
    return [got(world, "a"), [one["request"] for one in results(world.claim("a"))]]


@seen([FULL, ["d0", "d2"]])
def number_is_not_the_text_of_its_digits(world: World) -> object:
    publish(world, [having("d0", id={"int": 1}), having("d1", id={"string": "1"})])
    offer(world, "any")
    same = [{"matchAttribute": "s.test/id"}]
    ask(world, "a", asked(count=2), constraints=same)
    before = got(world, "a")
    more = [
        having("d0", id={"int": 1}),
        having("d1", id={"string": "1"}),
        having("d2", id={"int": 1}),
    ]
    publish(world, more)
    world.scheduled("a")
    return [before, got(world, "a")]


@seen([["d0", "d2"], FULL])
def distinct_devices_differ_from_one_another(world: World) -> object:
    same, other = {"version": "1.0.0"}, {"version": "1.0.1"}
    publish(world, [having("d0", v=same), having("d1", v=same), having("d2", v=other)])
    offer(world, "any")
    distinct = [{"distinctAttribute": "s.test/v"}]
    ask(world, "a", asked(count=2), constraints=distinct)
    first = got(world, "a")
    ask(world, "b", asked(count=2), constraints=distinct)
    return [first, got(world, "b")]


@seen([FULL])
def attribute_of_all_must_be_there(world: World) -> object:
    publish(world, [having("d0", v={"bool": True}), device("d1")])
    offer(world, "any")
    ask(world, "a", asked(count=2), constraints=[{"matchAttribute": "s.test/v"}])
    return [got(world, "a")]
