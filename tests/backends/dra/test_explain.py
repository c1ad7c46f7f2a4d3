"""Why claims and pods have devices, or none, of what is published."""

from collections.abc import Sequence
from typing import Any

import pytest

from accelkit.backends.dra.explain import LAST_WORD, Cluster, explain_claim
from accelkit.backends.dra.explain_devices import Published, amount
from accelkit.backends.dra.explain_pod import PodFacts, explain_pod, wanted
from accelkit.backends.dra.explain_terms import Truth, truth_of

Document = dict[str, Any]  # type: ignore[explicit-any]  # JSON

DRIVER = "a.example"
OURS = f'device.driver == "{DRIVER}"'


def attribute(name: str) -> str:
    return f'device.attributes["{DRIVER}"].{name}'


def device(name: str, **fields: Any) -> Document:  # type: ignore[explicit-any]  # of a device
    attributes = {"size": {"string": "big"}, "ports": {"int": 2}, "fast": {"bool": True}}
    return {"name": name, "attributes": attributes, **fields}


def a_slice(*devices: Document, number: int = 0, count: int = 1, **spec: Any) -> Document:  # type: ignore[explicit-any]  # of a slice
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": count}
    return {
        "metadata": {"name": f"s{number}"},
        "spec": {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [*devices], **spec},
    }


def a_class(name: str, *expressions: str, **spec: Any) -> Document:  # type: ignore[explicit-any]  # of a class
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}


def a_claim(name: str = "c", **exactly: Any) -> Document:  # type: ignore[explicit-any]  # of a request
    request = {"name": "r", "exactly": {"deviceClassName": "all", **exactly}}
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"devices": {"requests": [request]}},
    }


def given(claim: Document, *devices: str, **result: object) -> Document:
    results = [
        {"request": "r", "driver": DRIVER, "pool": "n1", "device": name, **result}
        for name in devices
    ]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"name": "p"}]}
    return {**claim, "status": status}


def cluster(
    *slices: Document,
    claims: Sequence[Document] = (),
    classes: Sequence[Document] = (),
    **more: bool,
) -> Cluster:
    return Cluster.of([a_class("all", OURS), *classes], slices, claims, **more)


def lines(claim: Document, *slices: Document, **more: Any) -> tuple[str, ...]:  # type: ignore[explicit-any]  # of a cluster
    return explain_claim(claim, cluster(*slices, **more)).lines


# Terms.


@pytest.mark.parametrize(
    "expression, truth",
    [
        (OURS, Truth(holds=True)),
        ('device.driver == "other"', Truth(False, "its driver is not other")),
        (f'{OURS} && {attribute("size")} == "big"', Truth(holds=True)),
        (f'{attribute("size")} == "small"', Truth(False, 'its size is not "small"')),
        (f"{attribute('ports')} == 2 && {attribute('fast')} == true", Truth(holds=True)),
        (f"{attribute('ports')} == 3", Truth(False, "its ports is not 3")),
        (f"{attribute('fast')} == 1", Truth(False, "its fast is not 1")),
        (f'({OURS}) || ({attribute("size")} == "x")', Truth(holds=True)),
        (
            f'(device.driver == "b") || ({attribute("ports")} == 1)',
            Truth(False, "its driver is not b"),
        ),
        (
            f"{attribute('colour')} == 1",
            Truth(False, f"it has no attribute {DRIVER}/colour: the scheduler stops at that"),
        ),
        (
            'device.attributes["b.example"].size == "big"',
            Truth(False, "it has no attribute b.example/size: the scheduler stops at that"),
        ),
        ("size > 3", Truth(None, "not evaluated: size > 3")),
        (f"{OURS} && size > 3", Truth(None, "not evaluated: size > 3")),
        ('device.driver == "b" && size > 3', Truth(False, "its driver is not b")),
        (f"size > 3 || {OURS}", Truth(holds=True)),
        ("", Truth(None, "not evaluated: ")),
    ],
)
def test_expressions_of_simple_forms_are_evaluated_and_others_are_not(
    expression: str, truth: Truth
) -> None:
    one = Published(driver=DRIVER, pool="n1", node="n1", item=device("d"))

    assert truth_of(expression, one) == truth


def test_values_of_different_types_are_not_equal() -> None:
    one = Published(driver=DRIVER, pool="n1", node="n1", item={"attributes": {"n": {"bool": True}}})

    assert not truth_of(f"{attribute('n')} == 1", one).holds


@pytest.mark.parametrize("text, number", [("2Gi", 2**31), ("100m", None), ("", None)])
def test_amounts_are_whole_numbers_or_not_known(text: str, number: int | None) -> None:
    assert amount(text) == number


# Claims.


