"""Agents and everything around them are killed while pods come and go, and nothing is lost."""

import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.node.agents import Agents, NodeAgent
from tests.node.claims import DRA, described, device_class, published, request
from tests.node.cluster import Cluster
from tests.node.measured import Measured
from tests.node.observer import Observer
from tests.node.simulated import Gpus
from tests.node.traffic import Traffic, lost_claims, make_templates

COUNT = 3
SHARED = 2
"""Minor number of the GPU that pods share."""
SHARES = 3
AT_ONCE = 5
PATIENCE_S = 60.0
ENDS = (
    ("nvmlDeviceSetMigMode", "a GPU is set to be cut"),
    ("nvmlGpuInstanceCreateComputeInstance", "half of a partition is made"),
    ("rename cdi", "a CDI file is there"),
    ("remove cdi", "a CDI file goes"),
    ("nvmlGpuInstanceDestroy", "a partition goes"),
    ("remove entry", "an entry goes"),
)
"""Effects before which an agent ends, and in words."""


class Disturbed:
    """A node with an agent and pods, on which things end.

    Args:
        cluster: The node.
        agents: Starts agents.
        gpus: Its machine.
        traffic: Goes on while somebody waits.
    """

    def __init__(self, cluster: Cluster, agents: Agents, gpus: Gpus, traffic: Traffic) -> None:
        self._cluster = cluster
        self._agents = agents
        self._gpus = gpus
        self._traffic = traffic
        self.agent = self.start()

    def start(self, before: str | None = None) -> NodeAgent:
        """Start an agent, which ends before an effect for a claim if it is told one."""
        shared = self._gpus.whole[SHARED]
        crashing = (sys.executable, "-m", "tests.node.crashing_agent", f"--before={before}")
        self.agent = self._agents.start(
            self._gpus.folder,
            {**DRA, "name": "shared", "select": {"name": [shared]}, "sharing": {"shares": SHARES}},
            DRA,
            dra={},
            program=None if before is None else crashing,
            partitioning=[{"select": {"name": list(self._gpus.whole[:SHARED])}, "how": "dynamic"}],
        )
        return self.agent

    def go_on(self, seconds: float) -> None:
        """Let pods come and go."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._traffic.step()
            # It ends by itself if it starts while etcd is away.
            self._cluster.start("kube-apiserver")

    def end_before(self, effect: str) -> float:
        """Let an agent end before an effect; returns how long that took, in seconds."""
        self.agent.end(signal.SIGKILL)
        begun = time.monotonic()
        agent = self.start(effect)
        while agent.runs:
            if time.monotonic() > begun + PATIENCE_S:
                raise AssertionError(f"no agent came to {effect!r}; see {agent.log}")
            self._traffic.step()
        assert f"ends before: {effect}" in agent.log.read_text()
        self.start()
        return time.monotonic() - begun


@pytest.fixture
def gpus(cluster: Cluster) -> Gpus:
    return Gpus(cluster, count=COUNT)


@pytest.fixture
def traffic(cluster: Cluster, agents: Agents) -> Iterator[Traffic]:  # noqa: ARG001 - ends before agents
    templates = {
        "whole": [request(profile="whole")],
        "small": [request(profile="1g.10gb")],
        "large": [request(profile="3g.40gb"), request("more", profile="1g.10gb")],
    }
    device_class(cluster)
    make_templates(cluster, templates)
    made = Traffic(cluster, list(templates), AT_ONCE)
    yield made
    made.end()
    cluster.kubectl("delete", "resourceclaimtemplates,deviceclasses,resourceslices", "--all")


def kill_agent(_: Cluster, node: Disturbed) -> None:
    node.agent.end(signal.SIGKILL)
    node.start()


def killed(program: str) -> Callable[[Cluster, Disturbed], None]:
    def kill(cluster: Cluster, _: Disturbed) -> None:
        cluster.processes.stop(program, signal.SIGKILL)
        cluster.restart(program)

    return kill


KILLS = {
    "agent": kill_agent,
    **{name: killed(name) for name in ("kubelet", "containerd", "kube-apiserver", "etcd")},
}


def test_nothing_is_lost_whatever_ends(
    cluster: Cluster, agents: Agents, gpus: Gpus, traffic: Traffic, measured: Measured
) -> None:
    with Observer(cluster, gpus, cluster.root / "run", {SHARED: SHARES}) as observer:
        node = Disturbed(cluster, agents, gpus, traffic)
        cluster.wait_for("slices", lambda: published(cluster) >= set(gpus.whole))
        begun = time.monotonic()
        for effect, words in ENDS:
            measured.add(f"until an agent ended before {words}", node.end_before(effect))
        for kill in KILLS.values():
            kill(cluster, node)
            node.go_on(4.0)
        traffic.settle()
        measured.add("slowest pod among killed programs: until it ran", traffic.slowest_s)
        missing = list(lost_claims(cluster, observer.entries()))
        traffic.end()
        measured.add(f"{len(ENDS) + len(KILLS)} kills", time.monotonic() - begun)

    made = ", ".join(f"{count} {what}" for what, count in sorted(traffic.counts.items()))
    measured.tell(f"kills: {made}; {observer.looks} looks, {observer.most} containers at most")
    assert list(observer.wrong) == []
    assert missing == []
    assert traffic.failed == {}
    assert len(traffic.ran) == traffic.made > len(ENDS) + len(KILLS)
    assert observer.entries() == {}
    assert described(cluster) == set()
    assert [gpus.parts(minor) for minor in range(COUNT)] == [[]] * COUNT
    assert list(cluster.root.glob("run/*/scratch/*")) == []
