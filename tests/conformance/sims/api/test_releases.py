"""What the releases keep and drop by default: the table that drivers are written against."""

import pytest

from accelkit.conformance.sims import gates
from accelkit.conformance.sims.api.kinds import kinds
from accelkit.conformance.sims.api.refusals import Refused
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.gates import RELEASES, Dialect, everything_on
from accelkit.core.kube import CLAIMS, CLASSES, SLICES, Json
from tests.conformance.sims.api.asking import Document
from tests.conformance.sims.api.client import Client
from tests.conformance.sims.api.objects import slice_named

KEPT, DROPPED, REFUSED, UNKNOWN = "kept", "dropped", "refused", "unknown"
TAINT = {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
COUNTERS = {"m": {"value": "1"}}
SETS = [{"name": "c", "counters": COUNTERS}]
POLICY = {"default": "1", "validRange": {"min": "1"}}


def with_device(**fields: object) -> Document:
    item = slice_named("a")
    item["spec"]["devices"] = [{"name": "d", **fields}]
    return item


def with_spec(**fields: object) -> Document:
    item = slice_named("a")
    item["spec"] |= fields
    return item


def claim(**wanted: object) -> Document:
    request = {"name": "r", "exactly": {"deviceClassName": "c", **wanted}}
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}


def per_device() -> Document:
    item = with_device(nodeName="n1")
    del item["spec"]["nodeName"]
    item["spec"]["perDeviceNodeSelection"] = True
    return item


def distinct() -> Document:
    item = claim()
    item["spec"]["devices"]["constraints"] = [{"distinctAttribute": "d/a"}]
    return item


SLICE_ROWS = {
    "taint": with_device(taints=[TAINT]),
    "taint without effect": with_device(taints=[{**TAINT, "effect": "None"}]),
    "counter sets": with_spec(sharedCounters=SETS),
    "shares": with_device(allowMultipleAllocations=True),
    "policy": with_device(
        allowMultipleAllocations=True, capacity={"m": {"value": "2", "requestPolicy": POLICY}}
    ),
    "binding": with_device(
        bindsToNode=True, bindingConditions=["a"], bindingFailureConditions=["b"]
    ),
    "nodes of each device": per_device(),
    "list": with_device(attributes={"m": {"ints": [1]}}),
    "list beside a scalar": with_device(attributes={"m": {"ints": [1], "int": 1}}),
    "skipped operations": with_spec(skipNodeOperations=["*"]),
    "partition type": with_spec(partitionTypeAttribute="d/a"),
    "allocatable mappings": with_device(
        nodeAllocatableResourceMappings={"cpu": {"capacityKey": "x"}}
    ),
}
CLAIM_ROWS = {
    "asked capacity": claim(capacity={"requests": {"m": "1"}}),
    "tolerations": claim(tolerations=[{"key": "k", "operator": "Exists"}]),
    "distinct attribute": distinct(),
}
CLASS_ROWS = {
    "extended resource": {"metadata": {"name": "c"}, "spec": {"extendedResourceName": "a.b/c"}}
}
BY_DEFAULT = {
    # what is sent: what comes of it in 1.34, 1.35, 1.36 and 1.37
    "taint": (DROPPED, DROPPED, KEPT, KEPT),
    "taint without effect": (DROPPED, DROPPED, KEPT, KEPT),
    "counter sets": (DROPPED, DROPPED, KEPT, KEPT),
    "shares": (DROPPED, DROPPED, KEPT, KEPT),
    "policy": (DROPPED, DROPPED, KEPT, KEPT),
    "binding": (DROPPED, DROPPED, KEPT, KEPT),
    "nodes of each device": (REFUSED, REFUSED, KEPT, KEPT),
    "list": (REFUSED, REFUSED, REFUSED, REFUSED),
    "list beside a scalar": (UNKNOWN, UNKNOWN, DROPPED, DROPPED),
    "skipped operations": (UNKNOWN, UNKNOWN, UNKNOWN, DROPPED),
    "partition type": (UNKNOWN, UNKNOWN, UNKNOWN, DROPPED),
    "allocatable mappings": (UNKNOWN, UNKNOWN, DROPPED, UNKNOWN),
    "asked capacity": (DROPPED, DROPPED, KEPT, KEPT),
    "tolerations": (KEPT, DROPPED, KEPT, KEPT),
    "distinct attribute": (KEPT, REFUSED, KEPT, KEPT),
    "extended resource": (DROPPED, DROPPED, KEPT, KEPT),
}
WITH_ALL_GATES = {
    "taint": (KEPT, KEPT, KEPT),
    "taint without effect": (REFUSED, KEPT, KEPT),
    "counter sets": (KEPT, KEPT, KEPT),
    "shares": (KEPT, KEPT, KEPT),
    "nodes of each device": (KEPT, KEPT, KEPT),
    "list": (UNKNOWN, UNKNOWN, KEPT),
    "extended resource": (KEPT, KEPT, KEPT),
}


