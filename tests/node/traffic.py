"""Pods with claims that come and go, and whether each ran. Not here: what disturbs them."""

import random
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from tests.node.claims import claim, claiming, described, from_template
from tests.node.cluster import Cluster
from tests.node.objects import Document
from tests.node.processes import NodeError

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PACE_S = 1 / 3
"""Faster, and the API server refuses the kubelet claims that it does not know to be its own."""


@attrs.define
class Traffic:
    """Makes pods of templates, and deletes those that ran.

    Args:
        cluster: Its only pods in the default namespace are these.
        templates: Names of templates of claims; a pod has a claim of one of them.
        most: Pods at once.
        rng: Chooses.
    """

    cluster: Cluster
    templates: Sequence[str]
    most: int
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
        pod = from_template(claiming(name, template))
        pod["spec"]["automountServiceAccountToken"] = False
        self.made += 1
        self._born[name] = time.monotonic()
        # where this fails it may have been made all the same
        self.cluster.create(PODS, pod)
        self.counts[template] += 1

    def _end(self, name: str) -> None:
        self.cluster.delete(f"{PODS}/{name}")
        self.counts["deleted"] += 1

    def _look(self) -> list[str]:
        """Names of pods that nobody deletes yet."""
        living = []
        for pod in self.cluster.api(PODS)["items"]:
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

    def settle(self, patience: float = 90) -> None:
        """Wait until every pod has run."""

        def all_ran() -> bool:
            waiting = set(self._look()) - self.ran
            if waiting:
                raise NodeError(f"have not run: {sorted(waiting)}")
            return True

        self.cluster.wait_for("all pods ran", all_ran, patience)

    def end(self, patience: float = 120) -> None:
        """Delete all pods, and wait until neither they nor their claims are there."""

        def gone() -> bool:
            pods = self.cluster.api(PODS)["items"]
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


def make_templates(cluster: Cluster, requests: Mapping[str, Sequence[Document]]) -> None:
    """A template of claims for each of *requests*, by name."""
    for name, several in requests.items():
        claim(cluster, name, *several, kind="ResourceClaimTemplate")


def lost_claims(cluster: Cluster, entries: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """What is missing of claims whose pods run."""
    claims = {one["metadata"]["name"]: one["metadata"]["uid"] for one in _claims(cluster)}
    files = described(cluster)
    for pod in cluster.api(PODS)["items"]:
        if not running(pod) or "deletionTimestamp" in pod["metadata"]:
            continue
        for status in pod["status"].get("resourceClaimStatuses", ()):
            uid, name = claims.get(status["resourceClaimName"]), pod["metadata"]["name"]
            if uid is None or entries.get(uid, {}).get("state") != "ready":
                yield f"{name} runs, and its claim {uid} is not on record as ready"
            elif not any(uid in file for file in files):
                yield f"{name} runs, and its claim {uid} has no CDI file"


def _claims(cluster: Cluster) -> Collection[Document]:
    found: list[Document] = cluster.api(CLAIMS)["items"]
    return found
