"""GPUs cut by a policy or by a stranger, as Kubernetes sees them and as the machine is."""

import time

from tests.node.agents import Agents, offer
from tests.node.claims import allocated, claim, claiming, published, request
from tests.node.cluster import Cluster
from tests.node.commands import accelkit
from tests.node.containers import sight, wait_allocatable
from tests.node.measured import Measured
from tests.node.objects import Document, pod
from tests.node.releases import needs
from tests.node.serving import forget, run, serving, taints
from tests.node.simulated import Gpus

READ = {"inventory": "2s", "health": "2s", "holdings": "2s"}
LAYOUTS = {"small": {"1g.10gb": 7}, "mixed": {"3g.40gb": 1, "1g.10gb": 3}}
GPU, LARGE, SMALL = "nvidia.com/gpu", "nvidia.com/mig-3g.40gb", "nvidia.com/mig-1g.10gb"
MIXED = sorted([("3g.40gb", 4), ("1g.10gb", 0), ("1g.10gb", 1), ("1g.10gb", 2)])


def cutting(how: str, **terms: object) -> list[Document]:
    """How all GPUs are cut."""
    return [{"select": {"vendor": "nvidia"}, "how": how, **terms}]


@needs("DRAPartitionableDevices", "DRADeviceTaints")
def test_partition_of_a_stranger_is_kept_and_what_it_is_in_the_way_of_is_tainted(
    cluster: Cluster, measured: Measured
) -> None:
    gpus = Gpus(cluster, count=1)
    (whole,) = gpus.whole
    strange = f"{whole}-3g40gb-4"
    with serving(cluster, gpus, partitioning=cutting("dynamic"), read=READ) as agent:
        before = published(cluster)
        gpus.let("mig", "gpu-0", "on")
        begun = time.monotonic()
        gpus.let("create-mig", "gpu-0", "3g.40gb", "4")
        cluster.wait_for("taints", lambda: taints(cluster))
        measured.add(
            "a stranger cuts a GPU, read.inventory 2s: until it is tainted",
            time.monotonic() - begun,
        )

        tainted = taints(cluster)
        assert published(cluster) == before
        assert tainted[whole] == {"place-occupied": "NoSchedule"}
        assert tainted[f"{whole}-2g20gb-4"] == {"place-occupied": "NoSchedule"}
        assert not tainted.keys() & {strange, f"{whole}-3g40gb-0", f"{whole}-1g10gb-3"}

        claim(cluster, "large", request(profile="3g.40gb", count=2))
        run(cluster, claiming("user", "large"))
        assert strange in allocated(cluster, "large")
        forget(cluster)
        assert gpus.parts() == [("3g.40gb", 4)]

        gpus.let("hold", "gpu-0", "4711", "4")
        agent.adopt(partitioning=cutting("dynamic", foreign="destroy"))
        cluster.wait_for("told", lambda: "partitioning-waits" in agent.problems())
        assert gpus.parts() == [("3g.40gb", 4)]
        gpus.let("free", "gpu-0")
        applied = accelkit(cluster, "partition", "apply", f"--policy={agent.policy}")

        assert (applied.status, gpus.parts()) == (0, []), applied
        cluster.wait_for("no taints", lambda: not taints(cluster))
        claim(cluster, "whole", request(profile="whole"))
        run(cluster, claiming("user", "whole"))


def test_idle_gpus_are_cut_as_the_policy_says_and_pods_get_parts_by_name(
    cluster: Cluster, agents: Agents, measured: Measured
) -> None:
    """Whole; then each size under a name of its own; then all parts under the name of GPUs."""
    gpus = Gpus(cluster, count=2)
    agent = agents.start(gpus.folder, read=READ, layouts=LAYOUTS)
    agent.wait_offered(GPU, 2)
    run(cluster, pod("old", limits={GPU: 1}))
    (held,) = sight(cluster, "old").nodes
    (busy,) = (minor for minor in range(2) if held == f"nvidia{minor}")

    begun = time.monotonic()
    agent.adopt(partitioning=cutting("layout", layout="mixed"))
    wait_allocatable(cluster, LARGE, 1)
    wait_allocatable(cluster, SMALL, 3)
    measured.add(
        "a policy cuts an idle GPU: until the node has its parts", time.monotonic() - begun
    )
    assert (gpus.parts(1 - busy), gpus.parts(busy)) == (MIXED, [])
    run(cluster, pod("part", limits={LARGE: 1}), pod("parts", limits={SMALL: 2}))
    assert len(sight(cluster, "part").nodes) == 1 + 2
    assert len(sight(cluster, "parts").nodes) == 1 + 2 * 2

    cluster.kubectl("delete", "pod", "old", "--wait")
    wait_allocatable(cluster, SMALL, 6)
    assert gpus.parts(busy) == MIXED

    cluster.remove_pods()
    agent.adopt(partitioning=cutting("layout", layout="small"), offers=[offer(resource=GPU)])
    wait_allocatable(cluster, GPU, 14)
    run(cluster, pod("single", limits={GPU: 3}))
    assert len([name for name in sight(cluster, "single").nodes if "cap" in name]) == 3 * 2
