"""Why claims and pods have devices, or none, asked of a simulated API server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from accelkit.conformance.sims.api.access import Rule, User
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import CLAIMS, CLASSES, EVENTS, NODES, PODS, SLICES, Json
from tests.cli.conftest import Answer, Run

DRIVER = "a.example"
OURS = f'device.driver == "{DRIVER}"'
READER = User(
    name="reader",
    token="reader's",
    rules=(
        Rule(verbs=("get",), resources=("resourceclaims",)),
        Rule(verbs=("get",), resources=("pods",), groups=("",)),
        Rule(verbs=("list",), resources=("deviceclasses", "resourceslices")),
    ),
)
NOBODY = User(name="nobody", token="nobody's")
ADMIN = User(name="admin", token="admin's", everything=True)


@pytest.fixture
async def api() -> AsyncIterator[ApiSim]:
    """A cluster with one published device, d0, and a class of it."""
    async with ApiSim(users=(ADMIN, READER, NOBODY)) as sim:
        pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "d0"}]}
        sim.create(SLICES, {"metadata": {"name": "s0"}, "spec": spec})
        named = {"extendedResourceName": "example.com/gpu"}
        selectors = {"selectors": [{"cel": {"expression": OURS}}]}
        sim.create(CLASSES, {"metadata": {"name": "all"}, "spec": {**selectors, **named}})
        sim.create(NODES, {"metadata": {"name": "n1"}})
        sim.create(CLAIMS, claim("train"), "default")
        yield sim


def claim(name: str) -> Json:
    request = {"name": "r", "exactly": {"deviceClassName": "all"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def pod(name: str, *, resource: str = "", of: str = "") -> Json:
    resources: Mapping[str, object] = {}
    if resource:
        resources = {"limits": {resource: "1"}, "requests": {resource: "1"}}
    spec: dict[str, object] = {
        "containers": [{"name": "main", "image": "none", "resources": resources}]
    }
    if of:
        spec["resourceClaims"] = [{"name": "g", "resourceClaimName": of}]
    return {"metadata": {"name": name}, "spec": spec}


async def ask(run: Run, api: ApiSim, tmp_path: Path, *words: str, user: User = ADMIN) -> Answer:
    api.write_kubeconfig(tmp_path / "config", user)
    config = ("--kubeconfig", tmp_path / "config")
    return await asyncio.to_thread(run, "explain", *words, *config)


async def test_claim_without_a_device_is_explained_by_what_is_published(
    run: Run, api: ApiSim, tmp_path: Path
) -> None:
    answer = await ask(run, api, tmp_path, "claim", "default/train")

    assert answer.code == 1
    assert answer.lines[0].startswith("claim default/train is not allocated, though there are")
    assert answer.lines[1:] == [
        "  request r of class all: 1 of 1 published devices can be had",
        "    can be had: d0 on n1",
        "  The scheduler has the last word.",
    ]


async def test_claim_that_has_a_device_is_a_yes(run: Run, api: ApiSim, tmp_path: Path) -> None:
    result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "d0"}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    api.patch(CLAIMS, "train", status, "default", sub="status")

    answer = await ask(run, api, tmp_path, "claim", "train")

    assert (answer.code, answer.lines) == (
        0,
        [
            "claim default/train is allocated, and used by no pod",
            f"  request r: d0 of pool n1 ({DRIVER})",
        ],
    )


async def test_pod_is_explained_by_its_claim_and_its_events(
    run: Run, api: ApiSim, tmp_path: Path
) -> None:
    api.create(PODS, pod("p", of="train"), "default")
    api.patch(PODS, "p", {"spec": {"nodeName": "n1"}}, "default")
    note = (
        "Failed to prepare dynamic resources: claims is forbidden: no relationship found "
        "between node 'n1' and this object"
    )
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2027-01-31T10:00:00.000000Z",
        "reportingController": "kubelet",
        "reportingInstance": "n1",
        "action": "Prepare",
        "reason": "FailedPrepareDynamicResources",
        "type": "Warning",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "note": note,
    }
    api.create(EVENTS, event, "default")

    answer = await ask(run, api, tmp_path, "pod", "p")

    assert answer.code == 1
    assert answer.lines[0] == "pod default/p is on node n1, Pending"
    assert f"  event: {note}" in answer.lines
    assert "the API server knew that its pod is on the node" in answer.lines[-1]


async def test_name_that_no_class_has_is_told(run: Run, api: ApiSim, tmp_path: Path) -> None:
    api.create(PODS, pod("p", resource="example.com/nosuch"), "default")

    answer = await ask(run, api, tmp_path, "pod", "p")

    assert answer.code == 1
    assert "no device class has the name example.com/nosuch" in answer.out


async def test_little_access_is_enough_and_what_it_hides_is_said(
    run: Run, api: ApiSim, tmp_path: Path
) -> None:
    api.create(PODS, pod("p", resource="example.com/gpu", of="gone"), "default")

    of_claim = await ask(run, api, tmp_path, "claim", "train", user=READER)
    of_pod = await ask(run, api, tmp_path, "pod", "p", user=READER)

    assert "claims of other namespaces cannot be read" in of_claim.out
    assert "there is no claim gone, which it uses" in of_pod.out
    assert "nodes cannot be read" in of_pod.out


@pytest.mark.parametrize("kind, name", [("claim", "none"), ("pod", "other/none")])
async def test_what_is_not_there_is_a_no(
    run: Run, api: ApiSim, tmp_path: Path, kind: str, name: str
) -> None:
    answer = await ask(run, api, tmp_path, kind, name)

    assert (answer.code, answer.out) == (1, "")
    assert "error: there is no " in answer.err


async def test_server_that_refuses_is_not_reached(run: Run, api: ApiSim, tmp_path: Path) -> None:
    answer = await ask(run, api, tmp_path, "claim", "train", user=NOBODY)

    assert answer.code == 3
    assert "403 Forbidden" in answer.err


async def test_failure_while_reading_around_is_told(run: Run, api: ApiSim, tmp_path: Path) -> None:
    rules = (*READER.rules, Rule(verbs=("list",), resources=("resourceclaims",)))
    half = User(name="half", token="half's", rules=rules)
    api.users = (*api.users, half)

    answer = await ask(run, api, tmp_path, "claim", "train", user=half)

    assert "cannot be read" not in answer.out


def test_kubeconfig_is_looked_for_where_kubectl_looks(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one:{tmp_path}/two")
    named = run("explain", "claim", "c")
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    at_home = run("explain", "claim", "c")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    in_cluster = run("explain", "claim", "c")

    assert (named.code, at_home.code, in_cluster.code) == (3, 3, 3)
    assert f"{tmp_path}/one" in named.err
    assert f"{tmp_path}/.kube/config" in at_home.err
    assert "/one" not in in_cluster.err
    assert ".kube" not in in_cluster.err