def test_claim_that_has_a_device_says_which_and_what_is_against_it() -> None:
    there = device("d0", taints=[{"key": "x/lost", "effect": "NoSchedule"}])
    claim = given(a_claim(), "d0", shareID="12345678-90ab")
    beside = given(a_claim("d"), "d0")

    found = explain_claim(claim, cluster(a_slice(there), claims=[claim, beside]))

    assert (found.good, found.verdict) == (True, "claim ns/c is allocated, and used by p")
    said = f"request r: d0 of pool n1 ({DRIVER}), share 12345678; tainted x/lost (NoSchedule)"
    assert found.lines == (f"{said}; 2 claims share it",)


def test_device_that_is_published_no_more_is_said_to_be_gone() -> None:
    found = explain_claim(given(a_claim(), "d9"), cluster(a_slice(device("d0"))))

    assert found.lines == (f"request r: d9 of pool n1 ({DRIVER}); it is not published any more",)


def test_claim_that_could_have_a_device_is_asked_for_its_pod() -> None:
    found = explain_claim(a_claim(), cluster(a_slice(device("d0"), device("d1"))))

    assert found.verdict.endswith(
        "not allocated, though there are devices: is there a pod that uses it?"
    )
    assert found.lines == (
        "request r of class all: 2 of 2 published devices can be had",
        "  can be had: d0, d1 on n1",
        LAST_WORD,
    )


def test_class_that_is_not_there_is_named() -> None:
    claim = a_claim(deviceClassName="none")

    found = explain_claim(claim, cluster(a_slice(device("d0"))))

    assert (found.good, found.verdict) == (False, "claim ns/c is not allocated, and cannot be now")
    assert found.lines[0] == "request r: there is no device class none"


def test_what_is_in_the_way_comes_before_what_was_not_asked_for() -> None:
    small = {**device("d1"), "attributes": {"size": {"string": "small"}}}
    claim = a_claim(selectors=[{"cel": {"expression": f'{attribute("size")} == "big"'}}])
    holder = given(a_claim("h"), "d0")

    assert lines(claim, a_slice(device("d0"), small), claims=[holder])[1:3] == (
        "  held by ns/h: d0 on n1",
        '  its size is not "big": d1 on n1',
    )


def test_selector_that_is_not_evaluated_leaves_it_open() -> None:
    claim = a_claim(selectors=[{"cel": {"expression": "f(device)"}}])

    found = explain_claim(claim, cluster(a_slice(device("d0"))))

    assert found.verdict == "claim ns/c is not allocated; whether it can be was not evaluated"
    assert found.lines[1] == "  not evaluated: f(device): d0 on n1"


def test_taints_keep_away_who_does_not_tolerate_them() -> None:
    taints = [
        {"key": "x/lost", "effect": "NoSchedule", "value": "v"},
        {"key": "n", "effect": "None"},
    ]
    slices = a_slice(device("d0", taints=taints))
    exists, equal, other = (
        {"key": "x/lost", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "x/lost", "value": "v"},
        {"key": "x/lost", "value": "w", "effect": "NoExecute"},
    )

    assert lines(a_claim(), slices)[1] == "  tainted x/lost (NoSchedule): d0 on n1"
    assert "can be had" in lines(a_claim(tolerations=[exists]), slices)[1]
    assert "can be had" in lines(a_claim(tolerations=[equal]), slices)[1]
    assert "tainted" in lines(a_claim(tolerations=[other]), slices)[1]


def test_counters_that_are_used_name_who_uses_them() -> None:
    def part(name: str, slots: str) -> Document:
        takes = [{"counterSet": "gpu", "counters": {"slots": {"value": slots}}}]
        return device(name, consumesCounters=takes)

    sets = a_slice(
        number=1, sharedCounters=[{"name": "gpu", "counters": {"slots": {"value": "7"}}}], count=2
    )
    slices = (a_slice(part("whole", "7"), part("half", "4"), part("rest", "3"), count=2), sets)

    found = lines(a_claim(), *slices, claims=[given(a_claim("h"), "half")])

    assert found[:4] == (
        "request r of class all: 1 of 3 published devices can be had",
        "  can be had: rest on n1",
        "  held by ns/h: half on n1",
        "  what it is cut out of is used by ns/h: whole on n1",
    )


