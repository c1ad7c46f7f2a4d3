"""What may stand in a slice: limits at their edges, names, node fields, counters."""

from tests.conformance.sims.api.asking import Document, Probe, Step

ROOT = "/apis/resource.k8s.io/v1"
PATH = f"{ROOT}/resourceslices"
TAINT = {"key": "a/b", "effect": "None"}
COUNTERS = {"m": {"value": "1"}}
SET = {"name": "c", "counters": COUNTERS}
CONSUMES = {"counterSet": "c", "counters": COUNTERS}
TERM = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
POOL = {"name": "n1", "generation": 1, "resourceSliceCount": 1}


def device(name: str = "d", **fields: object) -> Document:
    return {"name": name, **fields}


def many(count: int) -> list[Document]:
    return [device(f"d{i}") for i in range(count)]


def counters(count: int) -> Document:
    return {f"m{i}": {"value": "1"} for i in range(count)}


def attributes(count: int) -> Document:
    return {f"a{i}": {"int": i} for i in range(count)}


def slice_of(
    devices: list[Document] | None = None, *, name: str = "probe", **spec: object
) -> Document:
    """A slice; a field of None is left out."""
    fields = {"driver": "d.test", "nodeName": "n1", "pool": POOL, "devices": devices, **spec}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def made(name: str, body: object, query: str = "") -> Probe:
    """A slice that is tried, not made."""
    return Probe(name, (Step("POST", f"{PATH}?dryRun=All{query}", body),))


def with_device(name: str, /, **fields: object) -> Probe:
    return made(name, slice_of([{"name": "d", **fields}]))


