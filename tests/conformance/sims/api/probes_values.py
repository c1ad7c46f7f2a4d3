"""Attributes, capacities, policies and quantities of a device, and types of JSON."""

from tests.conformance.sims.api.asking import Document, Probe
from tests.conformance.sims.api.probes_slices import device, made, slice_of, with_device

KEYS = {
    "empty": "",
    "with a dash": "a-b",
    "with two slashes": "a/b/c",
    "in upper case": "A",
    "that begins with a digit": "1a",
    "of 33 bytes": "a" * 33,
    "without a domain before the slash": "/a",
    "without a name after the slash": "a/",
    "with a domain in upper case": "X.y/a",
    "with a bad domain": "x_y/a",
    "with an accent": "é",
    "with a domain of 64 bytes": "a" * 64 + "/x",
}
VERSIONS = ("1.2", "v1.2.3", "570.086.15", "570.86.15", "1.2.3-a+b", "", "1.2.3-" + "a" * 64)
QUANTITIES = (
    "1024Mi",
    "0.5",
    "1e3",
    "12e6",
    "1000",
    "1.5Gi",
    "-1",
    "0.0001",
    "100000",
    "1024",
    "1024Ki",
    "5000m",
    "1n",
    "0.1n",
    "1E3",
    "3E",
    "+5",
    "0Gi",
    "9223372036854775808",
    "1.1Ki",
    "8Gi",
    "16Ki",
    "80Gi",
    "0",
    "00",
    "1.",
    ".5",
    "1.50",
    "120Mi",
    "1000m",
    "1500m",
    "1Mi",
    "2048Mi",
    "1e9",
    "10e3",
    "100Ei",
    "1.25",
    "007",
    "512Ki",
    "1023Ki",
    "0.5Ki",
    "-1024Mi",
    "-0.5",
    "1000k",
    "999999k",
    "1000e3",
    "0.001e3",
    "1.5e1",
    "2000e-3",
    "1e-3",
    "10000e0",
    "1e-10",
    "12345678901234567890",
    "0.0000000001",
    "1000Gi",
)
BAD_QUANTITIES = ("x", "", "1x", "1.2.3", "Gi", "1Ki5", "1ee", "-", "1 Gi")


def policy(name: str, value: str = "10", *, multiple: bool = True, **fields: object) -> Probe:
    capacity = {"m": {"value": value, "requestPolicy": fields}}
    return with_device(name, allowMultipleAllocations=multiple, capacity=capacity)


def ranged(name: str, default: str | None, value: str = "10", **bounds: str) -> Probe:
    if default is None:
        return policy(name, value, validRange=bounds)
    return policy(name, value, validRange=bounds, default=default)


def attribute(name: str, value: Document) -> Probe:
    return with_device(name, attributes={"m": value})


VALUES = (
    *(with_device(f"key {name}", attributes={key: {"int": 1}}) for name, key in KEYS.items()),
    with_device("capacity of a bad key", capacity={"a-b": {"value": "1"}}),
    with_device("capacity without a value", capacity={"a": {}}),
    attribute("string of 64 bytes", {"string": "x" * 64}),
    attribute("string of 65 bytes", {"string": "x" * 65}),
    attribute("string of 33 umlauts", {"string": "ä" * 33}),
    attribute("empty string", {"string": ""}),
    *(attribute(f"version {v[:12]!r}", {"version": v}) for v in VERSIONS),
    attribute("list", {"ints": [1]}),
    attribute("list beside a scalar", {"ints": [1], "int": 1}),
    attribute("empty list", {"strings": []}),
    attribute("attribute without a value", {}),
    attribute("attribute of three values", {"int": 1, "bool": True, "string": "x"}),
    attribute("text for a number", {"int": "x"}),
    attribute("fraction for a number", {"int": 1.5}),
    attribute("number too large", {"int": 2**63}),
    attribute("number for a text", {"string": 1}),
    made("text for a list", slice_of([device(bindingConditions="x")])),
    made("unknown field", slice_of([device(foo=1)])),
    made("unknown field, strictly", slice_of([device(foo=1)]), "&fieldValidation=Strict"),
    made("unknown field, ignored", slice_of([device(foo=1)]), "&fieldValidation=Ignore"),
    policy("policy of a device for one", multiple=False, default="1"),
    with_device(
        "empty policy of a device for one", capacity={"m": {"value": "10", "requestPolicy": {}}}
    ),
    policy("empty policy"),
    policy("default above the value, without a range", default="11"),
    policy("values and range", default="1", validValues=["1", "2"], validRange={"min": "1"}),
    policy("values without a default", validValues=["1", "2"]),
    policy("values without the default", default="3", validValues=["1", "2"]),
    policy("values out of order", default="1", validValues=["2", "1"]),
    policy("values above the value", default="1", validValues=["1", "11"]),
    policy("values twice", default="1", validValues=["1", "1", "2"]),
    policy("10 values", "100", default="1", validValues=[str(i) for i in range(1, 11)]),
    policy("11 values", "100", default="1", validValues=[str(i) for i in range(1, 12)]),
    ranged("range without a default", None, min="1"),
    ranged("range without a minimum", "1"),
    ranged("range from 0", "0", min="0"),
    ranged("range that begins above the value", "1", min="11"),
    ranged("default below the range", "1", min="2"),
    ranged("range that ends before it begins", "5", min="5", max="4"),
    ranged("range that ends above the value", "5", min="1", max="11"),
    ranged("default above the range", "5", min="1", max="4"),
    ranged("step of 0", "1", min="1", step="0"),
    ranged("step beyond the value", "1", min="1", step="10"),
    ranged("default between steps", "2", min="1", step="2"),
    ranged("maximum between steps", "1", min="1", max="4", step="2"),
    ranged("range in steps", "1", min="1", max="5", step="2"),
    ranged("range in fractions", "0.25", "1", min="0.25", max="1", step="0.25"),
    ranged("default between fractions", "0.3", "1", min="0.25", max="1", step="0.25"),
    ranged("range from below 0", "-1", min="-1", max="1", step="1"),
    with_device(
        "quantities", capacity={f"q{i}": {"value": q} for i, q in enumerate(QUANTITIES[:32])}
    ),
    with_device(
        "more quantities", capacity={f"q{i}": {"value": q} for i, q in enumerate(QUANTITIES[32:])}
    ),
    with_device(
        "quantities that are numbers",
        capacity={"a": {"value": 0.5}, "b": {"value": 1024}, "c": {"value": None}},
    ),
    *(with_device(f"quantity {q!r}", capacity={"a": {"value": q}}) for q in BAD_QUANTITIES),
)
