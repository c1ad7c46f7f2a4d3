"""Who may do what: tokens, rules, and parts of a claim's status."""

import json
import ssl
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from accelkit.conformance.sims.api.access import ADMIN, Rule, User, service_account
from accelkit.conformance.sims.api.certificates import make_tls
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import CLAIMS, NODES
from tests.conformance.sims.api.asking import MERGE, Document
from tests.conformance.sims.api.client import ROOT, SLICES, Answered, Client
from tests.conformance.sims.api.objects import claim_named, node_named, slice_named

STATUS = f"{ROOT}/namespaces/default/resourceclaims/c/status"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ON_N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
DEVICE = {"driver": "d.test", "pool": "n1", "device": "d"}
STATUS_RULE = Rule(verbs=("get", "update", "patch"), resources=("resourceclaims/status",))
DRIVER_RULE = Rule(
    verbs=("associated-node:patch",), resources=("resourceclaims/driver",), names=("d.test",)
)


def reader(**rule: Sequence[str]) -> User:
    return service_account("reader", "t", [Rule(verbs=("get", "list"), **_tuples(rule))])


def _tuples(rule: dict[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {"resources": ("resourceslices",), **{k: tuple(v) for k, v in rule.items()}}


@pytest.fixture
async def guarded() -> AsyncGenerator[ApiSim, None]:
    boss = User(name="boss", token="b", everything=True)
    async with ApiSim(users=[reader(), boss]) as started:
        yield started


async def test_without_users_everybody_may_do_everything(client: Client) -> None:
    assert (await client.ask("POST", SLICES, slice_named("a"))).status == 201


async def test_unknown_token_is_nobody(guarded: ApiSim) -> None:
    answer = await Client(guarded.port, "wrong").ask("GET", SLICES)

    assert (answer.status, answer.document["reason"]) == (401, "Unauthorized")


async def test_who_has_no_token_is_anonymous(guarded: ApiSim) -> None:
    client = Client(guarded.port)
    listed, version = await client.ask("GET", SLICES), await client.ask("GET", "/version")

    assert (listed.status, version.status) == (403, 200)
    assert listed.document["message"] == (
        'resourceslices.resource.k8s.io is forbidden: User "system:anonymous" cannot list resource '
        '"resourceslices" in API group "resource.k8s.io" at the cluster scope'
    )


async def test_rules_are_held(guarded: ApiSim) -> None:
    client = Client(guarded.port, "t")
    asked = {
        "list": await client.ask("GET", SLICES),
        "watch": await client.ask("GET", f"{SLICES}?watch=1"),
        "create": await client.ask("POST", SLICES, slice_named("a")),
        "other": await client.ask("GET", "/api/v1/nodes/n1"),
        "discovery": await client.ask("GET", "/apis"),
        "metrics": await client.ask("GET", "/metrics"),
    }

    assert {name: answer.status for name, answer in asked.items()} == {
        "list": 200,
        "watch": 403,
        "create": 403,
        "other": 403,
        "discovery": 200,
        "metrics": 403,
    }
    assert asked["other"].document["message"] == (
        'nodes "n1" is forbidden: User "system:serviceaccount:default:reader" cannot get resource '
        '"nodes" in API group "" at the cluster scope'
    )


async def test_rule_for_names_is_for_those_alone() -> None:
    named = reader(resources=["nodes"], groups=[""], names=["n1"])
    async with ApiSim(users=[named]) as api:
        for name in ("n1", "n2"):
            api.create(NODES, node_named(name))
        client = Client(api.port, "t")
        answers = [await client.ask("GET", f"/api/v1/nodes/{name}") for name in ("n1", "n2")]

    assert [answer.status for answer in answers] == [200, 403]


async def test_review_says_what_the_rules_say(guarded: ApiSim) -> None:
    client = Client(guarded.port, "t")

    async def may(verb: str) -> bool:
        attributes = {"verb": verb, "group": "resource.k8s.io", "resource": "resourceslices"}
        answer = await client.ask("POST", REVIEWS, {"spec": {"resourceAttributes": attributes}})
        allowed: bool = answer.document["status"]["allowed"]
        return allowed

    assert [await may("list"), await may("create")] == [True, False]


async def test_review_of_oneself_tells_the_node_of_the_token() -> None:
    bound = service_account("driver", "t", [], node="n1")
    async with ApiSim(users=[bound]) as api:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await Client(api.port, "t").ask("POST", path, {})

    info = answer.document["status"]["userInfo"]
    assert info["username"] == "system:serviceaccount:default:driver"
    assert info["extra"] == {"authentication.kubernetes.io/node-name": ["n1"]}


async def report(user: User, *, on: Document | None = None, release: str = "1.37") -> Answered:
    """What comes of a driver's report of its device."""
    async with ApiSim(release, users=[user]) as api:
        api.create(CLAIMS, claim_named("c"), "default")
        result = {"request": "r", **DEVICE}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [on or ON_N1]},
        }
        status = {"status": {"allocation": allocation}}
        api.patch(CLAIMS, "c", status, "default", sub="status")
        body = {"status": {"devices": [DEVICE]}}
        return await Client(api.port, user.token).ask("PATCH", STATUS, body, kind=MERGE)