def test_shares_are_had_while_there_is_enough_left() -> None:
    policy = {"default": "0", "validRange": {"min": "0"}}
    capacity = {
        "memory": {"value": "80Gi", "requestPolicy": policy},
        "n": {"value": "2", "requestPolicy": {"default": "1"}},
    }
    slices = a_slice(device("d0", allowMultipleAllocations=True, capacity=capacity))
    half = given(a_claim("h"), "d0", consumedCapacity={"memory": "50Gi", "n": "1"})

    def asking(**amounts: str) -> Document:
        return a_claim(capacity={"requests": amounts})

    assert "can be had" in lines(asking(memory="30Gi"), slices, claims=[half])[1]
    assert lines(asking(memory="31Gi"), slices, claims=[half])[1] == (
        "  30Gi of memory are left, 31Gi wanted: d0 on n1"
    )
    other = given(a_claim("o"), "d0", consumedCapacity={"memory": "0", "n": "1"})
    found = lines(a_claim(), slices, claims=[half, other])
    assert found[1] == "  0 of n are left, 1 wanted: d0 on n1"
    assert lines(asking(other="1"), slices)[1] == "  it has no capacity other: d0 on n1"


def test_amount_of_an_exclusive_device_is_all_of_it() -> None:
    slices = a_slice(device("d0", capacity={"memory": {"value": "8Gi"}}))

    assert "can be had" in lines(a_claim(), slices)[1]
    asked = a_claim(capacity={"requests": {"memory": "9Gi"}})
    assert lines(asked, slices)[1].startswith("  8Gi of memory are left, 9Gi wanted")


def test_admin_access_takes_nothing_and_waits_for_nobody() -> None:
    slices = a_slice(device("d0"))
    admin, holder = given(a_claim("a"), "d0", adminAccess=True), given(a_claim("h"), "d0")

    assert "can be had" in lines(a_claim(), slices, claims=[admin])[1]
    assert "can be had" in lines(a_claim(adminAccess=True), slices, claims=[holder])[1]


def test_pool_that_is_not_complete_gives_nothing() -> None:
    assert lines(a_claim(), a_slice(device("d0"), count=2))[1] == (
        "  pool n1 has 1 of 2 slices: d0 on n1"
    )


def test_more_devices_than_there_are_cannot_be_had() -> None:
    found = explain_claim(a_claim(count=2), cluster(a_slice(device("d0"))))

    assert found.verdict.endswith("cannot be now")
    assert found.lines[0].endswith("1 of 1 published devices can be had, 2 wanted")


def test_alternatives_are_looked_at_one_by_one() -> None:
    claim = a_claim()
    claim["spec"]["devices"]["requests"] = [
        {
            "name": "r",
            "firstAvailable": [
                {"name": "x", "deviceClassName": "none"},
                {"name": "y", "deviceClassName": "all"},
            ],
        }
    ]

    assert [line.split(":")[0] for line in lines(claim, a_slice(device("d0")))][:2] == [
        "request r/x",
        "request r/y of class all",
    ]


def test_many_devices_on_many_nodes_are_counted() -> None:
    slices = []
    for n in range(5):
        one = a_slice(device(f"d{n}"))
        one["spec"] |= {"nodeName": f"n{n}", "pool": {**one["spec"]["pool"], "name": f"n{n}"}}
        slices.append(one)
    del slices[0]["spec"]["nodeName"]

    assert lines(a_claim(), *slices)[1] == (
        "  can be had: 5 devices on any node, n1, n2 and 2 more"
    )


def test_claims_that_could_not_be_read_are_a_doubt() -> None:
    found = lines(a_claim(), a_slice(device("d0")), all_claims=False)

    assert found[-2] == "claims of other namespaces cannot be read: what they hold is not known"


# Pods.

NAME = "example.com/gpu"


def a_pod(*, count: int = 1, resource: str = NAME, **fields: Any) -> Document:  # type: ignore[explicit-any]  # of a pod
    limits = {resource: str(count), "cpu": "1"} if count else {}
    container = {"name": "main", "resources": {"limits": limits}}
    return {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [container, {"name": "other"}]},
        **fields,
    }


def a_node(name: str, **allocatable: str) -> Document:
    return {"metadata": {"name": name}, "status": {"allocatable": allocatable}}


def test_pod_that_asks_for_nothing_is_fine() -> None:
    found = explain_pod(PodFacts(pod=a_pod(count=0)), cluster())

    assert (found.good, found.verdict) == (True, "pod ns/p asks for no devices")


def test_name_that_no_class_has_is_said_to_be_nobodys() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "1 Insufficient"}
    pod = a_pod(status={"conditions": [condition]})

    found = explain_pod(PodFacts(pod=pod, nodes=()), cluster(a_slice(device("d0"))))

    assert (found.good, found.verdict) == (False, "pod ns/p has no node: 1 Insufficient")
    assert found.lines == (f"{NAME}: 1 wanted; no device class has the name {NAME}", LAST_WORD)


def test_name_that_only_a_device_plugin_has_says_where() -> None:
    found = explain_pod(PodFacts(pod=a_pod(), nodes=(a_node("n1", **{NAME: "4"}),)), cluster())

    assert found.lines[0].endswith(f"has the name {NAME}; device plugins have it on n1")


