"""Two real nodes with claims in use on which nothing changes: their agents write nothing."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

import attrs

from benchmarks.soak_nodes import nodes
from benchmarks.usage import growth, usage
from tests.node.agents import Agents, NodeAgent
from tests.node.audited import Audited
from tests.node.claims import DRA, claim, claiming, device_class, published
from tests.node.cluster import Cluster
from tests.node.simulated import GPUS, Gpus

SETTLE_S = 20.0
"""After which an agent has written what it has to, events too."""
LOOK_S = 10.0


@attrs.frozen
class Still:
    """A node, its agent, and as whom that asks."""

    cluster: Cluster
    agent: NodeAgent
    user: Audited

    def versions(self) -> set[str]:
        found = self.cluster.api("/apis/resource.k8s.io/v1/resourceslices")["items"]
        mine = (one for one in found if one["spec"]["nodeName"] == self.cluster.name)
        return {one["metadata"]["resourceVersion"] for one in mine}


def run(seconds: float) -> tuple[Sequence[str], Sequence[str]]:
    """Run for so long; what was asked, and what was wrong."""
    with nodes(2) as clusters, ExitStack() as end:
        device_class(clusters[0])
        stills = [_started(one, seed, end) for seed, one in enumerate(clusters)]
        time.sleep(SETTLE_S)
        before = [one.versions() for one in stills]
        looks = [[usage(one.agent.pid)] for one in stills]
        for one in stills:
            one.user.forget()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(LOOK_S, seconds))
            for one, seen in zip(stills, looks, strict=True):
                seen.append(usage(one.agent.pid))
        lines: list[str] = []
        wrong: list[str] = []
        for one, seen, versions in zip(stills, looks, before, strict=True):
            asked = list(one.user.asked())
            writes = [ask for ask in asked if ask.writes]
            counted = Counter(f"{ask.verb} {ask.resource}" for ask in asked)
            name = one.cluster.name
            lines.append(f"{name}: {dict(counted)}; {seen[0]} at first, {seen[-1]} at last")
            wrong += [f"{name}: {ask.verb} {ask.resource} {ask.name}" for ask in writes]
            wrong += [f"{name}: {text}" for text in growth(seen)]
            if one.versions() != versions:
                wrong.append(f"{name}: its slices are others")
        return lines, wrong


def _started(cluster: Cluster, seed: int, end: ExitStack) -> Still:
    """An agent on a node, and pods that have half of its GPUs."""
    gpus = Gpus(cluster, seed)
    user = Audited(cluster, f"agent-of-{cluster.name}")
    agents = Agents(cluster)
    end.callback(agents.end)
    kube = {"config": str(user.kubeconfig)}
    agent = agents.start(gpus.folder, DRA, dra={}, kube=kube, read={"reconcile": "1m"})
    cluster.wait_for("slices", lambda: published(cluster) == set(gpus.whole))
    for number in range(GPUS // 2):
        name = f"user-{number}-{cluster.name}"
        claim(cluster, name)
        made = claiming(name, name)
        made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": cluster.name}
        cluster.apply(made)
        cluster.wait_for_phase(name, "Running")
    return Still(cluster, agent, user)
