"""How objects come to their end, and whose fields are whose."""

import pytest

from accelkit.conformance.sims.api.kinds import NAMESPACES, TAINT_RULES, TEMPLATES
from accelkit.conformance.sims.api.refusals import Refused
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import CLAIMS, CLASSES, NODES, PODS, SLICES, Json
from tests.conformance.sims.api.asking import APPLY, MERGE, Document
from tests.conformance.sims.api.client import ROOT, Client
from tests.conformance.sims.api.objects import claim_named, node_named, pod_named, slice_named

CLAIM = f"{ROOT}/namespaces/default/resourceclaims/c"
POD = "/api/v1/namespaces/default/pods/p"


def uid(item: Json) -> str:
    meta = item["metadata"]
    assert isinstance(meta, dict)
    return str(meta["uid"])


def owned_by(name: str, uid: str) -> list[Document]:
    return [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}]


def test_slices_of_a_node_go_with_it() -> None:
    api = ApiSim()
    node = api.create(NODES, node_named("n1"))
    api.create(SLICES, slice_named("a", ownerReferences=owned_by("n1", uid(node))))
    api.create(SLICES, slice_named("b"))

    api.delete(NODES, "n1")

    assert [item["metadata"]["name"] for item in api.items(SLICES)] == ["b"]  # type: ignore[index]  # JSON


def test_slice_of_a_node_that_never_was_goes_at_once() -> None:
    """So does a slice whose owner has the uid of an earlier node of the name."""
    api = ApiSim()
    api.create(NODES, node_named("n1"))

    made = api.create(SLICES, slice_named("a", ownerReferences=owned_by("n1", "wrong")))

    assert uid(made)
    assert not api.has(SLICES, "a")


def test_owner_of_an_unknown_kind_is_taken_to_exist() -> None:
    api = ApiSim()
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "u"}

    api.create(SLICES, slice_named("a", ownerReferences=[owner]))

    assert api.has(SLICES, "a")


def test_what_an_owner_leaves_with_finalizers_is_marked() -> None:
    api = ApiSim()
    node = api.create(NODES, node_named("n1"))
    owners = owned_by("n1", uid(node))
    api.create(SLICES, slice_named("a", ownerReferences=owners, finalizers=["x.y/z"]))

    api.delete(NODES, "n1")
    marked = api.get(SLICES, "a")["metadata"]
    api.patch(SLICES, "a", {"metadata": {"finalizers": None}})

    assert isinstance(marked, dict)
    assert "deletionTimestamp" in marked
    assert not api.has(SLICES, "a")


async def test_pod_on_a_node_is_marked_and_goes_when_its_kubelet_says_so(
    api: ApiSim, client: Client
) -> None:
    api.create(PODS, pod_named("p", "n1"), "default")

    marked = await client.ask("DELETE", POD)
    there = await client.ask("GET", POD)
    await client.ask("DELETE", POD, {"gracePeriodSeconds": 0})

    assert marked.document["metadata"]["deletionGracePeriodSeconds"] == 30
    assert "deletionTimestamp" in there.document["metadata"]
    assert not api.has(PODS, "p", "default")


async def test_pod_on_no_node_goes_at_once(api: ApiSim, client: Client) -> None:
    api.create(PODS, pod_named("p"), "default")

    answer = await client.ask("DELETE", POD)

    assert answer.status == 200
    assert not api.has(PODS, "p", "default")


async def test_status_of_a_pod_is_merged_by_the_names_of_containers(
    api: ApiSim, client: Client
) -> None:
    api.create(PODS, pod_named("p"), "default")
    kind = "application/strategic-merge-patch+json"

    for name, ready in (("a", False), ("b", True), ("a", True)):
        status = {"containerStatuses": [{"name": name, "ready": ready}]}
        await client.ask("PATCH", f"{POD}/status", {"status": status}, kind=kind)

    found = (await client.ask("GET", POD)).document["status"]["containerStatuses"]
    assert found == [{"name": "a", "ready": True}, {"name": "b", "ready": True}]


def test_claims_may_ask_for_admin_access_where_the_namespace_has_the_label() -> None:
    api = ApiSim()
    request = {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    with pytest.raises(Refused, match="admin access to devices requires"):
        api.create(CLAIMS, claim, "default")

    label = {"resource.kubernetes.io/admin-access": "true"}
    api.create(NAMESPACES, {"metadata": {"name": "admins", "labels": label}})
    made = api.create(CLAIMS, claim, "admins")

    assert made["spec"] == {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "c",
                        "adminAccess": True,
                        "allocationMode": "ExactCount",
                        "count": 1,
                    },
                }
            ]
        }
    }