def test_free_devices_of_the_class_of_a_name_are_counted() -> None:
    mapped = a_class("gpus", OURS, extendedResourceName=NAME)

    found = explain_pod(
        PodFacts(pod=a_pod(count=2), nodes=(a_node("n1"),)),
        cluster(a_slice(device("d0"), device("d1")), classes=[mapped]),
    )

    assert found.verdict == "pod ns/p has no node"
    assert found.lines[0] == (
        f"{NAME}: 2 wanted of class gpus: 2 of 2 published devices can be had, 2 wanted"
    )


def test_device_plugin_on_a_node_shadows_the_class() -> None:
    mapped = a_class("gpus", OURS, extendedResourceName=NAME)

    found = explain_pod(
        PodFacts(pod=a_pod(), nodes=(a_node("n1", **{NAME: "4"}), a_node("n2"))),
        cluster(a_slice(device("d0")), classes=[mapped]),
    )

    assert found.lines[0] == (
        f"{NAME}: 1 wanted; on node n1 a device plugin shows 4 of it: there the scheduler takes "
        "those, never devices of class gpus"
    )


def test_of_two_classes_with_a_name_the_newest_is_taken() -> None:
    old, new = (a_class(name, OURS, extendedResourceName=NAME) for name in ("old", "new"))
    old["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2027-01-02T00:00:00Z"

    found = explain_pod(PodFacts(pod=a_pod()), cluster(a_slice(device("d0")), classes=[old, new]))

    assert found.lines[0].endswith("new, old have that name, and the newest is taken: new")
    assert found.lines[1].startswith("nodes cannot be read")


@pytest.mark.parametrize("name, there", [("all", True), ("none", False)])
def test_implicit_name_is_that_of_its_class(name: str, *, there: bool) -> None:
    resource = f"deviceclass.resource.kubernetes.io/{name}"

    found = explain_pod(PodFacts(pod=a_pod(resource=resource), nodes=()), cluster())

    assert ("no device class" not in found.lines[0]) is there


def test_pod_with_claims_is_explained_by_each() -> None:
    pod = a_pod(count=0)
    pod["spec"] |= {
        "nodeName": "n1",
        "resourceClaims": [
            {"name": "a", "resourceClaimName": "c"},
            {"name": "b", "resourceClaimName": "gone"},
            {"name": "t", "resourceClaimTemplateName": "of"},
            {"name": "u", "resourceClaimTemplateName": "of"},
        ],
    }
    pod["status"] = {
        "phase": "Pending",
        "resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made"}],
    }
    claims = (given(a_claim(), "d0"), given(a_claim("made"), "d1"))

    found = explain_pod(
        PodFacts(pod=pod, claims=claims), cluster(a_slice(device("d0"), device("d1")))
    )

    assert (found.good, found.verdict) == (False, "pod ns/p is on node n1, Pending")
    assert found.lines == (
        "claim ns/c is allocated, and used by p",
        f"request r: d0 of pool n1 ({DRIVER})",
        "claim ns/made is allocated, and used by p",
        f"request r: d1 of pool n1 ({DRIVER})",
        "there is no claim gone, which it uses",
        "no claim was made of template of yet: is it there?",
    )


def test_pod_whose_extended_resource_has_a_claim_is_explained_by_it() -> None:
    pod = a_pod(
        status={"phase": "Running", "extendedResourceClaimStatus": {"resourceClaimName": "x"}}
    )
    pod["spec"]["nodeName"] = "n1"

    found = explain_pod(PodFacts(pod=pod, claims=(given(a_claim("x"), "d0"),)), cluster())

    assert (found.good, found.lines[0]) == (True, "claim ns/x is allocated, and used by p")


def test_events_of_the_kubelet_are_told_with_what_they_mean() -> None:
    pod = a_pod()
    pod["spec"]["nodeName"] = "n1"
    notes = (
        "Failed to prepare dynamic resources: forbidden: no relationship found between node 'n1'",
        "Failed to prepare dynamic resources: DRA driver a.example is not registered",
        "Failed to prepare dynamic resources: something of its own",
        "Pulled image",
    )
    events = tuple({"note": note} for note in (*notes, notes[0]))

    told = explain_pod(PodFacts(pod=pod, nodes=(), events=events), cluster()).lines

    assert [line for line in told if line.startswith("event: ")] == [
        f"event: {note}" for note in notes[:3]
    ]
    assert sum("it asks again within 60 to 90 s" in line for line in told) == 2


def test_containers_ask_together() -> None:
    pod = a_pod(count=2)
    pod["spec"]["containers"].append(pod["spec"]["containers"][0])

    assert wanted(pod) == {NAME: 4}
