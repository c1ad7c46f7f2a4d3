"""The status of a claim: allocations, reservations, devices, and parameters as they are written."""

from tests.conformance.sims.api.asking import APPLY, MERGE, Document, Probe, Step
from tests.conformance.sims.api.probes_claims import GROUP, NAMED, OPAQUE, claim, wanted

CLAIM = f"{NAMED}/resourceclaims/status-probe"
RESULT = {"request": "r", "driver": "d.test", "pool": "n1", "device": "d"}
DEVICE = {"driver": "d.test", "pool": "n1", "device": "d"}
SHARE = "33333333-3333-4333-8333-333333333333"
NODE = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    ]
}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Prepared",
    "message": "ok",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
POD = {"resource": "pods", "name": "p", "uid": "u"}
ALLOCATION = {"devices": {"results": [RESULT]}, "nodeSelector": NODE}
ALLOCATED = {"allocation": ALLOCATION, "reservedFor": [POD]}
GONE = (Step("DELETE", CLAIM),)


def put(**status: object) -> Step:
    body = claim([wanted()], "status-probe")
    return Step("PUT", f"{CLAIM}/status", {**body, "status": status})


MAKE = Step("POST", f"{NAMED}/resourceclaims", claim([wanted()], "status-probe"))


def status(name: str, *puts: Step) -> Probe:
    return Probe(name, puts, (MAKE,), GONE)


def allocating(name: str, /, **allocation: object) -> Probe:
    return status(name, put(allocation=allocation))


def reporting(name: str, *devices: Document) -> Probe:
    steps = (put(**ALLOCATED, devices=list(devices)),)
    return Probe(name, steps, (MAKE, put(**ALLOCATED)), GONE)


SPACED = '{"a": 1}'
"""Parameters as Python writes JSON unless told otherwise."""


def written(parameters: str, status: str = "") -> str:
    """The body of a claim, its parameters as they stand here."""
    config = f'[{{"opaque":{{"driver":"d.test","parameters":{parameters}}}}}]'
    return (
        f'{{"apiVersion":"{GROUP}","kind":"ResourceClaim","metadata":{{"name":"status-probe"}},'
        '"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}],'
        f'"config":{config}}}}}{status}}}'
    )


def allocated_with(parameters: str) -> str:
    config = f'[{{"source":"FromClaim","opaque":{{"driver":"d.test","parameters":{parameters}}}}}]'
    result = '{"request":"r","driver":"d.test","pool":"n1","device":"d"}'
    return f',"status":{{"allocation":{{"devices":{{"results":[{result}],"config":{config}}}}}}}'


