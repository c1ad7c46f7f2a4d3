"""What goes wrong with devices and vendors, as Kubernetes tells it."""

import time

from accelkit.testing.simulate import set_state, simulate
from tests.node.agents import Agents, offer
from tests.node.cluster import Cluster
from tests.node.containers import environment, gpu_nodes, held, life, run_pod, wait_allocatable
from tests.node.kubelet_log import KubeletLog
from tests.node.measured import Measured
from tests.node.objects import pod
from tests.node.simulated import GPUS, Gpus

SIM_SET = "simset.accelkit.dev/accel"
GPU = "nvidia.com/gpu"


def test_lost_gpu_is_unhealthy_in_node_and_pod_until_it_is_back(
    cluster: Cluster, agents: Agents, gpus: Gpus, measured: Measured
) -> None:
    resource = "health.test/gpu"
    agents.start(gpus.folder, offer(resource=resource))
    wait_allocatable(cluster, resource, GPUS)
    run_pod(cluster, "user", {resource: GPUS})
    before = life(cluster, "user")
    (lost,) = gpus.ids({2})
    good = dict.fromkeys(gpus.ids(set(range(GPUS))), "Healthy")
    assert held(cluster, "user") == good

    begun = time.monotonic()
    set_state(str(gpus.folder), ["lose", "gpu-2"])

    cluster.wait_for("Unhealthy in the pod", lambda: held(cluster, "user")[lost] == "Unhealthy")
    measured.add(
        "GPU lost, read.health 2s: until the pod's status says so", time.monotonic() - begun
    )
    wait_allocatable(cluster, resource, GPUS - 1, capacity=GPUS)
    assert held(cluster, "user") == {**good, lost: "Unhealthy"}

    begun = time.monotonic()
    set_state(str(gpus.folder), ["restore", "gpu-2"])

    cluster.wait_for("Healthy in the pod", lambda: held(cluster, "user") == good)
    measured.add(
        "GPU back, read.health 2s: until the pod's status says so", time.monotonic() - begun
    )
    wait_allocatable(cluster, resource, GPUS)
    assert life(cluster, "user") == before


def test_vendor_that_hangs_in_allocate_keeps_no_other_pod_waiting(
    cluster: Cluster, agents: Agents, gpus: Gpus
) -> None:
    """A kubelet whose Allocate is not answered starts and ends no pod at all."""
    simulate("simset", "ring", 4, str(gpus.folder), device_nodes=True)
    agent = agents.start(gpus.folder)
    agent.wait_offered(SIM_SET, 4)
    agent.wait_offered(GPU, GPUS)
    log = KubeletLog(cluster)
    set_state(str(gpus.folder), ["hang", "simset", "edits", "10m"])

    cluster.apply(pod("hangs", limits={SIM_SET: 2}))
    log.wait_for('"SyncLoop ADD"', "default/hangs")
    cluster.apply(pod("other", limits={GPU: 2}))
    cluster.apply(pod("plain"))

    # all of this happens while the call hangs, which only "calm" below ends
    cluster.wait_for_phase("other", "Running")
    cluster.wait_for_phase("plain", "Running")
    cluster.wait_for_phase("hangs", "Failed")
    status = cluster.pod("hangs")["status"]
    assert len(gpu_nodes(cluster, "other")) == 2
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "simset" in status["message"]

    set_state(str(gpus.folder), ["calm", "simset", "edits"])

    run_pod(cluster, "after", {GPU: 1})
    cluster.wait_for("devices of the vendor again", lambda: _gets_set(cluster))


def _gets_set(cluster: Cluster) -> bool:
    """Whether a pod gets two of them now; one that was refused stays so."""
    cluster.kubectl("delete", "pod", "set", "--ignore-not-found", "--grace-period=1")
    cluster.apply(pod("set", limits={SIM_SET: 2}))
    cluster.wait_for("set decided", lambda: cluster.phase("set") in {"Running", "Failed"})
    if cluster.phase("set") != "Running":
        return False
    seen = environment(cluster, "set")
    return seen["SIM_SET_SIZE"] == "2" and set(seen["SIM_SET"].split(",")) == set(
        held(cluster, "set")
    )