def test_template_cannot_change() -> None:
    api = ApiSim()
    spec = {"spec": claim_named("t")["spec"]}
    made = api.create(TEMPLATES, {"metadata": {"name": "t"}, "spec": spec}, "default")

    labelled = api.patch(TEMPLATES, "t", {"metadata": {"labels": {"a": "b"}}}, "default")
    with pytest.raises(Refused, match=r"spec: .*field is immutable"):
        api.patch(TEMPLATES, "t", {"spec": {"spec": {"devices": {"requests": []}}}}, "default")

    assert labelled["spec"] == made["spec"]


async def apply(client: Client, manager: str, devices: list[Document], **query: str) -> int:
    status = {"devices": devices}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    words = "&".join(f"{name}={value}" for name, value in query.items())
    answer = await client.ask(
        "PATCH",
        f"{CLAIM}/status?fieldManager={manager}&{words}",
        {**body, "metadata": {"name": "c"}, "status": status},
        kind=APPLY,
    )
    return answer.status


def device(name: str, **fields: object) -> Document:
    return {"driver": "d.test", "pool": "n1", "device": name, **fields}


async def test_drivers_apply_their_devices_side_by_side(api: ApiSim, client: Client) -> None:
    api.create(CLAIMS, claim_named("c"), "default")
    results = [{"request": "r", **device(name)} for name in "ab"]
    allocation = {"allocation": {"devices": {"results": results}}}
    api.patch(CLAIMS, "c", {"status": allocation}, "default", sub="status")

    statuses = [
        await apply(client, "one", [device("a", data={"x": 1})]),
        await apply(client, "two", [device("b", data={"y": 1})]),
        await apply(client, "one", [device("a", data={"x": 2})]),
        await apply(client, "two", [device("a", data={"x": 3})]),
        await apply(client, "two", [device("a", data={"x": 3})], force="true"),
    ]

    found = (await client.ask("GET", CLAIM)).document["status"]["devices"]
    assert statuses == [200, 200, 200, 409, 200]
    assert [(d["device"], d.get("data")) for d in found] == [("a", {"x": 3})]


async def test_what_a_manager_leaves_out_goes(api: ApiSim, client: Client) -> None:
    path = f"{ROOT}/deviceclasses/k"
    whole = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "k"}}

    async def send(spec: Document, manager: str) -> Document:
        found = await client.ask(
            "PATCH", f"{path}?fieldManager={manager}", {**whole, "spec": spec}, kind=APPLY
        )
        return found.document

    selectors = [{"cel": {"expression": "true"}}]
    await send({"extendedResourceName": "a.b/c", "selectors": selectors}, "one")
    await client.ask("PATCH", path, {"metadata": {"labels": {"l": "m"}}}, kind=MERGE)
    left = await send({"selectors": selectors}, "one")

    assert left["spec"] == {"selectors": selectors}
    assert left["metadata"]["labels"] == {"l": "m"}
    assert api.has(CLASSES, "k")


async def test_events_show_in_both_groups(client: Client) -> None:
    core = "/api/v1/namespaces/default/events"
    newer = "/apis/events.k8s.io/v1/namespaces/default/events"
    body = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "R",
        "message": "m",
        "type": "Warning",
        "source": {"component": "kubelet"},
        "count": 2,
    }

    made = await client.ask("POST", core, body)
    seen = await client.ask("GET", f"{newer}?fieldSelector=regarding.name%3Dp")
    back = await client.ask("GET", f"{core}?fieldSelector=involvedObject.name%3Dp,reason%3DR")

    (item,) = seen.document["items"]
    assert made.status == 201
    assert (item["note"], item["deprecatedCount"]) == ("m", 2)
    assert back.document["items"][0]["involvedObject"]["name"] == "p"


def test_test_does_not_write_what_a_server_does_not_know() -> None:
    api = ApiSim()

    with pytest.raises(Refused, match=r'unknown field "spec\.foo"'):
        api.create(SLICES, {**slice_named("a"), "spec": {"foo": 1}})
    with pytest.raises(ValueError, match="is not served; there are"):
        ApiSim("1.34").items(TAINT_RULES)
