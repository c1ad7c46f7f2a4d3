from tests.node.cluster import Cluster
from tests.node.objects import pod


def test_node_is_ready_and_runs_a_pod_that_can_be_entered(cluster: Cluster) -> None:
    cluster.apply(pod("smoke"))
    cluster.wait_for_phase("smoke", "Running")

    assert cluster.node().ready
    assert cluster.exec_in_pod("smoke", "echo", "here").strip() == "here"
