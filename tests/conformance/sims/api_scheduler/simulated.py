"""The world of the simulated scheduler."""

import time
from collections.abc import Mapping

from attrs import frozen

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.scheduler.scheduler import SchedulerSim
from accelkit.core.kube import CLAIMS, NODES, PODS, Resource
from tests.conformance.sims.api_scheduler.world import NODE, Document

SPACE = "default"


@frozen
class Simulated:
    """One cluster, scheduled at each step."""

    api: ApiSim
    scheduler: SchedulerSim

    @classmethod
    def fresh(cls, release: str = "1.37", gates: Mapping[str, bool] | None = None) -> "Simulated":
        api = ApiSim(release, gates)
        api.create(NODES, {"metadata": {"name": NODE}})
        return cls(api, SchedulerSim(api))

    def put(self, resource: Resource, item: Document) -> None:
        namespace = SPACE if resource.namespaced else ""
        name = item["metadata"].get("name", "")
        if name and self.api.has(resource, name, namespace):
            old = self.api.get(resource, name, namespace)
            self.api.replace(resource, {**old, "spec": item["spec"]})
        else:
            self.api.create(resource, item, namespace)
        self.scheduler.step()

    def remove(self, resource: Resource, name: str) -> None:
        self.api.delete(resource, name, SPACE if resource.namespaced else "", grace_s=0)
        self.scheduler.step()

    def decided(self, pod: str) -> Document:
        self.scheduler.step()
        return dict(self.api.get(PODS, pod, SPACE))

    def scheduled(self, pod: str) -> Document:
        found = self.decided(pod)
        assert found["spec"].get("nodeName"), found["status"]
        return found

    def ended(self, pod: str) -> Document:
        found = self.decided(pod)
        assert found["metadata"].get("deletionTimestamp"), found
        return found

    def claim(self, name: str) -> Document:
        return dict(self.api.get(CLAIMS, name, SPACE))

    def allocated(self, claim: str) -> Document:
        self.scheduler.step()
        return self.claim(claim)

    def pod(self, name: str) -> Document:
        return dict(self.api.get(PODS, name, SPACE))

    def report(self, claim: str, devices: list[Document]) -> None:
        self.api.patch(CLAIMS, claim, {"status": {"devices": devices}}, SPACE, sub="status")
        self.scheduler.step()

    def label(self, resource: Resource, name: str, labels: Mapping[str, str]) -> None:
        self.api.patch(resource, name, {"metadata": {"labels": dict(labels)}})
        self.scheduler.step()

    def pass_second(self) -> None:
        """Real seconds: the server's clock is the host's."""
        now = time.time()
        time.sleep(1.001 - now % 1)

    def allocatable(self, amounts: Mapping[str, str]) -> None:
        status = {"status": {"allocatable": dict(amounts), "capacity": dict(amounts)}}
        self.api.patch(NODES, NODE, status, sub="status")
        self.scheduler.step()
