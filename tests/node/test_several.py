"""More than one registrant of a name: a follower, a second agent by mistake, somebody else's."""

import signal
import time

import pytest

from tests.node.agents import Agents, offer, rival
from tests.node.cluster import Cluster
from tests.node.containers import (
    environment,
    gpu_nodes,
    held,
    life,
    run_pod,
    wait_allocatable,
)
from tests.node.kubelet_log import LISTED, KubeletLog
from tests.node.measured import Measured
from tests.node.simulated import GPUS, VISIBLE, Gpus

FOREIGN = "foreign-writer"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_follower_takes_over_when_the_leader_ends(
    cluster: Cluster, agents: Agents, gpus: Gpus, measured: Measured, number: signal.Signals
) -> None:
    resource = f"follower.test/{number.name.lower()}"
    leader = agents.start(gpus.folder, offer(resource=resource))
    wait_allocatable(cluster, resource, GPUS)
    follower = agents.start(gpus.folder, offer(resource=resource))
    run_pod(cluster, "old", {resource: 4})
    before = (life(cluster, "old"), held(cluster, "old"))
    follower_log = "another instance leads"
    cluster.wait_for("follower", lambda: follower_log in follower.log.read_text())
    log = KubeletLog(cluster)

    begun = time.monotonic()
    leader.end(number)

    log.wait_for(LISTED, f'"{resource}"')
    measured.add(
        f"leader ended by {number.name}: until the follower's list", time.monotonic() - begun
    )
    follower.wait_until_ready()
    wait_allocatable(cluster, resource, GPUS)
    run_pod(cluster, "new", {resource: 4})
    assert (life(cluster, "old"), held(cluster, "old")) == before
    assert gpu_nodes(cluster, "new") == set(range(GPUS)) - gpu_nodes(cluster, "old")


def test_second_agent_by_mistake_is_announced_and_does_no_harm_once_it_is_gone(
    cluster: Cluster, agents: Agents, gpus: Gpus, measured: Measured
) -> None:
    resource = "mistake.test/gpu"
    ours = agents.start(gpus.folder, offer(resource=resource))
    wait_allocatable(cluster, resource, GPUS)
    run_pod(cluster, "old", {resource: 4})
    before = life(cluster, "old")
    mistake = agents.start(gpus.folder, offer(resource=resource, sharing={"shares": 2}), run="run2")
    mistake.wait_until_ready()

    begun = time.monotonic()
    cluster.wait_for("announced", lambda: FOREIGN in ours.problems() | mistake.problems())
    measured.add("second agent: until announced", time.monotonic() - begun)
    begun = time.monotonic()
    mistake.end()

    wait_allocatable(cluster, resource, GPUS)
    cluster.wait_for("no more announced", lambda: FOREIGN not in ours.problems())
    measured.add("second agent ended: until capacity is right", time.monotonic() - begun)
    run_pod(cluster, "new", {resource: 4})
    assert life(cluster, "old") == before
    assert gpu_nodes(cluster, "new") == set(range(GPUS)) - gpu_nodes(cluster, "old")


def test_rival_is_announced_and_outdone_and_our_devices_are_handed_out_again(
    cluster: Cluster, agents: Agents, gpus: Gpus, measured: Measured
) -> None:
    """Of two rivals, one stays until we have answered, the other leaves as soon as it is heard."""
    stays, leaves = "stays.test/gpu", "leaves.test/gpu"
    agent = agents.start(gpus.folder, offer(resource=stays))
    other = agents.start(Gpus(cluster, seed=1).folder, offer(resource=leaves), run="run2")
    agent.wait_offered(stays, GPUS)
    other.wait_offered(leaves, GPUS)
    with rival(cluster, stays, "r0", "r1"):
        wait_allocatable(cluster, stays, 2)
        with rival(cluster, leaves, "r0", "r1"):
            wait_allocatable(cluster, leaves, 2)
        begun = time.monotonic()

        noted: set[str] = set()  # neither stays for long, and not at the same time

        def both_noted() -> bool:
            noted.update(one.log.name for one in (agent, other) if FOREIGN in one.problems())
            return len(noted) == 2

        cluster.wait_for("both announced", both_noted)
        measured.add("rival: until announced", time.monotonic() - begun)
        for resource in (stays, leaves):
            wait_allocatable(cluster, resource, GPUS)
        measured.add("rival: until our list is in force", time.monotonic() - begun)
        run_pod(cluster, "beside", {stays: 1})
        assert VISIBLE in environment(cluster, "beside")

    run_pod(cluster, "after-one", {leaves: 1})
    run_pod(cluster, "after-other", {stays: 1})
    assert VISIBLE in environment(cluster, "after-one")
    assert VISIBLE in environment(cluster, "after-other")
    wait_allocatable(cluster, stays, GPUS)