async def outcome(api: ApiSim, what: str) -> str:
    """What comes of a row, as a client sees it."""
    plural, item = next(
        (plural, rows[what])
        for plural, rows in (
            ("resourceslices", SLICE_ROWS),
            ("namespaces/default/resourceclaims", CLAIM_ROWS),
            ("deviceclasses", CLASS_ROWS),
        )
        if what in rows
    )
    path = f"/apis/resource.k8s.io/v1/{plural}?dryRun=All"
    plain, strict = [
        await Client(api.port).ask("POST", f"{path}{more}", item)
        for more in ("", "&fieldValidation=Strict")
    ]
    if plain.status == 422:
        return REFUSED
    if strict.status == 400:
        return UNKNOWN
    assert plain.status == strict.status == 201
    return KEPT if _has(plain.document["spec"], item["spec"]) else DROPPED


def _has(found: object, sent: object) -> bool:
    """Whether everything that was sent is in what was found."""
    if isinstance(sent, dict):
        return isinstance(found, dict) and all(_has(found.get(k), v) for k, v in sent.items())
    if isinstance(sent, list):
        pairs = zip(found, sent, strict=True) if isinstance(found, list) else [(0, 1)]
        return all(_has(one, other) for one, other in pairs)
    return found == sent


@pytest.mark.parametrize("release", RELEASES)
async def test_release_keeps_by_default_what_it_was_seen_to_keep(release: str) -> None:
    at = RELEASES.index(release)
    async with ApiSim(release) as api:
        found = {what: await outcome(api, what) for what in BY_DEFAULT}

    assert found == {what: row[at] for what, row in BY_DEFAULT.items()}


@pytest.mark.parametrize("release", RELEASES[:-1])
async def test_release_keeps_with_all_gates_what_it_was_seen_to_keep(release: str) -> None:
    at = RELEASES.index(release)
    async with ApiSim(release, everything_on(release).gates) as api:
        found = {what: await outcome(api, what) for what in WITH_ALL_GATES}

    expected = {what: row[at] for what, row in WITH_ALL_GATES.items()}
    # 1.34 and 1.35 do not know lists; alone, one is refused for that.
    expected["list"] = REFUSED if expected["list"] == UNKNOWN else expected["list"]
    assert found == expected


def test_field_that_is_used_stays_when_its_gate_is_turned_off() -> None:
    """Or turning it off would change what runs."""
    api = ApiSim("1.36")
    made = api.create(SLICES, with_device(taints=[TAINT]))
    api.become("1.36", {gates.TAINTS: False})

    kept = api.patch(SLICES, "a", {"metadata": {"labels": {"l": "m"}}})
    api.delete(SLICES, "a")
    fresh = api.create(SLICES, with_device(taints=[TAINT]))

    assert kept["spec"] == made["spec"]
    assert fresh["spec"] == with_device()["spec"]


def test_binding_needs_the_gate_of_device_status_as_well() -> None:
    on = Dialect.of("1.36", {})
    off = Dialect.of("1.36", {gates.DEVICE_STATUS: False})

    assert gates.BINDING not in on.dropped("slice")
    assert gates.BINDING in off.dropped("slice")


