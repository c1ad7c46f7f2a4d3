"""Devices of three makers on one node, some in claims, some by their resource's name.

What the hardware, the library or the plugin of one maker does wrong is nothing to the others.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Protocol

import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from accelkit.testing.faults import Fault
from accelkit.vendors.amd.facts import KFD
from tests.node.agents import NodeAgent
from tests.node.claims import DRA, allocated, claim, claiming, device_class, published, request
from tests.node.cluster import Cluster
from tests.node.containers import MORTAL, held, life, wait_allocatable
from tests.node.kubelet_log import LISTED, KubeletLog
from tests.node.makers import (
    AMD,
    COUNT,
    DRIVERS,
    NVIDIA,
    OFTEN,
    RESOURCES,
    TPU,
    Makers,
    others,
    own_nodes,
)
from tests.node.measured import Measured
from tests.node.objects import Document, pod
from tests.node.serving import forget, run, serving_from, slices

HALF = COUNT // 2
"""Of each maker: so many in claims, as many by the resource's name."""
CLAIMED: Document = {**DRA, "name": "claims", "select": {"pci": ["*3:00.0"]}}
NAMED: Document = {"name": "names", "select": {}, "through": "kubelet"}
VARIABLES: Mapping[str, str] = {NVIDIA: "NVIDIA_VISIBLE_DEVICES", TPU: "TPU_VISIBLE_CHIPS"}
"""What only containers with devices of a maker have; those of AMD need none."""
LYING = (sys.executable, "-m", "tests.node.lying_agent")


class Ask(Protocol):
    """Makes a pod with a device of each of some makers."""

    def __call__(self, cluster: Cluster, name: str, /, *makers: str) -> Document: ...


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Makers:
    return Makers(whole_run_cluster)


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Makers) -> Iterator[NodeAgent]:
    """One for all; code that calls libraries has processes of its own, as on real hosts."""
    cluster = whole_run_cluster
    for maker, driver in DRIVERS.items():
        device_class(cluster, driver, maker)
    with serving_from(
        cluster,
        machine.folder,
        dict.fromkeys(DRIVERS.values(), HALF),
        *(CLAIMED, NAMED),
        program=LYING,
        vendors=[
            {"name": NVIDIA, "isolation": "process"},  # it listens for longer than it may take
            {"name": AMD, "isolation": "process", "deadlineScale": 0.3},
            {"name": TPU},
        ],
        read=dict.fromkeys(("inventory", "health", "holdings"), "2s"),
        health={"recoverAfter": "1s"},
    ) as found:
        for resource in RESOURCES.values():
            wait_allocatable(cluster, resource, HALF)
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent, machine: Makers) -> Iterator[None]:
    yield
    machine.mend()
    forget(cluster)
    problems = partial(metrics, agent, "accelkit_problems")
    cluster.wait_for("all well", lambda: not RESOURCES.keys() & {who for who, _ in problems()}, 120)


def by_claim(cluster: Cluster, name: str, *makers: str) -> Document:
    """A pod with a device of each of *makers* from a claim of its own."""
    claim(cluster, name, *(request(maker, of=maker) for maker in makers))
    return claiming(name, name)


def by_name(_cluster: Cluster, name: str, *makers: str) -> Document:
    """A pod with a device of each of *makers* by the names of resources."""
    return pod(name, limits={RESOURCES[maker]: 1 for maker in makers}, command=MORTAL)


def metrics(agent: NodeAgent, name: str) -> dict[tuple[str, ...], float]:
    """A metric by the values of its labels."""
    families = text_string_to_metric_families(agent.ask("/metrics")[1])
    samples = [one for family in families for one in family.samples if one.name == name]
    return {tuple(one.labels.values()): one.value for one in samples}


@pytest.mark.parametrize("ask", [by_claim, by_name])
def test_pods_with_devices_of_three_makers_run_side_by_side_and_each_sees_its_own(
    cluster: Cluster, machine: Makers, ask: Ask
) -> None:
    has = {**{maker: (maker,) for maker in RESOURCES}, "all": tuple(RESOURCES)}
    run(cluster, *(ask(cluster, name, *makers) for name, makers in has.items()))

    given = {
        name: allocated(cluster, name) if ask is by_claim else list(held(cluster, name))
        for name in has
    }
    seen = {name: own_nodes(cluster, name) for name in has}
    assert sorted(len(devices) for devices in given.values()) == [1, 1, 1, 3]
    assert len({one for devices in given.values() for one in devices}) == HALF * len(RESOURCES)
    for name, (nodes, variables) in seen.items():
        assert nodes == {machine.nodes[device] for device in given[name]}
        told = {maker for maker, variable in VARIABLES.items() if variable in variables}
        assert told == VARIABLES.keys() & {*has[name]}


