"""Kubelets and agents end and come back; pods with devices go on, and new ones get devices."""

import signal
import time
from collections.abc import Callable

import pytest

from tests.node.agents import PLUGINS, REGISTRY, Agents, NodeAgent, offer, sockets
from tests.node.cluster import Cluster
from tests.node.containers import (
    MORTAL,
    container,
    crash,
    environment,
    gpu_nodes,
    held,
    life,
    restarts,
    run_pod,
    wait_allocatable,
)
from tests.node.kubelet_log import ADMITTED, LISTED, KubeletLog
from tests.node.measured import Measured
from tests.node.objects import pod
from tests.node.simulated import GPUS, Gpus

ROUNDS = 10

WAYS = ("auto", "socket")
"""How the kubelet is to know the plugins; by both at once, as a restart concerns both."""


class Ways:
    """One agent for each way, with GPUs of its own and a name of its own for them."""

    def __init__(self, cluster: Cluster, agents: Agents, domain: str) -> None:
        self.resources = {way: f"{domain}.test/{way}" for way in WAYS}
        self.gpus = {way: Gpus(cluster, seed) for seed, way in enumerate(WAYS)}
        self._agents = agents
        self._running: dict[str, NodeAgent] = {}
        self.start()
        for way, agent in self._running.items():
            agent.wait_offered(self.resources[way], GPUS)

    def start(self) -> None:
        for way, resource in self.resources.items():
            terms, folder = offer(resource=resource), self.gpus[way].folder
            agent = self._agents.start(folder, terms, register=way, run=f"run-{way}")
            self._running[way] = agent

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        for agent in self._running.values():
            agent.end(number)


def restart_kubelet(cluster: Cluster, _: Ways) -> None:
    cluster.restart("kubelet")


def kill_kubelet(cluster: Cluster, _: Ways) -> None:
    cluster.kill_kubelet()
    cluster.start_kubelet()


def restart_agent(_: Cluster, ways: Ways) -> None:
    ways.end()
    ways.start()


def kill_agent(_: Cluster, ways: Ways) -> None:
    ways.end(signal.SIGKILL)
    ways.start()


@pytest.mark.parametrize("disturb", [restart_kubelet, kill_kubelet, restart_agent, kill_agent])
def test_pod_goes_on_and_the_next_one_gets_devices_after(
    cluster: Cluster,
    agents: Agents,
    measured: Measured,
    disturb: Callable[[Cluster, Ways], None],
) -> None:
    domain = disturb.__name__.replace("_", "-")
    ways = Ways(cluster, agents, domain)

    def seen(name: str) -> tuple[object, ...]:
        return life(cluster, name), held(cluster, name), environment(cluster, name)

    for way, resource in ways.resources.items():
        run_pod(cluster, f"old-{way}", {resource: 4})
    before = {way: seen(f"old-{way}") for way in WAYS}
    log = KubeletLog(cluster)

    begun = time.monotonic()
    disturb(cluster, ways)
    for way, resource in ways.resources.items():
        log.wait_for(LISTED, f'"{resource}"')
        words = f"{domain}, {way}: until the kubelet has the list"
        measured.add(words, time.monotonic() - begun)
    for way, resource in ways.resources.items():
        wait_allocatable(cluster, resource, GPUS)
        measured.add(f"{domain}, {way}: until all are allocatable", time.monotonic() - begun)
    for way, resource in ways.resources.items():
        run_pod(cluster, f"new-{way}", {resource: 4})

    assert {way: seen(f"old-{way}") for way in WAYS} == before
    for way in WAYS:
        free = set(range(GPUS)) - gpu_nodes(cluster, f"old-{way}")
        assert held(cluster, f"new-{way}") == dict.fromkeys(ways.gpus[way].ids(free), "Healthy")


