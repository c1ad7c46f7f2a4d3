"""Claims, templates, classes and taint rules, and the status of a claim."""

from tests.conformance.sims.api.asking import Document, Probe, Step
from tests.conformance.sims.api.probes_slices import ROOT

GROUP = "resource.k8s.io/v1"
NAMED = f"{ROOT}/namespaces/default"
TAINT = {"key": "k", "effect": "NoExecute"}
OPAQUE = {"driver": "d.test", "parameters": {"a": 1}}
NAMES = (
    "example.com/gpu",
    "gpu",
    "kubernetes.io/gpu",
    "a.kubernetes.io/gpu",
    "requests.example.com/gpu",
    "example.com/" + "a" * 64,
    "Example.com/gpu",
    "example.com/",
    "/gpu",
    "example.com/a/b",
    "",
    "deviceclass.resource.kubernetes.io/x",
    "a" * 245 + "/x",
    "example.com/g pu",
)


def wanted(**fields: object) -> Document:
    return {"name": "r", "exactly": {"deviceClassName": "c", **fields}}


def alternative(name: str = "s", **fields: object) -> Document:
    return {"name": name, "deviceClassName": "c", **fields}


def first_of(*alternatives: Document) -> Document:
    return {"name": "r", "firstAvailable": list(alternatives)}


def claim(requests: list[Document] | None, name: str = "probe", /, **devices: object) -> Document:
    asked = {} if requests is None else {"requests": requests}
    return {
        "apiVersion": GROUP,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {**asked, **devices}},
    }


def asked(name: str, /, *requests: Document, **devices: object) -> Probe:
    body = claim(list(requests), **devices)
    return Probe(name, (Step("POST", f"{NAMED}/resourceclaims?dryRun=All", body),))


def constrained(name: str, *constraints: Document) -> Probe:
    return asked(name, wanted(), constraints=list(constraints))


def configured(name: str, *configs: Document) -> Probe:
    return asked(name, wanted(), config=list(configs))


def selected(name: str, *expressions: str) -> Probe:
    return asked(name, wanted(selectors=[{"cel": {"expression": e}} for e in expressions]))


def tolerating(name: str, /, **toleration: object) -> Probe:
    return asked(name, wanted(tolerations=[toleration]))


def tried(name: str, plural: str, kind: str, body: Document, path: str = ROOT) -> Probe:
    whole = {"apiVersion": GROUP, "kind": kind, "metadata": {"name": "probe"}, **body}
    return Probe(name, (Step("POST", f"{path}/{plural}?dryRun=All", whole),))


def classed(name: str, /, **spec: object) -> Probe:
    return tried(name, "deviceclasses", "DeviceClass", {"spec": spec})


def ruled(name: str, selector: Document | None, taint: Document | None) -> Probe:
    parts = {"deviceSelector": selector, "taint": taint}
    spec = {key: value for key, value in parts.items() if value is not None}
    return tried(name, "devicetaintrules", "DeviceTaintRule", {"spec": spec})


def template(name: str, meta: Document, *requests: Document) -> Probe:
    spec = {"metadata": meta, "spec": claim(list(requests))["spec"]}
    return tried(name, "resourceclaimtemplates", "ResourceClaimTemplate", {"spec": spec}, NAMED)


