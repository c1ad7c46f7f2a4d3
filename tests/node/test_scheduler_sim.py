"""The stories of the simulated scheduler, told to a real one that has a node without a kubelet."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest
from attrs import frozen

from accelkit.conformance.sims.api.kinds import TAINT_RULES
from accelkit.core.kube import CLAIMS, CLASSES, NODES, PODS, SLICES, Resource
from tests.conformance.sims.api.asking import MERGE, Document, Server
from tests.conformance.sims.api_scheduler.all_stories import ALL
from tests.conformance.sims.api_scheduler.stories import Story
from tests.conformance.sims.api_scheduler.world import NODE
from tests.node.control_plane import start_control_plane, trust
from tests.node.processes import NodeError, wait_for
from tests.node.programs import NEWEST, RELEASE, programs_folder
from tests.node.test_api_sim import Alone

SPACE = "default"
PATIENCE_S = 30.0
WAITING = {"Unschedulable", "SchedulerError"}
ROOM = {"cpu": "8", "memory": "8Gi", "pods": "110"}
pytestmark = pytest.mark.skipif(RELEASE != NEWEST, reason="stories are told of the newest release")


@frozen
class Real:
    """A cluster of which the one node is an object and nothing else."""

    server: Server

    def put(self, resource: Resource, item: Document) -> None:
        name = item["metadata"]["name"]
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
        status, answer = self._ask("POST", resource, "", whole)
        if status == 409:
            _, old = self._ask("GET", resource, name)
            status, answer = self._ask("PUT", resource, name, {**old, "spec": item["spec"]})
        if status not in {200, 201}:
            raise NodeError(f"{resource.plural} {name}: {answer}")

    def remove(self, resource: Resource, name: str) -> None:
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        self._ask("DELETE", resource, name, options)
        gone = f"{resource.plural} {name} gone"
        wait_for(gone, lambda: self._ask("GET", resource, name)[0] == 404, PATIENCE_S)

    def decided(self, pod: str) -> Document:
        return self._when(f"{pod} decided", lambda: self.pod(pod), _decided)

    def scheduled(self, pod: str) -> Document:
        return self._when(f"{pod} scheduled", lambda: self.pod(pod), _bound)

    def ended(self, pod: str) -> Document:
        return self._when(f"{pod} marked", lambda: self.pod(pod), _marked)

    def claim(self, name: str) -> Document:
        return self._ask("GET", CLAIMS, name)[1]

    def allocated(self, claim: str) -> Document:
        return self._when(f"{claim} allocated", lambda: self.claim(claim), _allocated)

    def pod(self, name: str) -> Document:
        return self._ask("GET", PODS, name)[1]

    def report(self, claim: str, devices: list[Document]) -> None:
        path = f"{CLAIMS.path(SPACE, claim)}/status"
        status, answer = self.server.ask("PATCH", path, {"status": {"devices": devices}}, MERGE)
        if status != 200:
            raise NodeError(f"{claim}: {answer}")

    def label(self, resource: Resource, name: str, labels: Mapping[str, str]) -> None:
        patch = {"metadata": {"labels": dict(labels)}}
        self.server.ask("PATCH", resource.path("", name), patch, MERGE)

    def pass_second(self) -> None:
        time.sleep(1.001 - time.time() % 1)

    def allocatable(self, amounts: Mapping[str, str]) -> None:
        # A kind of resource stays in a node's status with 0 when its plugin is gone.
        whole = {**ROOM, **amounts}
        patch = {"status": {"allocatable": whole, "capacity": whole}}
        self.server.ask("PATCH", f"{NODES.path('', NODE)}/status", patch, MERGE)

    def clear(self) -> None:
        """Take away what a story left."""
        for resource in (PODS, CLAIMS, SLICES, CLASSES, TAINT_RULES):
            self._ask("DELETE", resource, "", {"gracePeriodSeconds": 0})
        for resource in (PODS, CLAIMS, SLICES, CLASSES, TAINT_RULES):
            wait_for(f"no {resource.plural}", partial(self._none, resource), PATIENCE_S)
        patch = {"status": {"allocatable": None, "capacity": None}}
        self.server.ask("PATCH", f"{NODES.path('', NODE)}/status", patch, MERGE)
        self.allocatable({})

    def _ask(
        self, method: str, resource: Resource, name: str, body: object = None
    ) -> tuple[int, Document]:
        space = SPACE if resource.namespaced else ""
        return self.server.ask(method, resource.path(space, name), body)

    def _none(self, resource: Resource) -> bool:
        return not self._ask("GET", resource, "")[1]["items"]

    def _when(
        self, what: str, read: Callable[[], Document], holds: Callable[[Document], bool]
    ) -> Document:
        """What is read, once it holds."""
        wait_for(what, lambda: holds(read()), PATIENCE_S)
        return read()


def _scheduling(pod: Document) -> Document:
    found = pod.get("status", {}).get("conditions", ())
    return next((c for c in found if c["type"] == "PodScheduled"), {})


def _decided(pod: Document) -> bool:
    condition = _scheduling(pod)
    return condition.get("status") == "True" or condition.get("reason") in WAITING


def _bound(pod: Document) -> bool:
    return bool(pod["spec"].get("nodeName")) and _scheduling(pod).get("status") == "True"


def _marked(pod: Document) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _allocated(claim: Document) -> bool:
    return "allocation" in claim["status"]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    root = tmp_path_factory.mktemp("scheduler")
    processes = Alone(root)
    try:
        port = start_control_plane(processes, programs_folder(), (), ())
        world = Real(Server(port, trust(root)))
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        world.server.ask("POST", NODES.path(), node)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_for("service account", lambda: world.server.ask("GET", account)[0] == 200)
        world.allocatable({})
        yield world
    finally:
        processes.kill_left()


@pytest.fixture
def world(real: Real) -> Iterator[Real]:
    yield real
    real.clear()


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_real_scheduler_does_as_seen(world: Real, story: Story) -> None:
    assert story.tell(world) == story.seen