def test_container_that_crashed_starts_again_with_the_same_devices(
    cluster: Cluster, agents: Agents, gpus: Gpus
) -> None:
    resource = "crash.test/gpu"
    agent = agents.start(gpus.folder, offer(resource=resource))
    wait_allocatable(cluster, resource, GPUS)
    cluster.apply(pod("mortal", limits={resource: 2}, command=MORTAL, restart="Always"))
    cluster.wait_for_phase("mortal", "Running")

    def everything() -> tuple[dict[str, str], dict[str, str], set[int]]:
        return (
            held(cluster, "mortal"),
            environment(cluster, "mortal"),
            gpu_nodes(cluster, "mortal"),
        )

    before = everything()

    crash(cluster, "mortal")
    assert everything() == before

    log = KubeletLog(cluster)
    cluster.restart("kubelet")  # which forgets how often it crashed, too
    log.wait_for(ADMITTED, "mortal")
    crash(cluster, "mortal")
    assert everything() == before

    agent.end()
    log = KubeletLog(cluster)
    agents.start(gpus.folder, offer(resource=resource))
    log.wait_for(LISTED, f'"{resource}"')
    cluster.restart("kubelet")
    log.wait_for(ADMITTED, "mortal")
    crash(cluster, "mortal")
    assert everything() == before


def wait_until_down(cluster: Cluster, name: str) -> None:
    """Wait until the pod's container does not run, as it does not for nearly all of the time."""
    cluster.wait_for(f"{name} down", lambda: "running" not in container(cluster, name)["state"])


def test_pods_in_crash_back_off_survive_kubelet_restarts(
    cluster: Cluster, agents: Agents, measured: Measured
) -> None:
    """The kubelet fails them for good unless their devices are listed before they are admitted."""
    ways = Ways(cluster, agents, "back-off")
    margins: dict[str, list[tuple[float, bool]]] = {way: [] for way in WAYS}
    for number in range(ROUNDS):
        names = {}
        for way, resource in ways.resources.items():
            lost = sum(not kept for _, kept in margins[way])
            names[way] = f"{way}-{lost}"  # another one after a loss
            if number == 0 or not margins[way][-1][1]:
                crashing = pod(
                    names[way], limits={resource: 1}, command=["false"], restart="Always"
                )
                cluster.apply(crashing)
        for name in names.values():
            wait_until_down(cluster, name)
        before = {name: restarts(cluster, name) for name in names.values()}
        log = KubeletLog(cluster)

        cluster.restart("kubelet")

        for way, name in names.items():
            listed = log.wait_for(LISTED, f'"{ways.resources[way]}"')
            admitted = log.wait_for(ADMITTED, name)
            kept = survives(cluster, name, before[name])
            margins[way].append((admitted.at_s - listed.at_s, kept))
            what = f"kubelet restart, {way}: list before admission by"
            measured.add(what, admitted.at_s - listed.at_s)

    lost_in = {way: [margin for margin, kept in margins[way] if not kept] for way in WAYS}
    assert lost_in["auto"] == []
    assert [margin for margin in lost_in["socket"] if margin > 0] == []
    assert len(lost_in["socket"]) <= 1


def survives(cluster: Cluster, name: str, restarted: int) -> bool:
    """Whether a pod that was started *restarted* times is started again, and not failed."""

    def decided() -> bool:
        return cluster.phase(name) == "Failed" or restarts(cluster, name) > restarted

    cluster.wait_for(f"{name} again or failed", decided)
    return cluster.phase(name) != "Failed"


@pytest.mark.parametrize("register, folder", [("watcher", REGISTRY), ("socket", PLUGINS)])
def test_agent_that_is_told_to_end_leaves_no_sockets_and_its_pods_go_on(
    cluster: Cluster, agents: Agents, gpus: Gpus, register: str, folder: str
) -> None:
    resource = f"end.test/{register}"
    others = sockets(cluster)
    agent = agents.start(gpus.folder, offer(resource=resource), register=register)
    wait_allocatable(cluster, resource, GPUS)
    run_pod(cluster, "user", {resource: 4})
    before = life(cluster, "user")
    assert {path.parent.name for path in sockets(cluster) - others} == {folder}

    status = agent.end()

    assert status == 0
    assert sockets(cluster) <= others
    assert [path for path in agent.run.rglob("*") if path.is_socket()] == []
    wait_allocatable(cluster, resource, 0, capacity=GPUS)
    assert life(cluster, "user") == before
    assert set(held(cluster, "user").values()) == {"Healthy"}
    assert cluster.exec_in_pod("user", "echo", "here") == "here\n"
