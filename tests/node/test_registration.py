"""Both ways to become known to the kubelet, and machines that have nothing to offer yet."""

from pathlib import Path

import pytest

from accelkit.testing.simulate import set_state
from tests.node.agents import PLUGINS, REGISTRY, Agents, offer, sockets
from tests.node.cluster import Cluster
from tests.node.containers import gpu_nodes, run_pod, wait_allocatable
from tests.node.kubelet_log import LISTED, KubeletLog
from tests.node.measured import Measured
from tests.node.simulated import GPUS, Gpus

ASKED = {"watcher": '"Registering plugin at endpoint"', "socket": '"Got registration request'}
"""Source: Kubernetes 1.37, pkg/kubelet/cm/devicemanager/plugin/v1beta1/{handler,server}.go."""


@pytest.mark.parametrize(
    "register, folder", [("watcher", REGISTRY), ("socket", PLUGINS), ("auto", REGISTRY)]
)
def test_kubelet_comes_to_know_the_plugin_in_the_way_that_the_policy_says(
    cluster: Cluster,
    agents: Agents,
    gpus: Gpus,
    measured: Measured,
    register: str,
    folder: str,
) -> None:
    resource = f"register.test/{register}"
    others = sockets(cluster)
    log = KubeletLog(cluster)

    agents.start(gpus.folder, offer(resource=resource), register=register)
    listed = log.wait_for(LISTED, f'"{resource}"')
    measured.add(
        f"registered by {register}: until allocatable", wait_allocatable(cluster, resource, GPUS)
    )

    asked = list(log.lines(ASKED["socket" if register == "socket" else "watcher"], resource))
    (socket,) = sockets(cluster) - others  # so that of its hidden name is gone
    assert len(asked) == 1
    assert asked[0].at_s <= listed.at_s
    assert "resourceCapacity=8" in listed.text
    assert socket.parent.name == folder
    assert not socket.name.startswith(".")
    assert socket.stat().st_mode & 0o777 == 0o600
    assert list(log.lines("RegisterPlugin", f"{folder}/.")) == []


def test_agent_that_starts_before_its_driver_offers_what_comes_with_it(
    cluster: Cluster, agents: Agents, gpus: Gpus, measured: Measured
) -> None:
    set_state(str(gpus.folder), ["unload"])
    others = sockets(cluster)
    agent = agents.start(gpus.folder, offer(resource="late.test/{kind}"))
    agent.wait_until_ready()
    assert sockets(cluster) <= others
    assert "late.test/gpu" not in cluster.node().capacity

    set_state(str(gpus.folder), ["load"])

    measured.add(
        "driver loaded: until allocatable", wait_allocatable(cluster, "late.test/gpu", GPUS)
    )
    run_pod(cluster, "user", {"late.test/gpu": GPUS})
    assert gpu_nodes(cluster, "user") == set(range(GPUS))


def test_agent_on_a_node_without_accelerators_is_ready_and_registers_nothing(
    cluster: Cluster, agents: Agents
) -> None:
    before = set(cluster.node().capacity)
    others = sockets(cluster)
    log = KubeletLog(cluster)
    agent = agents.start(Path("/"))

    agent.wait_until_ready()

    assert sockets(cluster) <= others
    assert [line for words in ASKED.values() for line in log.lines(words)] == []
    assert set(cluster.node().capacity) == before
    assert agent.end() == 0