@pytest.mark.parametrize(
    "release, more, served",
    [
        ("1.34", {}, None),
        ("1.34", {gates.TAINTS: True}, "v1alpha3"),
        ("1.35", {gates.TAINTS: True}, None),
        ("1.35", {gates.RULES: True}, "v1alpha3"),
        ("1.36", {}, None),
        ("1.36", {gates.RULES: True}, "v1beta2"),
        ("1.37", {}, "v1"),
        ("1.37", {gates.RULES: False}, None),
    ],
)
def test_taint_rules_are_served_where_their_gate_is_on(
    release: str, more: dict[str, bool], served: str | None
) -> None:
    found = [
        kind.resource.version
        for kind in kinds(Dialect.of(release, more))
        if kind.resource.plural == "devicetaintrules"
    ]

    assert found == ([served] if served else [])


@pytest.mark.parametrize("release, gate", [("1.33", ""), ("1.34", gates.GRANULAR)])
def test_server_does_not_start_with_what_it_does_not_have(release: str, gate: str) -> None:
    with pytest.raises(ValueError, match=release.replace(".", r"\.")):
        ApiSim(release, {gate: True} if gate else {})


@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36"])
async def test_step_of_zero_fells_older_servers(release: str) -> None:
    """The request ends without an answer; others are served."""
    policy = {"default": "1", "validRange": {"min": "1", "step": "0"}}
    item = with_device(
        allowMultipleAllocations=True, capacity={"m": {"value": "2", "requestPolicy": policy}}
    )
    async with ApiSim(release, {gates.SHARES: True}) as api:
        client = Client(api.port)
        async with client.connected() as (reader, writer):
            path = "/apis/resource.k8s.io/v1/resourceslices"
            with pytest.raises(EOFError):
                await client.on(reader, writer, "POST", path, item)
        other = await client.ask("GET", "/readyz")

    assert other.status == 200


async def test_gates_can_be_read(client: Client) -> None:
    found = (await client.ask("GET", "/metrics")).text.splitlines()

    assert 'kubernetes_feature_enabled{name="DRAExtendedResource",stage=""} 1' in found
    assert 'kubernetes_feature_enabled{name="DRAListTypeAttributes",stage=""} 0' in found


@pytest.mark.parametrize("release", RELEASES)
async def test_clients_discover_what_is_served(release: str) -> None:
    async with ApiSim(release) as api:
        client = Client(api.port)
        version = (await client.ask("GET", "/version")).document
        groups = (await client.ask("GET", "/apis")).document["groups"]
        listed = (await client.ask("GET", "/apis/resource.k8s.io/v1")).document["resources"]
        whole = await client.ask(
            "GET", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2"
        )
        core = (await client.ask("GET", "/api/v1")).document["resources"]

    assert version["gitVersion"] == Dialect.of(release, {}).version
    assert "resource.k8s.io" in {group["name"] for group in groups}
    names = {resource["name"] for resource in listed}
    assert names >= {"resourceslices", "resourceclaims", "resourceclaims/status", "deviceclasses"}
    assert ("devicetaintrules" in names) is (release == "1.37")
    assert {"nodes", "pods", "pods/status", "events"} <= {resource["name"] for resource in core}
    kinds_found = {
        resource["resource"]
        for group in whole.document["items"]
        for one in group["versions"]
        for resource in one["resources"]
    }
    assert {"resourceslices", "events"} <= kinds_found


def test_slice_without_devices_says_so_in_1_34() -> None:
    api = ApiSim("1.34")
    made: Json = api.create(SLICES, slice_named("a"))

    spec = made["spec"]
    assert isinstance(spec, dict)
    assert spec["devices"] is None


def test_1_34_wants_counters_where_they_are_used() -> None:
    api = ApiSim("1.34", everything_on("1.34").gates)
    consuming = with_device(consumesCounters=[{"counterSet": "c", "counters": COUNTERS}])

    with pytest.raises(Refused, match="must reference a counterSet defined in the ResourceSlice"):
        api.create(SLICES, consuming)
    consuming["spec"]["sharedCounters"] = SETS
    assert api.create(SLICES, consuming)["spec"] == consuming["spec"]
    assert api.items(CLAIMS) == []
    assert api.items(CLASSES) == []
