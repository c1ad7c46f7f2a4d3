"""Pods on a simulated node: what is asked, what they get, how they end."""

import asyncio
from pathlib import Path

import pytest
from attrs import evolve

from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.conformance.sims.choosing import Policy
from accelkit.conformance.sims.events import (
    Allocated,
    Answer,
    ContainerStarted,
    ContainerStopped,
    ContainerWaiting,
    PodRemoved,
    PreferredAsked,
)
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from accelkit.conformance.sims.timing import QUICK
from accelkit.core.errors import IllegalSet
from tests.conformance.sims.conftest import Join
from tests.conformance.sims.plugin import RESOURCE, Plugin, device, devices, plugin_path, register

PREFERS = dp.DevicePluginOptions(get_preferred_allocation_available=True)
PRE_START = dp.DevicePluginOptions(pre_start_required=True)


async def test_pod_gets_devices_and_the_plugins_answer(sim: KubeletSim, join: Join) -> None:
    await join(devices(2))

    pod = await sim.admit("p", {RESOURCE: 2})

    answer = Answer(envs=(("IDS", "d0,d1"),))
    assert (pod.phase, pod.ids()) == (Phase.RUNNING, ("d0", "d1"))
    assert sim.seen(ContainerStarted) == [ContainerStarted("p", "main", 0, (answer,))]
    (allocated,) = sim.seen(Allocated)
    assert (sorted(allocated.ids), allocated.answer) == (["d0", "d1"], answer)


async def test_devices_of_several_resources_go_to_one_container(
    sim: KubeletSim, join: Join
) -> None:
    await join(devices(1))
    await join([device("x0")], resource="acme.test/nic")

    pod = await sim.admit("p", {RESOURCE: 1, "acme.test/nic": 1})

    assert pod.ids() == ("d0", "x0")


async def test_preference_is_followed(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(4), options=PREFERS)
    plugin.prefer = ("d1", "d3")

    pod = await sim.admit("p", {RESOURCE: 2})

    assert pod.ids() == ("d1", "d3")
    (asked,) = sim.seen(PreferredAsked)
    assert (set(asked.available), asked.must, asked.size) == ({"d0", "d1", "d2", "d3"}, (), 2)


async def test_preference_is_asked_for_also_when_all_devices_are_wanted(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(2), options=PREFERS)

    await sim.admit("p", {RESOURCE: 2})

    assert plugin.calls[-2:] == ["preferred", "allocate"]


@pytest.mark.parametrize("wish", [(), ("nope",), ("d1", "d1"), ("d0", "d1", "d2", "d3")])
async def test_preference_that_makes_no_sense_is_tolerated(
    sim: KubeletSim, join: Join, wish: tuple[str, ...]
) -> None:
    plugin = await join(devices(4), options=PREFERS)
    plugin.prefer = wish

    pod = await sim.admit("p", {RESOURCE: 2})

    assert len(pod.ids()) == 2
    if "d1" in wish and len(wish) == 2:
        assert "d1" in pod.ids()


async def test_preference_that_fails_fails_the_pod(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(4), options=PREFERS)
    plugin.failure = IllegalSet("no")

    pod = await sim.admit("p", {RESOURCE: 2})

    assert pod.phase is Phase.FAILED
    assert "rpc error: code = FailedPrecondition desc = no" in pod.message
    assert sim.seen(PreferredAsked)[0].answer is None


async def test_refusal_reaches_the_user_and_is_final(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(2))
    plugin.failure = IllegalSet("d0 cannot run alone", remedy="ask for 2")

    pod = await sim.admit("p", {RESOURCE: 1})

    assert (pod.phase, pod.reason) == (Phase.FAILED, "UnexpectedAdmissionError")
    assert pod.message == (
        "Pod was rejected: Allocate failed due to rpc error: code = FailedPrecondition "
        "desc = d0 cannot run alone; ask for 2, which is unexpected"
    )


async def test_failed_pod_leaves_its_devices(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1))
    plugin.failure = IllegalSet("no")
    await sim.admit("p", {RESOURCE: 1})
    plugin.failure = None

    assert (await sim.admit("q", {RESOURCE: 1})).ids() == ("d0",)


async def test_answer_without_containers_fails_the_pod(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1))
    plugin.empty = True

    pod = await sim.admit("p", {RESOURCE: 1})

    assert "no containers return in allocation response" in pod.message


async def test_more_than_there_is_fails_the_pod(sim: KubeletSim, join: Join) -> None:
    await join(devices(2))

    pod = await sim.admit("p", {RESOURCE: 3})

    assert pod.message == (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
        f"{RESOURCE}. Requested: 3, Available: 2, which is unexpected"
    )