CLAIMS = (
    asked("plain claim", wanted()),
    asked("claim without requests"),
    Probe(
        "claim without a list of requests",
        (Step("POST", f"{NAMED}/resourceclaims?dryRun=All", claim(None)),),
    ),
    asked("request of nothing", {"name": "r"}),
    asked("request without a class", {"name": "r", "exactly": {}}),
    asked("request of both kinds", {**wanted(), "firstAvailable": [alternative()]}),
    asked("alternatives", first_of(alternative(), alternative("t", count=2))),
    asked("8 alternatives", first_of(*(alternative(f"s{i}") for i in range(8)))),
    asked("9 alternatives", first_of(*(alternative(f"s{i}") for i in range(9)))),
    asked("one alternative twice", first_of(alternative(), alternative())),
    asked("alternative without a class", first_of({"name": "s"})),
    asked("alternative for admins", first_of(alternative(adminAccess=True))),
    asked("count of 0", wanted(count=0)),
    asked("count below 0", wanted(count=-1)),
    asked("all", wanted(allocationMode="All")),
    asked("all with a count", wanted(allocationMode="All", count=1)),
    asked("unknown mode", wanted(allocationMode="Foo")),
    asked("one request twice", wanted(), wanted()),
    asked("32 requests", *({**wanted(), "name": f"r{i}"} for i in range(32))),
    asked("33 requests", *({**wanted(), "name": f"r{i}"} for i in range(33))),
    asked("request in upper case", {**wanted(), "name": "R"}),
    asked("admin access in a namespace without the label", wanted(adminAccess=True)),
    asked("no admin access", wanted(adminAccess=False)),
    asked("bad class name", wanted(deviceClassName="A_")),
    selected("selector", 'device.driver == "x"'),
    selected("selector of an unknown field", "device.foo == 1"),
    selected("33 selectors", *["true"] * 33),
    selected("selector of 10241 bytes", "a" * 10241),
    asked("selector without CEL", wanted(selectors=[{}])),
    tolerating("toleration of everything", operator="Exists"),
    tolerating("empty toleration"),
    tolerating("toleration of existence with a value", key="k", operator="Exists", value="v"),
    tolerating("toleration of unknown words", key="k", operator="Foo", effect="Bar"),
    tolerating("toleration of a bad value", operator="Equal", value="v v"),
    tolerating("toleration of a bad key", key="a b", operator="Exists", effect="None"),
    asked("17 tolerations", wanted(tolerations=[{"operator": "Exists"}] * 17)),
    asked("capacity", wanted(capacity={"requests": {"m": "1024Mi", "b": 0.5}})),
    asked("asked capacity of a bad key", wanted(capacity={"requests": {"m-x": "-1"}})),
    asked("empty capacity", wanted(capacity={})),
    asked("derived attributes", wanted(derivedAttributes=[{"name": "x", "expression": ""}])),
    constrained("match", {"matchAttribute": "d/a"}),
    constrained("distinct", {"distinctAttribute": "d/a"}),
    constrained("match and distinct", {"matchAttribute": "d/a", "distinctAttribute": "d/b"}),
    constrained("constraint of nothing", {}),
    constrained("match without a domain", {"matchAttribute": "a"}),
    constrained(
        "match of requests that are not there",
        {"matchAttribute": "d/a", "requests": ["r", "x", "a/b/c"]},
    ),
    constrained("match of one request twice", {"matchAttribute": "d/a", "requests": ["r", "r"]}),
    constrained("33 constraints", *[{"matchAttribute": "d/a"}] * 33),
    asked(
        "match of alternatives",
        first_of(alternative()),
        constraints=[{"matchAttribute": "d/a", "requests": ["r/s", "r", "r/t"]}],
    ),
    configured("config", {"opaque": OPAQUE}),
    configured("config of nothing", {}),
    configured("config without a driver", {"opaque": {}}),
    configured("config that is a list", {"opaque": {**OPAQUE, "parameters": [1]}}),
    configured("config that is a text", {"opaque": {**OPAQUE, "parameters": "x"}}),
    configured("config that is null", {"opaque": {**OPAQUE, "parameters": None}}),
    configured("config of 10240 bytes", {"opaque": {**OPAQUE, "parameters": {"a": "x" * 10232}}}),
    configured("config of 10241 bytes", {"opaque": {**OPAQUE, "parameters": {"a": "x" * 10233}}}),
    configured(
        "config of bad references",
        {"requests": ["q"], "opaque": {"driver": "d_", "parameters": {}}},
    ),
    configured("33 configs", *[{"opaque": OPAQUE}] * 33),
    tried(
        "claim with a status",
        "resourceclaims",
        "ResourceClaim",
        {**claim([wanted()]), "status": {"allocation": {}}},
        NAMED,
    ),
    template("template", {"labels": {"a": "b"}}, wanted()),
    template("template of nothing", {}, {"name": "r"}),
    template("template with a bad label", {"labels": {"a b": "c"}}, wanted()),
    template("template with a name for its claims", {"name": "x"}, wanted()),
    classed("class"),
    classed("class of a selector without CEL", selectors=[{}]),
    classed("class of 33 selectors", selectors=[{"cel": {"expression": "true"}}] * 33),
    classed("class of a config of nothing", config=[{}]),
    classed("class of 33 configs", config=[{"opaque": OPAQUE}] * 33),
    *(classed(f"extended resource {n[:40]!r}", extendedResourceName=n) for n in NAMES),
    tried(
        "class in upper case",
        "deviceclasses",
        "DeviceClass",
        {"metadata": {"name": "A"}, "spec": {}},
    ),
    tried(
        "class of 254 characters",
        "deviceclasses",
        "DeviceClass",
        {"metadata": {"name": "a" * 254}, "spec": {}},
    ),
    ruled("rule for everything", {}, TAINT),
    ruled("rule for nothing", None, TAINT),
    ruled("rule of bad names", {"driver": "d_", "pool": "N", "device": "D"}, TAINT),
    ruled("rule without a taint", {}, None),
    ruled("rule of a class", {"deviceClassName": "x"}, TAINT),
)
