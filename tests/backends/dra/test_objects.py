"""Slices as objects, and back."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from accelkit.backends.dra.objects import Owner, slice_name, slice_object
from accelkit.backends.dra.pool import (
    Capacity,
    Consumption,
    CounterSet,
    Effect,
    Pool,
    PoolDevice,
    RequestPolicy,
    Slice,
    Taint,
)
from accelkit.backends.dra.quantity import read, written
from accelkit.backends.dra.stored import read_slice
from accelkit.core.kube import Json
from accelkit.core.limits import AMOUNT_LIMIT, SUBDOMAIN_LIMIT, is_dns_subdomain
from accelkit.core.model import Binding
from accelkit.core.values import AttributeValue, FrozenMap, Version

GIB = 1 << 30
OWNER = Owner(name="n1", uid="1111")
COUNTERS = FrozenMap({"slot-0": 2, "ofa": 1})
ATTRIBUTES: dict[str, AttributeValue] = {
    "model": "X100",
    "driverVersion": Version(1, 2, 3),
    "index": 0,
    "ecc": True,
    "resource.kubernetes.io/numaNode": (0, 1),
    "modes": ("a", "b"),
}
DEVICE = PoolDevice(
    name="gpu-0",
    attributes=FrozenMap(ATTRIBUTES),
    capacity=FrozenMap(
        {
            "memory": Capacity(
                value=80 * GIB,
                policy=RequestPolicy(default=10 * GIB, least=GIB, most=80 * GIB, step=GIB),
            ),
            "shares": Capacity(value=8, policy=RequestPolicy(default=1, values=(1,))),
            "bandwidth": Capacity(value=3000),
        }
    ),
    consumes=(Consumption(counter_set="gpu-0", counters=COUNTERS),),
    taints=(
        Taint(
            key="accelkit.dev/burnt",
            effect=Effect.NO_EXECUTE,
            value="yes",
            added=datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC),
        ),
        Taint(key="accelkit.dev/warm", effect=Effect.NONE),
    ),
    shareable=True,
    binding=Binding(conditions=("ready",), failures=("failed",), node=True),
)
POOL = Pool(
    driver="acme.accelkit.dev",
    name="n1",
    slices=(
        Slice(counter_sets=(CounterSet(name="gpu-0", counters=COUNTERS),)),
        Slice(devices=(DEVICE,)),
    ),
)


def test_counter_sets_and_devices_are_written_as_kubernetes_has_them() -> None:
    assert slice_object(POOL, 0, generation=7, owner=OWNER) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": "00000-acme.accelkit.dev-n1",
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": "n1",
                    "uid": "1111",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "driver": "acme.accelkit.dev",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 7, "resourceSliceCount": 2},
            "sharedCounters": [
                {"name": "gpu-0", "counters": {"slot-0": {"value": "2"}, "ofa": {"value": "1"}}}
            ],
        },
    }
    counters = {"slot-0": {"value": "2"}, "ofa": {"value": "1"}}
    assert cast("dict[str, object]", slice_object(POOL, 1)["spec"])["devices"] == [
        {
            "name": "gpu-0",
            "attributes": {
                "model": {"string": "X100"},
                "driverVersion": {"version": "1.2.3"},
                "index": {"int": 0},
                "ecc": {"bool": True},
                "resource.kubernetes.io/numaNode": {"ints": [0, 1]},
                "modes": {"strings": ["a", "b"]},
            },
            "capacity": {
                "memory": {
                    "value": "80Gi",
                    "requestPolicy": {
                        "default": "10Gi",
                        "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"},
                    },
                },
                "shares": {"value": "8", "requestPolicy": {"default": "1", "validValues": ["1"]}},
                "bandwidth": {"value": "3k"},
            },
            "consumesCounters": [{"counterSet": "gpu-0", "counters": counters}],
            "taints": [
                {
                    "key": "accelkit.dev/burnt",
                    "value": "yes",
                    "effect": "NoExecute",
                    "timeAdded": "2026-11-29T01:02:03Z",
                },
                {"key": "accelkit.dev/warm", "effect": "None"},
            ],
            "allowMultipleAllocations": True,
            "bindsToNode": True,
            "bindingConditions": ["ready"],
            "bindingFailureConditions": ["failed"],
        }
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_what_was_written_is_read_back(number: int) -> None:
    stored = read_slice(slice_object(POOL, number, generation=7, owner=OWNER, version="12"))

    assert stored.slice == POOL.slices[number]
    assert (stored.name, stored.version) == (slice_name("acme.accelkit.dev", "n1", number), "12")
    assert (stored.driver, stored.node, stored.pool) == ("acme.accelkit.dev", "n1", "n1")
    assert (stored.generation, stored.count) == (7, 2)
    assert [stored.owned_by(owner) for owner in (OWNER, Owner(name="n1", uid="2"))] == [True, False]


def test_time_of_a_taint_is_read_back_and_is_no_difference() -> None:
    (device,) = (read_slice(slice_object(POOL, 1)).slice or Slice()).devices

    assert device.taints[0].added == datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC)
    assert device == DEVICE


def test_slice_that_is_only_shown_has_no_owner() -> None:
    assert "ownerReferences" not in cast("Json", slice_object(POOL, 0)["metadata"])


def changed(**device: Any) -> Json:  # type: ignore[explicit-any]  # JSON
    item = dict(slice_object(POOL, 1))
    spec = dict(cast("Json", item["spec"]))
    (first,) = cast("list[dict[str, object]]", spec["devices"])
    spec["devices"] = [{**first, **device}]
    return {**item, "spec": spec}


@pytest.mark.parametrize(
    "item",
    [
        changed(nodeName="n2"),
        changed(attributes={"model": {"string": "X", "int": 1}}),
        changed(attributes={"model": {"float": 1.5}}),
        changed(attributes={"model": {"version": "v1"}}),
        changed(attributes={"model": {"ints": ["1"]}}),
        changed(attributes={"model": {"int": None}}),
        changed(attributes={"model": 7}),
        changed(capacity={"memory": {"value": "500m"}}),
        changed(capacity={"memory": {"value": 5}}),
        changed(capacity={"memory": {}}),
        changed(taints=[{"key": "a", "effect": "Sometimes"}]),
        changed(taints="bad"),
        changed(bindingConditions=[1]),
        changed(consumesCounters=[{"counterSet": "gpu-0", "counters": {"a": 1}}]),
        {"spec": {"driver": "d", "devices": [7]}},
        {"spec": {"driver": "d", "partitionTypeAttribute": "a"}},
    ],
)
def test_what_we_never_write_is_no_slice_of_ours(item: Json) -> None:
    assert read_slice(item).slice is None


@pytest.mark.parametrize("item", [{}, {"spec": None, "metadata": 7}, {"spec": {"pool": []}}])
def test_anything_can_be_read(item: Json) -> None:
    stored = read_slice(item)

    assert (stored.name, stored.generation, stored.owned_by(OWNER)) == ("", 0, False)


def test_names_sort_by_place_and_fit() -> None:
    long = slice_name("d" * 63, "n" * 253, 17)

    assert slice_name("d.example", "n1", 17) == "00011-d.example-n1"
    assert (len(long), is_dns_subdomain(long)) == (SUBDOMAIN_LIMIT, True)
    assert long != slice_name("d" * 63, f"{'n' * 252}m", 17)


@pytest.mark.parametrize(
    "amount,text",
    [
        (0, "0"),
        (1, "1"),
        (1000, "1k"),
        (1024, "1Ki"),
        (1_500_000, "1500k"),
        (1024 * 1000, "1000Ki"),
        (85520809984, "81559Mi"),
        (5 * 1000**2, "5M"),
    ],
)
def test_amounts_are_written_as_the_server_keeps_them(amount: int, text: str) -> None:
    assert written(amount) == text


@given(st.integers(0, AMOUNT_LIMIT))
def test_amount_is_read_as_it_was_written(amount: int) -> None:
    assert read(written(amount)) == amount