async def test_driver_reports_its_device_by_the_token_of_its_node() -> None:
    user = service_account("driver", "t", [STATUS_RULE, DRIVER_RULE], node="n1")

    answer = await report(user)

    assert answer.status == 200
    assert answer.document["status"]["devices"] == [{**DEVICE, "conditions": None}]


@pytest.mark.parametrize("node", ["", "n2"])
async def test_token_of_no_node_or_another_needs_another_right(node: str) -> None:
    user = service_account("driver", "t", [STATUS_RULE, DRIVER_RULE], node=node)

    answer = await report(user)

    assert answer.status == 422
    assert 'verb="[arbitrary-node:patch]" permission' in answer.document["message"]


async def test_claim_that_is_on_no_certain_node_needs_another_right() -> None:
    user = service_account("driver", "t", [STATUS_RULE, DRIVER_RULE], node="n1")
    by_label = {"matchExpressions": [{"key": "k", "operator": "Exists"}]}

    assert (await report(user, on=by_label)).status == 422


async def test_right_to_the_status_alone_is_not_enough_since_1_36() -> None:
    user = service_account("driver", "t", [STATUS_RULE], node="n1")

    answers = {r: (await report(user, release=r)).status for r in ("1.34", "1.35", "1.36", "1.37")}

    assert answers == {"1.34": 200, "1.35": 200, "1.36": 422, "1.37": 422}


async def test_binding_needs_a_right_of_its_own() -> None:
    user = service_account("driver", "t", [STATUS_RULE, DRIVER_RULE], node="n1")
    async with ApiSim(users=[user]) as api:
        api.create(CLAIMS, claim_named("c"), "default")
        body: Document = {"status": {"allocation": {"devices": {}}}}
        answer = await Client(api.port, "t").ask("PATCH", STATUS, body, kind=MERGE)

    assert answer.status == 422
    assert answer.document["details"]["causes"][0]["field"] == "status.allocation"
    assert 'resource="resourceclaims/binding", verb="patch"' in answer.document["message"]


async def test_kubeconfig_leads_to_the_server(guarded: ApiSim, tmp_path: Path) -> None:
    guarded.write_kubeconfig(tmp_path / "config", guarded.users[0])

    written = json.loads((tmp_path / "config").read_text())
    assert written["clusters"][0]["cluster"] == {"server": guarded.url}
    assert written["users"][0]["user"] == {"token": "t"}


async def test_pods_find_the_server_by_their_files(tmp_path: Path) -> None:
    tls = make_tls(tmp_path / "pki")
    user = reader()
    async with ApiSim(tls=tls, users=[user]) as api:
        variables = api.write_in_cluster(tmp_path / "account", user, "space")
        trust = ssl.create_default_context(cafile=str(tmp_path / "account" / "ca.crt"))
        token = (tmp_path / "account" / "token").read_text()
        answer = await Client(api.port, token, trust).ask("GET", SLICES)

    assert answer.status == 200
    assert variables == {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(api.port),
    }
    assert (tmp_path / "account" / "namespace").read_text() == "space"


async def test_pods_find_no_server_without_tls(api: ApiSim, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pods speak TLS only"):
        api.write_in_cluster(tmp_path, ADMIN)