def with_parameters(name: str, sent: str, again: str) -> Probe:
    """Parameters that are sent one way, and another way when the status is written."""
    make = Step("POST", f"{NAMED}/resourceclaims", written(sent))
    first = Step("PUT", f"{CLAIM}/status", written(sent, allocated_with(sent)))
    second = Step("PUT", f"{CLAIM}/status", written(again, allocated_with(again)))
    merge = Step("PATCH", f"{CLAIM}/status", {"status": {"devices": [DEVICE]}}, MERGE)
    label = Step("PATCH", CLAIM, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    return Probe(name, (first, second, merge, label), (make,), GONE)


STATUS = (
    status("reservation without an allocation", put(reservedFor=[POD])),
    allocating("result of an unknown request", devices={"results": [{**RESULT, "request": "x"}]}),
    allocating(
        "result of empty names",
        devices={"results": [{**RESULT, "driver": "", "pool": "", "device": ""}]},
    ),
    allocating("32 results", devices={"results": [RESULT] * 32}),
    allocating("33 results", devices={"results": [RESULT] * 33}),
    allocating("result of a bad share", devices={"results": [{**RESULT, "shareID": "x"}]}),
    allocating(
        "result with a share",
        devices={"results": [{**RESULT, "shareID": SHARE, "consumedCapacity": {"m": "1024Mi"}}]},
    ),
    allocating(
        "config of an unknown source",
        devices={
            "results": [RESULT],
            "config": [{"source": "Foo", "requests": ["x"], "opaque": OPAQUE}],
        },
    ),
    allocating("empty node selector of a result", devices={"results": [RESULT]}, nodeSelector={}),
    status("device of a claim without an allocation", put(devices=[DEVICE])),
    status(
        "allocation, changed",
        put(**ALLOCATED),
        put(allocation={"devices": {"results": [{**RESULT, "device": "e"}]}, "nodeSelector": NODE}),
    ),
    status("allocation, taken back with its devices", put(**ALLOCATED, devices=[DEVICE]), put()),
    status(
        "256 reservations",
        put(allocation=ALLOCATION, reservedFor=[{**POD, "uid": f"u{i}"} for i in range(256)]),
    ),
    status(
        "257 reservations",
        put(allocation=ALLOCATION, reservedFor=[{**POD, "uid": f"u{i}"} for i in range(257)]),
    ),
    status("empty reservation", put(allocation=ALLOCATION, reservedFor=[{}])),
    status("one reservation twice", put(allocation=ALLOCATION, reservedFor=[POD, POD])),
    reporting("device", DEVICE),
    reporting("device of another name", {**DEVICE, "device": "e"}),
    reporting("device of another driver", {**DEVICE, "driver": "x.test"}),
    reporting("device of a share that is not allocated", {**DEVICE, "shareID": SHARE}),
    reporting("one device twice in the status", DEVICE, DEVICE),
    reporting("condition", {**DEVICE, "conditions": [CONDITION]}),
    reporting("condition without most", {**DEVICE, "conditions": [{"type": "Ready"}]}),
    reporting(
        "condition of bad words",
        {**DEVICE, "conditions": [{**CONDITION, "type": "a b", "status": "Yes", "reason": "a b"}]},
    ),
    reporting("one condition twice", {**DEVICE, "conditions": [CONDITION, CONDITION]}),
    reporting(
        "8 conditions", {**DEVICE, "conditions": [{**CONDITION, "type": f"T{i}"} for i in range(8)]}
    ),
    reporting(
        "9 conditions", {**DEVICE, "conditions": [{**CONDITION, "type": f"T{i}"} for i in range(9)]}
    ),
    reporting("data of 10240 bytes", {**DEVICE, "data": {"a": "x" * 10232}}),
    reporting("data of 10241 bytes", {**DEVICE, "data": {"a": "x" * 10233}}),
    reporting("data that is a list", {**DEVICE, "data": [1]}),
    reporting("data that is null", {**DEVICE, "data": None}),
    reporting("data that is empty", {**DEVICE, "data": {}}),
    reporting(
        "network data too long",
        {
            **DEVICE,
            "networkData": {
                "interfaceName": "x" * 257,
                "hardwareAddress": "y" * 129,
                "ips": ["1.2.3.4"],
            },
        },
    ),
    reporting(
        "17 addresses", {**DEVICE, "networkData": {"ips": [f"10.0.0.{i}/24" for i in range(17)]}}
    ),
    reporting(
        "addresses twice", {**DEVICE, "networkData": {"ips": ["10.0.0.1/24", "10.0.0.1/24"]}}
    ),
    reporting(
        "addresses in other forms",
        {**DEVICE, "networkData": {"ips": ["10.0.0.01/24", "fe80::0001/64"]}},
    ),
    status("spec, changed", Step("PUT", CLAIM, claim([wanted(count=2)], "status-probe"))),
    status(
        "status by a write of the whole",
        Step("PUT", CLAIM, {**claim([wanted()], "status-probe"), "status": ALLOCATED}),
    ),
    status(
        "spec by a write of the status",
        Step(
            "PUT",
            f"{CLAIM}/status",
            {**claim([wanted(count=2)], "status-probe"), "status": ALLOCATED},
        ),
    ),
    status(
        "devices by a merge patch",
        put(**ALLOCATED),
        Step(
            "PATCH",
            f"{CLAIM}/status",
            {"status": {"devices": [{**DEVICE, "data": {"x": 1}}]}},
            MERGE,
        ),
    ),
    status(
        "devices by server-side apply",
        put(**ALLOCATED),
        Step(
            "PATCH",
            f"{CLAIM}/status?fieldManager=drv",
            {
                "apiVersion": GROUP,
                "kind": "ResourceClaim",
                "metadata": {"name": "status-probe"},
                "status": {"devices": [{**DEVICE, "conditions": [CONDITION]}]},
            },
            APPLY,
        ),
    ),
    status(
        "finalizer keeps what is deleted",
        Step(
            "PATCH",
            CLAIM,
            {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}},
            MERGE,
        ),
        Step("DELETE", CLAIM),
        Step("GET", CLAIM),
        Step(
            "PATCH",
            CLAIM,
            {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection", "x.y/z"]}},
            MERGE,
        ),
        Step("PATCH", CLAIM, {"metadata": {"finalizers": None}}, MERGE),
        Step("GET", CLAIM),
    ),
    with_parameters("parameters without spaces", '{"b":1,"a":2}', '{"b":1,"a":2}'),
    with_parameters("parameters with spaces", SPACED, SPACED),
    with_parameters("parameters, first with spaces, then without", SPACED, '{"a":1}'),
    with_parameters("parameters of another order", '{"a":1,"b":2}', '{"b":2,"a":1}'),
    with_parameters("parameters with a letter, then escaped", '{"a":"ä"}', r'{"a":"\u00e4"}'),
    with_parameters("parameters escaped, then with a letter", r'{"a":"\u00e4"}', '{"a":"ä"}'),
    with_parameters("parameters with brackets", '{"a":"<&>"}', '{"a":"<&>"}'),
    with_parameters("parameters with brackets, then escaped", '{"a":"<"}', r'{"a":"\u003c"}'),
    with_parameters("parameters with escaped brackets", r'{"a":"\u003c"}', r'{"a":"\u003c"}'),
    with_parameters("parameters with a separator", '{"a":"\u2028"}', '{"a":"\u2028"}'),
    with_parameters("parameters with another separator", '{"a":"\u2029"}', '{"a":"\u2029"}'),
    with_parameters("parameters with an escaped slash", r'{"a":"\/"}', r'{"a":"\/"}'),
    with_parameters("parameters with numbers", '{"a":1e3,"b":1.0}', '{"a":1e3,"b":1.0}'),
    with_parameters("parameters with a number, written anew", '{"a":1e3}', '{"a":1000.0}'),
)
