from tests.node.cluster import Cluster
from tests.node.objects import pod


def test_node_is_ready_and_runs_a_pod_that_can_be_entered(cluster: Cluster) -> None:
    cluster.apply(pod("smoke"))
    cluster.wait_for_phase("smoke", "Running")

    assert cluster.node().ready
    assert cluster.exec_in_pod("smoke", "echo", "here").strip() == "here"


def test_kubelet_that_was_killed_finds_its_pods_again(cluster: Cluster) -> None:
    cluster.apply(pod("survivor"))
    cluster.wait_for_phase("survivor", "Running")
    cluster.kill_kubelet()
    assert not cluster.processes.running("kubelet")
    cluster.start_kubelet()

    heard = cluster.wait_for("exec", lambda: cluster.exec_in_pod("survivor", "echo", "still here"))

    assert heard.strip() == "still here"
    assert cluster.phase("survivor") == "Running"


def test_process_in_the_node_sees_the_folders_of_its_kubelet(cluster: Cluster) -> None:
    listing = cluster.run_in_namespace(
        ["ls", "/var/lib/kubelet/device-plugins"], log="listing"
    ).wait(timeout=20)

    assert listing == 0
    assert "kubelet.sock" in (cluster.root / "listing.log").read_text().split()
    assert (cluster.kubelet_root / "device-plugins" / "kubelet.sock").is_socket()