async def test_pod_that_arrives_before_the_status_knows_of_a_fault_fails(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(1))
    await plugin.send(devices(1, "Unhealthy"))
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 0)})

    pod = await sim.admit("p", {RESOURCE: 1})

    assert "no healthy devices present; cannot allocate unhealthy devices" in pod.message


async def test_endpoint_that_is_cut_off_in_the_middle_of_a_call_fails_the_pod(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(1), watcher=True)
    plugin.hold["allocate"] = asyncio.Event()
    await sim.wait_for(lambda: plugin.told)
    hanging = asyncio.create_task(sim.admit("p", {RESOURCE: 1}))
    await sim.wait_for(lambda: "allocate" in plugin.calls)

    plugin.path.unlink()

    assert "the connection was closed" in (await hanging).message
    plugin.hold["allocate"].set()


async def test_admission_that_its_caller_cancels_is_cancelled(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1))
    plugin.hold["allocate"] = asyncio.Event()
    hanging = asyncio.create_task(sim.admit("p", {RESOURCE: 1}))
    await sim.wait_for(lambda: "allocate" in plugin.calls)

    hanging.cancel()

    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_resource_that_nobody_registered_is_out(sim: KubeletSim) -> None:
    pod = await sim.admit("p", {"acme.test/never": 1})

    assert pod.reason == "OutOfacme.test/never"


async def test_devices_of_finished_init_containers_must_be_included(
    sim: KubeletSim, join: Join
) -> None:
    await join(devices(4), options=PREFERS)

    pod = await sim.admit("p", {RESOURCE: 3}, init={RESOURCE: 2})

    first, second = sim.seen(PreferredAsked)
    assert (first.must, second.must) == ((), pod.ids("init"))
    assert (second.size, set(second.available)) == (3, {"d0", "d1", "d2", "d3"})
    assert set(pod.ids("init")) < set(pod.ids())


async def test_init_container_that_had_enough_leaves_a_random_subset_unasked(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(4), options=PREFERS)

    pod = await sim.admit("p", {RESOURCE: 1}, init={RESOURCE: 3})

    assert plugin.calls.count("preferred") == 1
    assert plugin.calls.count("allocate") == 2
    assert set(pod.ids()) < set(pod.ids("init"))


async def test_held_devices_are_not_given_twice(sim: KubeletSim, join: Join) -> None:
    await join(devices(3))

    first = await sim.admit("p", {RESOURCE: 1})
    second = await sim.admit("q", {RESOURCE: 2})

    assert set(first.ids()) | set(second.ids()) == {"d0", "d1", "d2"}


# The sync loop.


async def test_hanging_allocate_holds_up_every_other_pod_but_not_the_lists(
    sim: KubeletSim, join: Join
) -> None:
    slow = await join(devices(1))
    await join([device("x0")], resource="acme.test/nic")
    slow.hold["allocate"] = asyncio.Event()
    hanging = asyncio.create_task(sim.admit("p", {RESOURCE: 1}))
    await sim.wait_for(lambda: "allocate" in slow.calls)
    other = asyncio.create_task(sim.admit("q", {"acme.test/nic": 1}))

    await slow.send(devices(3))
    await sim.wait_for(lambda: sim.amounts()[RESOURCE] == (3, 3))
    assert not other.done()
    slow.hold["allocate"].set()

    assert (await hanging).phase is Phase.RUNNING
    assert (await other).phase is Phase.RUNNING
    assert [event.pod for event in sim.seen(Allocated)] == ["p", "q"]


async def test_pre_start_that_hangs_holds_up_its_own_pod_only(sim: KubeletSim, join: Join) -> None:
    slow = await join(devices(1), options=PRE_START)
    await join([device("x0")], resource="acme.test/nic")
    slow.hold["pre-start"] = asyncio.Event()
    hanging = asyncio.create_task(sim.admit("p", {RESOURCE: 1}))
    await sim.wait_for(lambda: "pre-start" in slow.calls)

    assert (await sim.admit("q", {"acme.test/nic": 1})).phase is Phase.RUNNING
    assert not hanging.done()
    slow.hold["pre-start"].set()
    await hanging


async def test_late_answer_for_a_pod_that_was_deleted_by_force_comes_to_nothing(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(1))
    plugin.hold["allocate"] = asyncio.Event()
    hanging = asyncio.create_task(sim.admit("p", {RESOURCE: 1}))
    await sim.wait_for(lambda: "allocate" in plugin.calls)
    removal = asyncio.create_task(sim.remove("p", force=True))
    await asyncio.sleep(0)

    plugin.hold["allocate"].set()
    await hanging
    await removal

    assert sim.seen(ContainerStarted) == []
    assert (await sim.admit("q", {RESOURCE: 1})).ids() == ("d0",)


