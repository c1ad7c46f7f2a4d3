"""Verbs, conflicts, patches, lists, events and what a server says of itself."""

from tests.conformance.sims.api.asking import APPLY, JSON, MERGE, Document, Probe, Step
from tests.conformance.sims.api.probes_slices import PATH, POOL, ROOT, SET, device, slice_of

ONE = f"{PATH}/probe"
MAKE = Step("POST", PATH, slice_of([device()]))
GONE = (Step("DELETE", ONE),)
JSON_PATCH = "application/json-patch+json"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE_EVENTS = "/api/v1/namespaces/default/events"
EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "probe", "namespace": "default"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "type": "Normal",
    "reason": "R",
    "action": "A",
    "note": "n",
    "reportingController": "a.b/c",
    "reportingInstance": "i",
    "regarding": {"kind": "Node", "name": "n1"},
}


def meta(name: str, /, **fields: object) -> Probe:
    body = {**slice_of([]), "metadata": fields}
    return Probe(name, (Step("POST", f"{PATH}?dryRun=All", body),))


def on_slice(name: str, *steps: Step) -> Probe:
    return Probe(name, steps, (MAKE,), GONE)


def write(**fields: object) -> Step:
    """A PUT of the slice with other metadata and spec."""
    spec = fields.pop("spec", {})
    body = slice_of([device()])
    body["metadata"] |= fields
    assert isinstance(spec, dict)
    body["spec"] |= spec
    return Step("PUT", ONE, body)


def merge(patch: object, query: str = "") -> Step:
    return Step("PATCH", f"{ONE}{query}", patch, MERGE)


def apply(devices: list[Document], query: str) -> Step:
    return Step("PATCH", f"{ONE}{query}", slice_of(devices), APPLY)


def one(name: str, method: str, path: str, body: object = None, kind: str = JSON) -> Probe:
    return Probe(name, (Step(method, path, body, kind),))


def event(name: str, /, **fields: object) -> Probe:
    return Probe(
        name, (Step("POST", EVENTS, {**EVENT, **fields}),), (), (Step("DELETE", f"{EVENTS}/probe"),)
    )


def listed(name: str, query: str) -> Probe:
    """A list of slices of a driver that no other probe has."""
    makes = tuple(
        Step("POST", PATH, _listed_slice(f"list-{i}", f"node-{i % 2}", {"probe": str(i)}))
        for i in range(4)
    )
    ends = tuple(Step("DELETE", f"{PATH}/list-{i}") for i in range(4))
    return Probe(name, (Step("GET", f"{PATH}?{query}"),), makes, ends)


def _listed_slice(name: str, node: str, labels: Document) -> Document:
    body = slice_of(None, name=name, driver="list.test", nodeName=node)
    body["metadata"]["labels"] = labels
    return body


OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
RULE = "/apis/resource.k8s.io/v1/devicetaintrules"
RULE_BODY = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "probe"},
    "spec": {"taint": {"key": "k", "effect": "None"}},
}


def ruled(name: str, *conditions: Document) -> Probe:
    """Conditions of a taint rule."""
    body = {**RULE_BODY, "status": {"conditions": list(conditions)}}
    body["metadata"] = {"name": "probe", "resourceVersion": "$version"}
    step = Step("PUT", f"{RULE}/probe/status", body)
    return Probe(
        name, (step,), (Step("POST", RULE, RULE_BODY),), (Step("DELETE", f"{RULE}/probe"),)
    )