@attrs.frozen
class Wrong:
    """What is wrong with one maker's devices, and how the agent tells."""

    maker: str
    fault: Fault | None
    lie: str
    code: str
    """Of its problem."""
    counted: tuple[str, ...] = ()
    """A metric and the values of its labels: what is not 0 then."""


WRONG = {
    "library hangs": Wrong(
        NVIDIA,
        Fault(call="nvmlDeviceGetCount_v2", times=OFTEN, do="hang 10m"),
        "",
        "source-timeout",
        ("accelkit_worker_restarts_total", NVIDIA, "deadline"),
    ),
    "library crashes": Wrong(
        NVIDIA,
        Fault(call="nvmlDeviceGetCount_v2", times=OFTEN, do="crash"),
        "",
        "worker-died",
        ("accelkit_worker_restarts_total", NVIDIA, "crash"),
    ),
    "files hang": Wrong(
        AMD,
        Fault(read=f"{KFD}/topology/nodes/*/properties", times=OFTEN, do="hang 10m"),
        "",
        "source-timeout",
        ("accelkit_worker_restarts_total", AMD, "deadline"),
    ),
    "no device": Wrong(TPU, None, "no device", "plugin-bug"),
    "twice": Wrong(TPU, None, "twice", "plugin-bug"),
}


@attrs.frozen
class Calm:
    """What must not change of the makers whom nothing is wrong with."""

    slices: Mapping[str, str]
    """Version of each slice, by its name."""
    writes: Mapping[tuple[str, ...], float]
    nodes: Mapping[str, int]
    """Of each resource, how much the node has."""

    @classmethod
    def of(cls, cluster: Cluster, agent: NodeAgent, makers: list[str]) -> "Calm":
        written = metrics(agent, "accelkit_slice_writes_total")
        drivers = [DRIVERS[maker] for maker in makers]
        items = [one["metadata"] for driver in drivers for one in slices(cluster, driver)]
        amounts = cluster.node().allocatable
        return cls(
            slices={one["name"]: one["resourceVersion"] for one in items},
            writes={key: count for key, count in written.items() if {*key} & {*drivers}},
            nodes={RESOURCES[maker]: int(amounts[RESOURCES[maker]]) for maker in makers},
        )


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_one_maker_is_nothing_to_pods_and_lists_of_others(
    cluster: Cluster, agent: NodeAgent, machine: Makers, measured: Measured, what: str
) -> None:
    wrong = WRONG[what]
    well = others(wrong.maker)
    run(cluster, by_claim(cluster, "old", *RESOURCES))
    before, old = Calm.of(cluster, agent, well), life(cluster, "old")
    listed = KubeletLog(cluster)

    begun = time.monotonic()
    if wrong.fault is not None:
        machine.fail(wrong.fault)
    machine.lie(wrong.lie)

    def told() -> bool:
        known = metrics(agent, wrong.counted[0]).get(wrong.counted[1:]) if wrong.counted else True
        return bool(known) and (wrong.maker, wrong.code) in metrics(agent, "accelkit_problems")

    cluster.wait_for("told", told)
    measured.add(f"{what}: until it is told", time.monotonic() - begun)
    run(cluster, by_claim(cluster, "claims", *well), by_name(cluster, "names", *well))

    assert {machine.nodes[one] for one in allocated(cluster, "claims")} == own_nodes(
        cluster, "claims"
    )[0]
    assert {machine.nodes[one] for one in held(cluster, "names")} == own_nodes(cluster, "names")[0]
    assert Calm.of(cluster, agent, well) == before
    for maker in well:
        assert list(listed.lines(LISTED, f'"{RESOURCES[maker]}"')) == []
    assert len(published(cluster, DRIVERS[wrong.maker])) == HALF

    begun = time.monotonic()
    machine.mend()
    cluster.apply(by_claim(cluster, "claim", wrong.maker))
    cluster.apply(by_name(cluster, "name", wrong.maker))
    for name in ("claim", "name"):
        cluster.wait_for_phase(name, "Running", patience=90)
    measured.add(f"{what}: until its maker's pods run again", time.monotonic() - begun)
    cluster.wait_for("no more told", lambda: not told())
    assert life(cluster, "old") == old
    assert Calm.of(cluster, agent, well) == before