async def test_admission_that_a_kill_interrupts_fails(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1))
    plugin.hold["allocate"] = asyncio.Event()
    hanging = asyncio.create_task(sim.admit("p", {RESOURCE: 1}))
    await sim.wait_for(lambda: "allocate" in plugin.calls)

    await sim.kill()

    assert (await hanging).message == (
        "Pod was rejected: Allocate failed due to the connection was closed, which is unexpected"
    )
    await sim.start()


# Containers that start again.


async def test_restarted_container_gets_the_cached_answer_whatever_its_device_is(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})
    await plugin.send([])
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (0, 0)})
    await plugin.end_stream()

    sim.crash("p")
    container = await sim.start_again("p")

    before, after = sim.seen(ContainerStarted)
    assert (container.running, before.answers) == (True, after.answers)
    assert plugin.calls.count("allocate") == 1


async def test_after_the_grace_no_container_starts_until_somebody_registers(
    tmp_path: Path,
) -> None:
    async with KubeletSim(tmp_path, timing=evolve(QUICK, grace_s=0.1)) as sim:
        plugin = await Plugin(plugin_path(sim.plugins_dir), devices(1)).serve()
        await register(sim, plugin)
        await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 1)})
        await sim.admit("p", {RESOURCE: 1})
        await plugin.close()
        await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (0, 0)})

        container = await sim.start_again("p")
        text = f"endpoint not found in cache for a registered resource: {RESOURCE}"
        assert (container.running, container.waiting) == (False, text)
        again = await Plugin(plugin_path(sim.plugins_dir), devices(1)).serve()
        await register(sim, again)
        assert (await sim.start_again("p")).running
        await again.close()


async def test_pre_start_is_called_before_every_start(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1), options=PRE_START)

    await sim.admit("p", {RESOURCE: 1})
    await sim.start_again("p")

    assert plugin.calls == ["options", "list", "allocate", "pre-start", "pre-start"]


async def test_pre_start_that_fails_leaves_the_container_waiting(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(1), options=PRE_START)
    await sim.admit("p", {RESOURCE: 1})
    plugin.failure = IllegalSet("no")

    container = await sim.start_again("p")

    assert not container.running
    (waiting,) = sim.seen(ContainerWaiting)
    assert (waiting.reason, waiting.message) == (
        "CreateContainerConfigError",
        (
            "device plugin PreStartContainer rpc failed with err: "
            "rpc error: code = FailedPrecondition desc = no"
        ),
    )


async def test_pre_start_that_takes_too_long_leaves_the_container_waiting(tmp_path: Path) -> None:
    async with KubeletSim(tmp_path, timing=evolve(QUICK, pre_start_s=0.05)) as sim:
        path = plugin_path(sim.plugins_dir)
        plugin = await Plugin(path, devices(1), options=PRE_START).serve()
        plugin.hold["pre-start"] = asyncio.Event()
        await register(sim, plugin)
        await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 1)})

        pod = await sim.admit("p", {RESOURCE: 1})

        assert pod.phase is Phase.RUNNING
        assert "code = DeadlineExceeded" in pod.container("main").waiting
        plugin.hold["pre-start"].set()
        await plugin.close()


async def test_pre_start_of_a_stopped_plugin_leaves_the_container_waiting(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(1), options=PRE_START)
    await sim.admit("p", {RESOURCE: 1})
    await plugin.close()
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 0)})

    assert "has been stopped" in (await sim.start_again("p")).waiting


# Health in the pod's status.


async def test_health_of_held_devices_is_in_the_pods_status(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(2))
    await sim.admit("p", {RESOURCE: 2})
    assert sim.device_health("p") == {"d0": "Healthy", "d1": "Healthy"}

    await plugin.send([device("d0"), device("d1", "Unhealthy")])

    await sim.wait_for(lambda: sim.device_health("p") == {"d0": "Healthy", "d1": "Unhealthy"})


async def test_held_device_that_leaves_the_list_turns_healthy(sim: KubeletSim, join: Join) -> None:
    plugin = await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})
    await plugin.send(devices(1, "Unhealthy"))
    await sim.wait_for(lambda: sim.device_health("p") == {"d0": "Unhealthy"})

    await plugin.send([])

    await sim.wait_for(lambda: sim.device_health("p") == {"d0": "Healthy"})


async def test_ended_stream_leaves_the_last_health_in_the_status(
    sim: KubeletSim, join: Join
) -> None:
    plugin = await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})

    await plugin.end_stream()
    await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 0)})

    assert sim.device_health("p") == {"d0": "Healthy"}


