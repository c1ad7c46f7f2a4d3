"""Agents and everything around them are killed while pods come and go, and nothing is lost."""

import time
from collections.abc import Iterator

import pytest

from tests.node.agents import Agents
from tests.node.claims import device_class, published
from tests.node.cluster import Cluster
from tests.node.disturbed import (
    CUTS,
    PROGRAMS,
    RUN,
    SHARED,
    SHARES,
    Disturbed,
    machine,
    make_templates,
)
from tests.node.measured import Measured
from tests.node.observer import Observer
from tests.node.simulated import Gpus
from tests.node.traffic import Traffic

AT_ONCE = 6
REST_S = 3.0
EVERYWHERE = {"run nvidia-smi", "rename cdi", "remove cdi", "remove scratch", "remove entry"}
"""Where nothing is cut, too."""
ENDS = (
    ("nvmlDeviceSetMigMode", "a GPU is set to be cut"),
    ("nvmlGpuInstanceCreateComputeInstance", "half of a partition is made"),
    ("run nvidia-smi", "a time slice is set, or set back"),
    ("rename cdi", "a CDI file is there"),
    ("remove cdi", "a CDI file goes"),
    ("nvmlGpuInstanceDestroy", "a partition goes"),
    ("remove scratch", "a scratch directory goes"),
    ("remove entry", "an entry goes"),
)
"""Effects before which an agent ends, and in words."""


@pytest.fixture
def gpus(cluster: Cluster) -> Gpus:
    return machine(cluster)


@pytest.fixture
def traffic(cluster: Cluster, agents: Agents) -> Iterator[Traffic]:  # noqa: ARG001 - ends before agents
    device_class(cluster)
    made = Traffic(cluster, make_templates(cluster), AT_ONCE, hurry=True)
    yield made
    made.end()
    cluster.kubectl("delete", "resourceclaimtemplates,deviceclasses,resourceslices", "--all")


def test_nothing_is_lost_whatever_ends(
    cluster: Cluster, agents: Agents, gpus: Gpus, traffic: Traffic, measured: Measured
) -> None:
    ends = [(effect, words) for effect, words in ENDS if CUTS or effect in EVERYWHERE]
    kills = len(ends) + 1 + len(PROGRAMS)
    with Observer(cluster, gpus, cluster.root / RUN, {SHARED: SHARES}) as observer:
        node = Disturbed(cluster, agents, gpus, traffic, observer)
        cluster.wait_for("slices", lambda: published(cluster) >= set(gpus.whole))
        begun = time.monotonic()
        for effect, words in ends:
            since = time.monotonic()
            node.end_before(effect)
            measured.add(f"until an agent ended before {words}", time.monotonic() - since)
            node.go_on(0)
        node.kill_agent()
        for program in PROGRAMS:
            node.kill(program)
            node.go_on(REST_S)
        traffic.settle()
        node.go_on(0)
        traffic.end()
        node.wait_undone()
        measured.add(f"{kills} kills", time.monotonic() - begun)

    made = ", ".join(f"{count} {what}" for what, count in sorted(traffic.counts.items()))
    measured.tell(f"{kills} kills: {made}; {observer}")
    measured.add("slowest pod among kills: until it ran", traffic.slowest_s)
    assert list(observer.wrong) == []
    assert list(node.lost) == []
    assert traffic.failed == {}
    assert len(traffic.ran) == traffic.made > kills