CONDITION = {
    "type": "T",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
REQUESTS = (
    Probe(
        "rule, written without its version",
        (Step("PUT", f"{RULE}/probe", RULE_BODY),),
        (Step("POST", RULE, RULE_BODY),),
        (Step("DELETE", f"{RULE}/probe"),),
    ),
    ruled("condition of a rule", CONDITION),
    ruled("9 conditions of a rule", *({**CONDITION, "type": f"T{i}"} for i in range(9))),
    meta("name in upper case", name="A"),
    meta("name with a slash", name="a/b"),
    meta("name of 254 characters", name="a" * 254),
    meta("bad labels", name="a", labels={"a b": "c d"}),
    meta("bad annotations", name="a", annotations={"a b": "c d"}),
    meta("namespace of what has none", name="a", namespace="x"),
    meta(
        "what a server fills in",
        name="a",
        uid="x",
        generation=7,
        creationTimestamp="2020-01-01T00:00:00Z",
        deletionTimestamp="2020-01-01T00:00:00Z",
        selfLink="/x",
    ),
    meta("unqualified finalizer", name="a", finalizers=["x"]),
    meta("qualified finalizer", name="a", finalizers=["x.y/z"]),
    meta("number for a label", name="a", labels={"a": 1}),
    meta("unknown field of metadata", name="a", foo=1),
    meta("owner", name="a", ownerReferences=[OWNER]),
    meta(
        "two controllers",
        name="a",
        ownerReferences=[{**OWNER, "controller": True}, {**OWNER, "controller": True, "name": "b"}],
    ),
    meta("owner of nothing", name="a", ownerReferences=[{}]),
    on_slice("made twice", MAKE),
    on_slice("written equally", write(), Step("GET", ONE)),
    on_slice(
        "written",
        write(spec={"pool": {**POOL, "generation": 2}}),
        write(spec={"pool": {**POOL, "generation": 3}}),
    ),
    on_slice(
        "written with an old version",
        write(resourceVersion="$version", spec={"pool": {**POOL, "generation": 2}}),
        write(resourceVersion="1"),
    ),
    on_slice("written with another uid", write(uid="x")),
    on_slice("written with another name", write(name="other")),
    on_slice("written without a name", write(name="")),
    on_slice("written with a version that is none", write(resourceVersion="abc")),
    on_slice(
        "written over fixed fields",
        write(spec={"driver": "e.test", "nodeName": "n2", "pool": {**POOL, "name": "p2"}}),
    ),
    on_slice(
        "written over fixed metadata",
        write(labels={"a": "b"}, creationTimestamp="2020-01-01T00:00:00Z", generation=99),
    ),
    on_slice(
        "written dry", Step("PUT", f"{ONE}?dryRun=All", slice_of([device("e")])), Step("GET", ONE)
    ),
    on_slice("devices become counters", Step("PUT", ONE, slice_of(sharedCounters=[SET]))),
    one("written, but not there", "PUT", f"{PATH}/nosuch", slice_of([], name="nosuch")),
    on_slice(
        "merged",
        merge({"metadata": {"labels": {"x": "y"}}}),
        merge({"metadata": {"labels": None}}),
        merge({}),
    ),
    on_slice("merged with an unknown field", merge({"spec": {"foo": 1}})),
    on_slice("merged into a fixed field", merge({"spec": {"driver": "x"}})),
    on_slice("merged with an old version", merge({"metadata": {"resourceVersion": "1"}})),
    on_slice("merged with another name", merge({"metadata": {"name": "q"}})),
    on_slice("merged with another uid", merge({"metadata": {"uid": "q"}})),
    on_slice("merged with a list", merge([1])),
    on_slice("merged with no JSON", merge("{")),
    one("merged, but not there", "PATCH", f"{PATH}/nosuch", {}, MERGE),
    on_slice("patched in an unknown way", Step("PATCH", ONE, {}, "application/foo")),
    on_slice(
        "patched step by step",
        Step(
            "PATCH",
            ONE,
            [{"op": "add", "path": "/metadata/labels", "value": {"q": "r"}}],
            JSON_PATCH,
        ),
    ),
    on_slice(
        "patched by a replacement and a removal",
        Step(
            "PATCH",
            ONE,
            [
                {"op": "replace", "path": "/spec/devices/0/name", "value": "e"},
                {"op": "add", "path": "/spec/devices/-", "value": {"name": "f"}},
                {"op": "add", "path": "/spec/devices/0", "value": {"name": "g"}},
                {"op": "remove", "path": "/spec/devices/1"},
                {"op": "test", "path": "/spec/nodeName", "value": "n1"},
            ],
            JSON_PATCH,
        ),
    ),
    on_slice(
        "patched where no list is",
        Step("PATCH", ONE, [{"op": "replace", "path": "/spec/nosuch/0", "value": 1}], JSON_PATCH),
    ),
    on_slice(
        "patched with a list that is an item",
        Step(
            "PATCH",
            ONE,
            [{"op": "replace", "path": "/spec/devices/0", "value": {"name": "e"}}],
            JSON_PATCH,
        ),
    ),
    on_slice(
        "patched with a test that fails",
        Step("PATCH", ONE, [{"op": "test", "path": "/metadata/name", "value": "z"}], JSON_PATCH),
    ),
    on_slice(
        "patched where nothing is",
        Step("PATCH", ONE, [{"op": "remove", "path": "/metadata/nosuch"}], JSON_PATCH),
    ),
    on_slice(
        "patched step by step with an object", Step("PATCH", ONE, {"op": "remove"}, JSON_PATCH)
    ),
    Probe(
        "applied",
        (
            apply([device()], "?fieldManager=t"),
            apply([device("e")], "?fieldManager=t"),
            apply([device("f")], "?fieldManager=u"),
            apply([device("f")], "?fieldManager=u&force=true"),
        ),
        (),
        GONE,
    ),
    one("applied by nobody", "PATCH", ONE, slice_of([]), APPLY),
    on_slice(
        "applied with another name",
        Step("PATCH", f"{PATH}/probe?fieldManager=t", slice_of([], name="zz"), APPLY),
    ),
    on_slice(
        "applied without a kind",
        Step("PATCH", f"{ONE}?fieldManager=t", {"metadata": {"name": "probe"}}, APPLY),
    ),
    on_slice("applied with an unknown field", apply([device(foo=1)], "?fieldManager=t")),
    on_slice("deleted with another uid", Step("DELETE", ONE, {"preconditions": {"uid": "x"}})),
    on_slice(
        "deleted with an old version",
        Step("DELETE", ONE, {"preconditions": {"resourceVersion": "1"}}),
    ),
    on_slice("deleted dry", Step("DELETE", f"{ONE}?dryRun=All"), Step("GET", ONE)),
    on_slice(
        "deleted",
        Step("DELETE", ONE, {"preconditions": {"uid": "$uid", "resourceVersion": "$version"}}),
        Step("GET", ONE),
        Step("DELETE", ONE),
    ),
    on_slice(
        "deleted by a selector",
        Step("DELETE", f"{PATH}?fieldSelector=metadata.name%3Dprobe"),
        Step("GET", ONE),
    ),
    one("read, but not there", "GET", f"{PATH}/nosuch"),
    one("no such resource", "GET", f"{ROOT}/nosuch"),
    one("no such group", "GET", "/apis/nosuch.io/v1/x"),
    one("no such path", "GET", "/nosuch"),
    one("no such subresource", "GET", f"{ONE}/status"),
    one("method for a collection on an object", "POST", ONE, {}),
    one("method for an object on a collection", "PUT", PATH, {}),
    one("claim made in all namespaces", "POST", f"{ROOT}/resourceclaims", {}),
    one(
        "claim made in no namespace",
        "POST",
        f"{ROOT}/namespaces/nosuch/resourceclaims",
        {"metadata": {"name": "x"}, "spec": {"devices": {}}},
    ),
    one(
        "claim made in another namespace",
        "POST",
        f"{ROOT}/namespaces/default/resourceclaims",
        {"metadata": {"name": "x", "namespace": "kube-system"}, "spec": {"devices": {}}},
    ),
    one(
        "body of another version",
        "POST",
        f"{PATH}?dryRun=All",
        {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1beta1"},
    ),
    one(
        "body of another kind",
        "POST",
        f"{PATH}?dryRun=All",
        {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "x"}},
    ),
    one(
        "body without a kind",
        "POST",
        f"{PATH}?dryRun=All",
        {k: v for k, v in slice_of([]).items() if k not in {"kind", "apiVersion"}},
    ),
    one("body that is text", "POST", PATH, slice_of([]), "text/plain"),
    one(
        "body with a key twice",
        "POST",
        f"{PATH}?dryRun=All",
        '{"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":{"name":"x","name":"y"},"spec":{"driver":"d.test","nodeName":"n1","pool":{"name":"n1","generation":1,"resourceSliceCount":1}}}',
    ),
    one(
        "body with a key twice, strictly",
        "POST",
        f"{PATH}?dryRun=All&fieldValidation=Strict",
        '{"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":{"name":"x","name":"y"},"spec":{"driver":"d.test","nodeName":"n1","pool":{"name":"n1","generation":1,"resourceSliceCount":1}}}',
    ),
    one(
        "body that is too large",
        "POST",
        PATH,
        slice_of([device(attributes={"a": {"string": "x" * 3200000}})]),
    ),
    one("unknown way of checking fields", "POST", f"{PATH}?fieldValidation=Bad", slice_of([])),
    one("unknown dry run", "POST", f"{PATH}?dryRun=Bad", slice_of([])),
    listed("by node", "fieldSelector=spec.driver%3Dlist.test,spec.nodeName%3Dnode-1"),
    listed(
        "by anything but a node", "fieldSelector=spec.driver%3D%3Dlist.test,spec.nodeName!%3Dnode-1"
    ),
    listed("by name", "fieldSelector=metadata.name%3Dlist-2"),
    listed("by pool", "fieldSelector=spec.driver%3Dlist.test,spec.pool.name%3Dn1"),
    listed("by an unknown field", "fieldSelector=spec.foo%3Dx"),
    listed("by no field", "fieldSelector=foo"),
    listed("by a label", "labelSelector=probe%3D1"),
    listed("by labels in a set", "labelSelector=probe+in+(1,2),probe!%3D2"),
    listed("by labels not in a set", "labelSelector=probe,probe+notin+(1,2)"),
    listed("by a label below", "labelSelector=probe%3C1"),
    listed(
        "by a label that is not there", "labelSelector=!other&fieldSelector=spec.driver%3Dlist.test"
    ),
    listed("by an unfinished set", "labelSelector=probe+in"),
    listed("by equal signs", "labelSelector=probe%3D%3D2"),
    listed("by a label above", "labelSelector=probe%3E1"),
    listed("by half a label", "labelSelector=a+b"),
    listed("by no version", "resourceVersion=abc"),
    listed("exactly at no version", "resourceVersionMatch=Exact"),
    listed("exactly at any version", "resourceVersion=0&resourceVersionMatch=Exact"),
    listed("at a version to come", "resourceVersion=999999999"),
    listed("in pages of no size", "limit=abc"),
    listed("with initial events", "sendInitialEvents=true"),
    one("claims by an unknown field", "GET", f"{ROOT}/resourceclaims?fieldSelector=foo%3Dx"),
    one("watched from no version", "GET", f"{PATH}?watch=1&resourceVersion=abc"),
    one("watched with a match alone", "GET", f"{PATH}?watch=1&resourceVersionMatch=NotOlderThan"),
    one("watched with initial events alone", "GET", f"{PATH}?watch=1&sendInitialEvents=true"),
    event("event"),
    event("event without a time", eventTime=None),
    event(
        "event without words",
        type="Foo",
        reason="",
        action="",
        reportingController="",
        reportingInstance="",
    ),
    event("event of 1024 characters", note="x" * 1024),
    event("event of 1025 characters", note="x" * 1025),
    event("event of a long reason", reason="r" * 129),
    event("event of a pod elsewhere", regarding={"kind": "Pod", "name": "p", "namespace": "x"}),
    Probe(
        "event, seen again",
        (
            Step("POST", EVENTS, EVENT),
            Step("GET", f"{CORE_EVENTS}/probe"),
            Step(
                "PATCH",
                f"{EVENTS}/probe",
                {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:05.000000Z"}},
                MERGE,
            ),
            Step("PATCH", f"{EVENTS}/probe", {"note": "other"}, MERGE),
            Step("DELETE", f"{EVENTS}/probe"),
        ),
    ),
    event("event with fields of old", deprecatedCount=1, deprecatedSource={"component": "x"}),
    event("event of a short series", series={"count": 1, "lastObservedTime": None}),
    one(
        "event of old, of a pod elsewhere",
        "POST",
        CORE_EVENTS,
        {
            "metadata": {"name": "probe"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "x"},
        },
    ),
    one(
        "event of a node elsewhere",
        "POST",
        "/apis/events.k8s.io/v1/namespaces/kube-public/events",
        {**EVENT, "metadata": {"name": "probe"}},
    ),
    one("health", "GET", "/readyz"),
    one(
        "review of rights",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "verb": "get",
                    "group": "resource.k8s.io",
                    "resource": "resourceslices",
                }
            },
        },
    ),
)
