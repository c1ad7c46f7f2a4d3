"""A node is rebooted under pods that have claims."""

import json
import re
import signal
import time
from pathlib import Path
from shutil import rmtree

import pytest

from tests.node.agents import Agents, NodeAgent
from tests.node.claims import (
    DRA,
    DRIVER,
    allocated,
    claim,
    claiming,
    described,
    device_class,
    published,
    request,
    uid,
)
from tests.node.cluster import Cluster
from tests.node.containers import container, gpu_nodes, sight
from tests.node.measured import Measured
from tests.node.objects import Document
from tests.node.releases import has
from tests.node.serving import forget, run
from tests.node.simulated import Gpus

COUNT = 3
CUTS = has("DRAPartitionableDevices")
PROFILES = {
    "whole": "whole",
    "part": "3g.40gb" if CUTS else "whole",
    "over": "2g.20gb" if CUTS else "whole",
}


@pytest.fixture
def gpus(cluster: Cluster) -> Gpus:
    return Gpus(cluster, count=COUNT)


def start(agents: Agents, gpus: Gpus) -> NodeAgent:
    cut = {"select": {"vendor": "nvidia"}, "how": "dynamic"}
    return agents.start(gpus.folder, DRA, dra={}, partitioning=[cut])


def user(name: str, claim: str, restart: str) -> Document:
    """A pod that calls its claim otherwise.

    Else a kubelet of 1.34 that tells health in the status of pods lists devices twice there when
    they are prepared again, and the API server refuses the whole status.
    """
    made = claiming(name, claim, restart=restart)
    made["spec"]["resourceClaims"][0]["name"] = "mine"
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "mine"}]}
    return made


def parts(gpus: Gpus) -> list[tuple[str, int]]:
    """Profile and first slot of every partition."""
    return [part for minor in range(COUNT) for part in gpus.parts(minor)]


def ready(run: Path) -> set[str]:
    """Uids of claims that are on record as ready."""
    entries = {path.stem: json.loads(path.read_bytes()) for path in run.glob("*/claims/*.json")}
    return {uid for uid, entry in entries.items() if entry["state"] == "ready"}


def prepared(agent: NodeAgent) -> set[str]:
    """Uids of claims that this agent has prepared."""
    return set(re.findall(r"claim prepared.*?claim=([0-9a-f-]+)", agent.log.read_text()))


def restarted(cluster: Cluster, *pods: str) -> bool:
    """Whether the containers of all these pods run, and not for the first time."""
    found = [container(cluster, pod) for pod in pods]
    return all(one["restartCount"] > 0 and "running" in one["state"] for one in found)


def test_claims_of_pods_that_run_again_after_a_reboot_are_prepared_anew(
    cluster: Cluster, agents: Agents, gpus: Gpus, measured: Measured
) -> None:
    """Those of pods that do not are only given back; partitions are in their old places."""
    device_class(cluster)
    agent = start(agents, gpus)
    cluster.wait_for("slices", lambda: published(cluster) >= set(gpus.whole))
    for name, profile in PROFILES.items():
        claim(cluster, name, request(profile=profile))
    run(
        cluster,
        user("worker", "whole", restart="Always"),
        user("server", "part", restart="Always"),
        user("job", "over", restart="Never"),
    )
    kept = {uid(cluster, name) for name in ("whole", "part")}
    devices = {name: allocated(cluster, name) for name in ("whole", "part")}
    places = [part for part in parts(gpus) if part[0] == PROFILES["part"]]
    assert len(ready(agent.run)) == 3

    agent.end(signal.SIGKILL)
    cluster.kill_kubelet()  # or it would start containers while all of this happens
    rmtree(agent.run)
    gpus.let("reboot")
    assert parts(gpus) == []
    begun = time.monotonic()
    cluster.reboot()
    agent = start(agents, gpus)

    cluster.wait_for("both again", lambda: restarted(cluster, "worker", "server"))
    measured.add("reboot: until both pods with claims run again", time.monotonic() - begun)
    cluster.wait_for("the third is given back", lambda: ready(agent.run) == kept)
    cluster.wait_for_phase("job", "Failed")
    assert parts(gpus) == places
    assert {name: allocated(cluster, name) for name in devices} == devices
    assert described(cluster) == {f"{DRIVER}-claim_{one}.json" for one in kept}
    assert len(gpu_nodes(cluster, "worker")) == 1
    caps = [node for node in sight(cluster, "server").nodes if "cap" in node]
    assert len(caps) == 2 * len(places)
    assert gpu_nodes(cluster, "worker") != gpu_nodes(cluster, "server")
    assert prepared(agent) == kept

    forget(cluster)
    assert (ready(agent.run), described(cluster), parts(gpus)) == (set(), set(), [])
    cluster.kubectl("delete", "resourceslices,deviceclasses", "--all", "--wait=false")
