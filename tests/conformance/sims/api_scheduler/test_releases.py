"""What older servers drop, the scheduler does not know."""

from accelkit.conformance.sims import gates
from accelkit.core.kube import PODS
from tests.conformance.sims.api_scheduler.simulated import SPACE, Simulated
from tests.conformance.sims.api_scheduler.stories_counters import mig
from tests.conformance.sims.api_scheduler.stories_extended import NAME, devices, served
from tests.conformance.sims.api_scheduler.stories_shares import MEMORY, shared
from tests.conformance.sims.api_scheduler.world import (
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

EXTENDED = {gates.EXTENDED: True}


def test_overlapping_devices_are_given_out_twice_where_counters_are_dropped() -> None:
    world = Simulated.fresh("1.35")
    mig(world)
    ask(world, "a", asked(of="of-whole"))
    ask(world, "b", asked(of="of-1g"))

    # The slice of counters is an empty one now, so that the pool is complete.
    assert [got(world, "a"), got(world, "b")] == [["whole"], ["p1g-0"]]


def test_shareable_device_is_exclusive_where_sharing_is_dropped() -> None:
    world = Simulated.fresh("1.35")
    publish(world, [shared(memory=MEMORY)])
    offer(world, "any")
    ask(world, "a")
    ask(world, "b")

    assert [got(world, "a"), got(world, "b")] == [
        ["gpu"],
        "0/1 nodes are available: 1 cannot allocate all claims.",
    ]


def test_tainted_device_is_given_where_taints_are_dropped() -> None:
    world = Simulated.fresh("1.34")
    publish(world, [device("d0", taints=[{"key": "k", "effect": "NoExecute"}])])
    offer(world, "any")
    ask(world, "a")

    assert got(world, "a") == ["d0"]
    assert "deletionTimestamp" not in world.pod("a")["metadata"]


def test_extended_resources_are_unknown_without_their_gate() -> None:
    world = Simulated.fresh("1.35")
    devices(world, 1)
    start(world, "a", limits={NAME: "1"})

    assert waiting(world.decided("a")) == (
        "0/1 nodes are available: 1 Insufficient example.com/gpu."
    )


def test_pod_of_1_34_that_names_a_class_runs_without_a_device() -> None:
    world = Simulated.fresh("1.34", EXTENDED)
    devices(world, 1)
    start(world, "a", limits={"deviceclass.resource.kubernetes.io/any": "1"})

    assert served(world, "a") == "no claim"


def test_node_of_1_34_that_had_a_plugin_serves_the_name_by_devices_no_more() -> None:
    found = []
    for release in ("1.34", "1.35"):
        world = Simulated.fresh(release, EXTENDED)
        devices(world, 1)
        world.allocatable({NAME: "0"})
        start(world, "a", limits={NAME: "1"})
        claim = served(world, "a")
        found.append(claim if isinstance(claim, str) else names(claim))

    assert found == ["0/1 nodes are available: 1 Insufficient example.com/gpu.", ["d0"]]


def test_pods_of_other_schedulers_are_left_alone() -> None:
    world = Simulated.fresh()
    pod = {"metadata": {"name": "a"}, "spec": {"schedulerName": "mine", "containers": []}}
    world.put(PODS, pod)

    assert "nodeName" not in world.api.get(PODS, "a", SPACE)["spec"]  # type: ignore[operator]  # JSON
