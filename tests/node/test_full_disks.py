"""No room for what is written of claims: it is told, and nothing that was prepared suffers."""

from collections.abc import Iterator

import pytest

from tests.node.agents import NodeAgent
from tests.node.claims import claim, claiming, said
from tests.node.cluster import Cluster
from tests.node.containers import crash, gpu_nodes
from tests.node.serving import forget, run, serving
from tests.node.simulated import Gpus

RUN = "run-small"
CDI = "/var/run/cdi"
REFUSED = "FailedPrepareDynamicResources"


def on_node(cluster: Cluster, *argv: str) -> int:
    """Run a command where the node's programs see files; returns its status."""
    return cluster.run_in_namespace(argv, log="commands").wait(timeout=20)


@pytest.fixture(scope="module")
def folders(whole_run_cluster: Cluster) -> Iterator[dict[str, str]]:
    """Both are file systems of their own, which hold little."""
    cluster = whole_run_cluster
    found = {"record": str(cluster.root / RUN), "descriptions": CDI}
    (cluster.root / RUN).mkdir()
    for folder in found.values():
        assert on_node(cluster, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder) == 0
    cluster.restart("containerd")  # it watches the folder that was there
    try:
        yield found
    finally:
        for folder in found.values():
            assert on_node(cluster, "umount", folder) == 0
        cluster.restart("containerd")


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, folders: dict[str, str]) -> Iterator[NodeAgent]:  # noqa: ARG001 - it writes there
    with serving(whole_run_cluster, Gpus(whole_run_cluster, count=2), run=RUN) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    forget(cluster)


@pytest.mark.parametrize("name", ["record", "descriptions"])
def test_claim_waits_for_room_and_prepared_ones_go_on(
    cluster: Cluster, folders: dict[str, str], name: str
) -> None:
    filler = f"{folders[name]}/filler"
    for one in ("old", "new"):
        claim(cluster, one)
    run(cluster, claiming("old", "old", restart="Always"))
    assert on_node(cluster, "dd", "if=/dev/zero", f"of={filler}", "bs=4k") != 0  # until it is full

    cluster.apply(claiming("new", "new"))

    text = cluster.wait_for("an event", lambda: said(cluster, "new", REFUSED))
    assert "there is no space left" in text
    assert "make room on the file system" in text
    crash(cluster, "old")
    assert len(gpu_nodes(cluster, "old")) == 1
    cluster.kubectl("delete", "pod", "old", "--wait")

    assert on_node(cluster, "rm", filler) == 0
    cluster.kubectl("label", "pod", "new", "again=now")  # or the kubelet waits for a minute

    cluster.wait_for_phase("new", "Running")