@pytest.mark.parametrize("sim", ["1.34", "1.35"], indirect=True)
async def test_status_has_no_health_before_its_gate_is_on(sim: KubeletSim, join: Join) -> None:
    await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})

    assert sim.device_health("p") == {}


# Pods that go.


async def test_removed_pod_ends_first_and_then_frees_its_devices(
    sim: KubeletSim, join: Join
) -> None:
    await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})

    await sim.remove("p")

    assert sim.log[-2:] == [ContainerStopped("p", "main"), PodRemoved("p", forced=False)]
    assert (await sim.admit("q", {RESOURCE: 1})).ids() == ("d0",)


async def test_forced_removal_frees_devices_while_the_process_still_runs(
    sim: KubeletSim, join: Join
) -> None:
    await join(devices(1))
    pod = await sim.admit("p", {RESOURCE: 1})

    await sim.remove("p", force=True)
    next_pod = await sim.admit("q", {RESOURCE: 1})

    assert next_pod.ids() == pod.ids()
    await sim.wait_for(lambda: sim.seen(ContainerStopped))
    kinds = [type(event) for event in sim.log]
    assert kinds.index(PodRemoved) < kinds.index(ContainerStopped)


async def test_completed_pod_frees_its_devices_and_stays(sim: KubeletSim, join: Join) -> None:
    await join(devices(1))
    await sim.admit("p", {RESOURCE: 1})

    await sim.complete("p")

    assert sim.pods["p"].phase is Phase.SUCCEEDED
    assert (await sim.admit("q", {RESOURCE: 1})).ids() == ("d0",)


# Topology.


async def on_two_nodes(tmp_path: Path, policy: Policy, size: int) -> tuple[KubeletSim, Plugin]:
    sim = KubeletSim(tmp_path, timing=QUICK, policy=policy, numa_nodes=(0, 1))
    async with sim:
        listed = [device(f"d{i}", nodes=(i // 2,)) for i in range(4)] + [device("d4")]
        path = plugin_path(sim.plugins_dir)
        plugin = await Plugin(path, listed, options=PREFERS).serve()
        await register(sim, plugin)
        await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (5, 5)})
        await sim.admit("p", {RESOURCE: size})
        await plugin.close()
    return sim, plugin


async def test_fewer_than_are_aligned_are_chosen_among_the_aligned(tmp_path: Path) -> None:
    sim, _ = await on_two_nodes(tmp_path, Policy.RESTRICTED, 1)

    (asked,) = sim.seen(PreferredAsked)
    assert (set(asked.available), asked.must) == ({"d0", "d1"}, ())


async def test_exactly_the_aligned_are_taken_unasked(tmp_path: Path) -> None:
    sim, plugin = await on_two_nodes(tmp_path, Policy.RESTRICTED, 2)

    assert "preferred" not in plugin.calls
    assert sim.pods["p"].ids() == ("d0", "d1")


async def test_policy_that_only_tries_asks_for_all_if_nothing_is_aligned(tmp_path: Path) -> None:
    sim, _ = await on_two_nodes(tmp_path, Policy.BEST_EFFORT, 5)

    (asked,) = sim.seen(PreferredAsked)
    assert (asked.must, sim.pods["p"].phase) == ((), Phase.RUNNING)


async def test_set_across_nodes_is_rejected_by_one_node_policy(tmp_path: Path) -> None:
    sim, _ = await on_two_nodes(tmp_path, Policy.SINGLE, 3)

    pod = sim.pods["p"]
    assert (pod.phase, pod.reason) == (Phase.FAILED, "TopologyAffinityError")
    assert pod.message == ("Pod was rejected: Resources cannot be allocated with Topology locality")


@pytest.mark.parametrize("node", [-1, 99])
async def test_device_on_a_node_that_the_host_has_not_is_never_aligned(
    tmp_path: Path, node: int
) -> None:
    async with KubeletSim(tmp_path, timing=QUICK, policy=Policy.SINGLE) as sim:
        plugin = await Plugin(plugin_path(sim.plugins_dir), [device("d0", nodes=(node,))]).serve()
        await register(sim, plugin)
        await sim.wait_for(lambda: sim.amounts() == {RESOURCE: (1, 1)})

        assert (await sim.admit("p", {RESOURCE: 1})).reason == "TopologyAffinityError"
        await plugin.close()


async def test_wait_that_is_in_vain_tells_what_there_was(sim: KubeletSim, join: Join) -> None:
    await join(devices(1))

    with pytest.raises(TimeoutError, match=r"amounts: \{'acme.test/gpu': \(1, 1\)\}, log:"):
        await sim.wait_for(lambda: False, patience_s=0.01)
