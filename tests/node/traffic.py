"""Pods with claims that come and go, and whether each ran. Not here: what disturbs them."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

import attrs

from tests.node.claims import claiming, described, from_template
from tests.node.cluster import Cluster
from tests.node.objects import Document
from tests.node.processes import NodeError

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
HURRY_S = 3.0
PACE_S = 1 / 3
"""Faster, and the API server refuses the kubelet claims that it does not know to be its own."""


@attrs.define
class Traffic:
    """Makes pods of templates, and deletes those that ran.

    Args:
        cluster: Its only pods in the default namespace are these.
        templates: Names of templates of claims; a pod has a claim of one of them.
        most: Pods at once.
        force: Part of the pods that are deleted by force, while their containers run.
        hurry: Change pods that wait, or do not end, every few seconds: the kubelet tries again then
            what has failed, and would else after 10 to 15 s.
        rng: Chooses.
    """

    cluster: Cluster
    templates: Sequence[str]
    most: int
    force: float = 0.2
    hurry: bool = False
    rng: random.Random = attrs.Factory(lambda: random.Random(0))
    made: int = 0
    ran: set[str] = attrs.Factory(set)
    """Names of pods that were seen running."""
    failed: dict[str, str] = attrs.Factory(dict)
    """What the status of pods says that ended by themselves."""
    slowest_s: float = 0.0
    """Longest time from a pod's making until it was seen running."""
    counts: Counter[str] = attrs.Factory(Counter)
    """Pods by template."""
    _born: dict[str, float] = attrs.Factory(dict)
    """When each pod was made."""
    _next: float = 0.0
    _hurried: float = 0.0

    def step(self) -> None:
        """Make a pod, or delete one that runs; returns when it is time for the next step.

        An API server that is away is waited for.
        """
        time.sleep(max(0.0, self._next - time.monotonic()))
        self._next = time.monotonic() + PACE_S
        try:
            living = self._look()
            running = [name for name in living if name in self.ran]
            if len(living) < self.most and (not running or self.rng.random() < 0.6):
                self._make()
            elif running:
                self._end(self.rng.choice(running))
        except (NodeError, OSError):
            self.counts["steps without an API server"] += 1

    def _make(self) -> None:
        template = self.rng.choice(self.templates)
        name = f"{template}-{self.made}"
        # what the end of a runtime keeps from starting is started again
        pod = from_template(claiming(name, template, restart="Always"))
        pod["spec"]["automountServiceAccountToken"] = False
        self.made += 1
        self._born[name] = time.monotonic()
        # where this fails it may have been made all the same
        self.cluster.create(PODS, pod)
        self.counts[template] += 1

    def _end(self, name: str) -> None:
        hard = self.rng.random() < self.force
        self.cluster.delete(f"{PODS}/{name}" + ("?gracePeriodSeconds=0" if hard else ""))
        self.counts["deleted by force" if hard else "deleted"] += 1

    def _look(self) -> list[str]:
        """Names of pods that nobody deletes yet."""
        living = []
        pods = self.cluster.api(PODS)["items"]
        self._hurry(pods)
        for pod in pods:
            name = pod["metadata"]["name"]
            if running(pod) and name not in self.ran:
                self.ran.add(name)
                waited = time.monotonic() - self._born.get(name, time.monotonic())
                self.slowest_s = max(self.slowest_s, waited)
            if "deletionTimestamp" not in pod["metadata"]:
                living.append(name)
                if pod["status"].get("phase") in {"Failed", "Succeeded"}:
                    self.failed.setdefault(name, str(pod["status"]))
        return living

    def _hurry(self, pods: Collection[Document]) -> None:
        now = time.monotonic()
        if self.hurry and now > self._hurried + HURRY_S:
            self._hurried = now
            for pod in pods:
                if not running(pod) or "deletionTimestamp" in pod["metadata"]:
                    with suppress(NodeError):  # it has ended meanwhile
                        self.cluster.label(f"{PODS}/{pod['metadata']['name']}", at=f"{now:.0f}")

    def settle(self, patience: float = 90) -> None:
        """Wait until every pod has run; those that did make room for others."""

        def all_ran() -> bool:
            time.sleep(PACE_S)
            living = self._look()
            waiting = sorted(name for name in living if name not in self.ran)
            if not waiting:
                return True
            if done := [name for name in living if name in self.ran]:
                self._end(self.rng.choice(done))
            raise NodeError(f"have not run: {waiting}")

        self.cluster.wait_for("all pods ran", all_ran, patience)

    def end(self, patience: float = 120) -> None:
        """Delete all pods, and wait until neither they nor their claims are there."""

        def gone() -> bool:
            pods = self.cluster.api(PODS)["items"]
            self._hurry(pods)
            for pod in pods:
                if "deletionTimestamp" not in pod["metadata"]:
                    self._end(pod["metadata"]["name"])
            left = [*pods, *self.cluster.api(CLAIMS)["items"]]
            if left:
                raise NodeError(f"left: {[one['metadata']['name'] for one in left]}")
            return True

        self.cluster.wait_for("no pods and no claims", gone, patience)


def running(pod: Document) -> bool:
    statuses = pod["status"].get("containerStatuses", ())
    return any("running" in one["state"] for one in statuses)


def lost_claims(
    cluster: Cluster, entries: Callable[[], Mapping[str, Mapping[str, object]]]
) -> Iterator[str]:
    """What is missing of claims whose pods run; *entries* reads the record."""
    # in this order: what a pod that runs needs is there, and stays
    pods = [pod for pod in _items(cluster, PODS) if running(pod)]
    claims = {one["metadata"]["name"]: one["metadata"]["uid"] for one in _items(cluster, CLAIMS)}
    recorded, files = entries(), described(cluster)
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            continue
        for status in pod["status"].get("resourceClaimStatuses", ()):
            uid, name = claims.get(status["resourceClaimName"]), pod["metadata"]["name"]
            if uid is None or recorded.get(uid, {}).get("state") != "ready":
                yield f"{name} runs, and its claim {uid} is not on record as ready"
            elif not any(uid in file for file in files):
                yield f"{name} runs, and its claim {uid} has no CDI file"


def _items(cluster: Cluster, path: str) -> Collection[Document]:
    found: list[Document] = cluster.api(path)["items"]
    return found