SLICES = (
    made("128 devices", slice_of(many(128))),
    made("129 devices", slice_of(many(129))),
    made("64 devices, one tainted", slice_of([*many(63), device("x", taints=[TAINT])])),
    made("65 devices, one tainted", slice_of([*many(64), device("x", taints=[TAINT])])),
    made(
        "65 devices, one with an empty list of taints",
        slice_of([*many(64), device("x", taints=[])]),
    ),
    made(
        "65 devices, one consuming", slice_of([*many(64), device("x", consumesCounters=[CONSUMES])])
    ),
    made("no devices", slice_of([])),
    made("neither devices nor counters", slice_of()),
    with_device("16 taints", taints=[{"key": f"a/b{i}", "effect": "None"} for i in range(16)]),
    with_device("17 taints", taints=[{"key": f"a/b{i}", "effect": "None"} for i in range(17)]),
    with_device("one taint twice", taints=[TAINT, TAINT]),
    with_device("taint without key and effect", taints=[{"key": "", "effect": ""}]),
    with_device(
        "taint of bad key, value and effect",
        taints=[{"key": "a/b/c", "value": "é", "effect": "PreferNoSchedule"}],
    ),
    with_device(
        "taint with its time", taints=[{**TAINT, "timeAdded": "2020-01-01T01:00:00.9+01:00"}]
    ),
    with_device("taint without its time", taints=[TAINT]),
    with_device("taint with a time that is none", taints=[{**TAINT, "timeAdded": "yes"}]),
    made("one device twice", slice_of([device(), device()])),
    with_device("device in upper case", name="A"),
    with_device("device with a dot", name="a.b"),
    with_device("device without a name", name=""),
    with_device("device of 64 characters", name="a" * 64),
    made("8 counter sets", slice_of(sharedCounters=[{**SET, "name": f"c{i}"} for i in range(8)])),
    made("9 counter sets", slice_of(sharedCounters=[{**SET, "name": f"c{i}"} for i in range(9)])),
    made(
        "32 counters in a set", slice_of(sharedCounters=[{"name": "c", "counters": counters(32)}])
    ),
    made(
        "33 counters in a set", slice_of(sharedCounters=[{"name": "c", "counters": counters(33)}])
    ),
    made("one counter set twice", slice_of(sharedCounters=[SET, SET])),
    made("counter set without counters", slice_of(sharedCounters=[{"name": "c"}])),
    made(
        "counter set of bad names",
        slice_of(sharedCounters=[{"name": "C_", "counters": {"memorySlice0": {"value": "1"}}}]),
    ),
    made(
        "counter set without a name", slice_of(sharedCounters=[{"counters": {"": {"value": "1"}}}])
    ),
    made(
        "counter without a value", slice_of(sharedCounters=[{"name": "c", "counters": {"m": {}}}])
    ),
    made("counters beside devices", slice_of([device()], sharedCounters=[SET])),
    made("counters beside an empty list of devices", slice_of([], sharedCounters=[SET])),
    with_device("counters of a set that is nowhere", consumesCounters=[CONSUMES]),
    with_device(
        "consumption of less than nothing",
        consumesCounters=[{"counterSet": "c", "counters": {"m": {"value": "-1"}}}],
    ),
    with_device(
        "2 consumptions", consumesCounters=[{**CONSUMES, "counterSet": f"c{i}"} for i in range(2)]
    ),
    with_device(
        "3 consumptions", consumesCounters=[{**CONSUMES, "counterSet": f"c{i}"} for i in range(3)]
    ),
    with_device("one set consumed twice", consumesCounters=[CONSUMES, CONSUMES]),
    with_device(
        "33 counters consumed", consumesCounters=[{"counterSet": "c", "counters": counters(33)}]
    ),
    with_device("consumption without names", consumesCounters=[{}]),
    with_device(
        "consumption of bad names",
        consumesCounters=[{"counterSet": "C", "counters": {"A_": {"value": 1}}}],
    ),
    with_device("32 attributes", attributes=attributes(32)),
    with_device("33 attributes", attributes=attributes(33)),
    with_device(
        "20 attributes and 13 capacities", attributes=attributes(20), capacity=counters(13)
    ),
    with_device("49 attributes", attributes=attributes(49)),
    with_device(
        "4 binding conditions and failures",
        bindingConditions=list("abcd"),
        bindingFailureConditions=list("efgh"),
    ),
    with_device(
        "5 binding conditions and failures",
        bindingConditions=list("abcde"),
        bindingFailureConditions=list("fghij"),
    ),
    with_device("binding conditions without failures", bindingConditions=["a"]),
    with_device("binding failures without conditions", bindingFailureConditions=["a"]),
    with_device(
        "binding condition that is its failure",
        bindingConditions=["a"],
        bindingFailureConditions=["a"],
    ),
    with_device(
        "binding conditions twice",
        bindingConditions=["a", "a"],
        bindingFailureConditions=["b", "b"],
    ),
    with_device(
        "binding conditions of bad names", bindingConditions=["a b"], bindingFailureConditions=[""]
    ),
    with_device("bindsToNode alone", bindsToNode=True),
    made("no nodes", slice_of([device()], nodeName=None)),
    made("two ways to nodes", slice_of([device()], allNodes=True)),
    made("allNodes false", slice_of([device()], allNodes=False)),
    made("allNodes false alone", slice_of([device()], nodeName=None, allNodes=False)),
    made("empty node name", slice_of([device()], nodeName="")),
    made("bad node name", slice_of([device()], nodeName="A_")),
    made(
        "node selector",
        slice_of([device()], nodeName=None, nodeSelector={"nodeSelectorTerms": [TERM]}),
    ),
    made(
        "node selector of two terms",
        slice_of([device()], nodeName=None, nodeSelector={"nodeSelectorTerms": [TERM, TERM]}),
    ),
    made("node selector without terms", slice_of([device()], nodeName=None, nodeSelector={})),
    made(
        "node selector of bad requirements",
        slice_of(
            [device()],
            nodeName=None,
            nodeSelector={
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "k", "operator": "Foo"},
                            {"key": "k", "operator": "In"},
                            {"key": "k", "operator": "Exists", "values": ["x"]},
                        ]
                    }
                ]
            },
        ),
    ),
    made(
        "nodes of each device",
        slice_of([device(nodeName="n")], nodeName=None, perDeviceNodeSelection=True),
    ),
    made(
        "nodes of each device, but not said",
        slice_of([device()], nodeName=None, perDeviceNodeSelection=True),
    ),
    made(
        "nodes of each device, said twice",
        slice_of([device(nodeName="n", allNodes=True)], nodeName=None, perDeviceNodeSelection=True),
    ),
    made(
        "nodes of each device, empty",
        slice_of([device(nodeName="")], nodeName=None, perDeviceNodeSelection=True),
    ),
    made(
        "nodes of each device false",
        slice_of([device()], nodeName=None, perDeviceNodeSelection=False),
    ),
    made("nodes of a device in a slice of one node", slice_of([device(nodeName="n")])),
    made("empty pool", slice_of(pool={})),
    made(
        "pool of bad numbers and name",
        slice_of(pool={"name": "a//b", "generation": -1, "resourceSliceCount": 0}),
    ),
    made("pool in upper case", slice_of(pool={**POOL, "name": "A/b"})),
    made("pool of 254 characters", slice_of(pool={**POOL, "name": "a" * 254})),
    made("pool with a slash", slice_of(pool={**POOL, "name": "a/b", "generation": 0})),
    made("no driver", slice_of(driver="")),
    made("driver in upper case", slice_of(driver="D.test")),
    made("driver of 63 bytes", slice_of(driver="a." * 31 + "a")),
    made("driver of 64 bytes", slice_of(driver="a" * 64)),
    made("driver with an underscore", slice_of(driver="a_b")),
    made("driver of 33 umlauts", slice_of(driver="ä" * 33)),
    made("nothing at all", {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}),
    made(
        "fields of gates that are off",
        slice_of(
            [
                device(
                    nodeAllocatableResources={"cpu": {"mapping": {"deviceMultiplier": "1"}}},
                    consumesCounters=[{**CONSUMES, "compatibilityGroups": ["x"]}],
                )
            ],
            skipNodeOperations=["*"],
            partitionTypeAttribute="x",
        ),
        "&fieldValidation=Strict",
    ),
)
