"""Both clients against a real API server; most is in the suite that simulations run, too."""

import asyncio
import base64
import json
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelkit.backends.kube.objects import IDLE_S
from accelkit.backends.kube.reading import meta
from accelkit.core.kube import SLICES, Change, ChangeKind
from accelkit.core.policy import KubeClient
from tests.backends.kube.behaviour import Behaviour
from tests.backends.kube.clients import Clients
from tests.node.cluster import Cluster
from tests.node.objects import Document
from tests.node.processes import alive, wait_for

API_SERVER = "kube-apiserver"
ACCOUNT = "kube-tester"
OTHERS_CHANGES = 8


class RealServer:
    """The API server of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def kubeconfig(self, folder: Path) -> Path:  # noqa: ARG002 - it is there already
        return self._cluster.kubeconfig

    def tokens(self) -> tuple[str, str]:
        first, second = (self._cluster.kubectl("create", "token", ACCOUNT) for _ in range(2))
        return first, second

    def with_token_file(self, folder: Path, file: Path) -> Path:
        tree = json.loads(self._cluster.kubeconfig.read_text())
        tree["users"][0]["user"] = {"tokenFile": str(file)}
        found = folder / "kubeconfig"
        found.write_text(json.dumps(tree))
        return found

    async def stop(self) -> None:
        # It would take a minute to end in peace.
        await asyncio.to_thread(self._cluster.processes.stop, API_SERVER, patience=1)

    async def start(self) -> None:
        await asyncio.to_thread(self._start)

    def expire(self) -> None:
        """Let etcd compact its history, and the API server lose what it remembers of that."""
        key = base64.b64encode(b"/nothing-of-kubernetes").decode()
        newest = self._etcd("put", key=key, value="")["header"]["revision"]
        self._etcd("compaction", revision=newest, physical=True)
        self._cluster.processes.stop(API_SERVER, signal.SIGKILL)
        self._start()

    def _start(self) -> None:
        self._cluster.restart(API_SERVER)
        wait_for(API_SERVER, self._ready)

    def _ready(self) -> str:
        pid, _ = self._cluster.processes.started()[API_SERVER]
        if not alive(pid):
            # While it was away, some connection may have been given its port.
            self._cluster.restart(API_SERVER)
        return self._cluster.kubectl("get", "--raw", "/readyz")

    def _etcd(self, verb: str, **words: object) -> Document:
        _, argv = self._cluster.processes.started()[API_SERVER]
        address = next(word for word in argv if word.startswith("--etcd-servers="))
        url = f"{address.partition('=')[2]}/v3/kv/{verb}"
        request = urllib.request.Request(url, json.dumps(words).encode())
        with urllib.request.urlopen(request, timeout=20) as answer:
            found: Document = json.load(answer)
        return found


@pytest.fixture(scope="module")
def account(whole_run_cluster: Cluster) -> Iterator[None]:
    """A service account that may do everything."""
    role = ("clusterrolebinding", ACCOUNT)
    whole_run_cluster.kubectl("create", "serviceaccount", ACCOUNT)
    words = ("--clusterrole=cluster-admin", f"--serviceaccount=default:{ACCOUNT}")
    whole_run_cluster.kubectl("create", *role, *words)
    yield
    whole_run_cluster.kubectl("delete", *role)
    whole_run_cluster.kubectl("delete", "serviceaccount", ACCOUNT)


@pytest.fixture
def server(cluster: Cluster, account: None) -> RealServer:  # noqa: ARG001 - who has tokens
    return RealServer(cluster)


class TestRealServer(Behaviour):
    """All of it."""


@pytest.mark.slow
async def test_a_quiet_watch_brings_a_bookmark_every_minute(
    cluster: Cluster, server: RealServer
) -> None:
    """By them a silent connection is known to be dead.

    A watch of which no object changed, not even others' ones, gets none.
    """
    every = [Clients(kind) for kind in (KubeClient.LEAN, KubeClient.OFFICIAL)]

    async def watched(clients: Clients) -> list[Change]:
        kube = clients.dial(server.kubeconfig(Path()), idle_s=IDLE_S, watch_s=70)
        begun = await kube.list(SLICES, fields="spec.nodeName=nowhere")
        where = {"fields": "spec.nodeName=nowhere"}
        found = [change async for change in kube.watch(SLICES, version=begun.version, **where)]
        await clients.close()
        return found

    async def others_change() -> None:
        for _ in range(OTHERS_CHANGES):  # so that some come after both watches began
            await asyncio.to_thread(change_elsewhere, cluster)
            await asyncio.sleep(5.0)

    changing = asyncio.create_task(others_change())
    brought = await asyncio.gather(*map(watched, every))
    await changing

    for changes in brought:
        assert {change.kind for change in changes} == {ChangeKind.BOOKMARK}
        assert all(meta(change.item, "resourceVersion") for change in changes)


def change_elsewhere(cluster: Cluster) -> None:
    pool = {"name": "elsewhere", "generation": 1, "resourceSliceCount": 1}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "elsewhere"},
            "spec": {
                "driver": "bookmarks.test",
                "pool": pool,
                "nodeName": "elsewhere",
                "devices": [],
            },
        }
    )
    cluster.delete("/apis/resource.k8s.io/v1/resourceslices/elsewhere")
