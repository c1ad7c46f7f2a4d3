"""What devices say of themselves in slices."""

import attrs
from hypothesis import given, strategies as st

from accelkit.backends.dra.attributes import trimmed, vocabulary
from accelkit.backends.dra.pool import Capacity, Dialect
from accelkit.core.limits import TEXT_LIMIT
from accelkit.core.model import Device, Locality
from accelkit.core.policy import Offer
from accelkit.core.values import AttributeValue, FrozenMap, Version
from tests.backends.dra.views import (
    DRIVER,
    FULL,
    GIB,
    SMALL,
    cut,
    document,
    gpu,
    listed,
    part,
    view_of,
)

LISTS = attrs.evolve(Dialect(), list_attributes=True)


def said(device: Device, dialect: Dialect = FULL) -> FrozenMap[str, AttributeValue]:
    return listed(view_of(device), dialect)[device.id.name].attributes


def test_core_says_whose_what_and_where_a_device_is() -> None:
    assert said(gpu("g0", attributes={"ecc": True, "driver": Version(580, 65, 6)})) == {
        "kind": "gpu",
        "offer": "all",
        "parent": "g0",
        "product": "X100",
        "profile": "whole",
        "vendor": "acme",
        "resource.kubernetes.io/numaNode": 0,
        "resource.kubernetes.io/pciBusID": "0000:41:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:40",
        "ecc": True,
        "driver": Version(580, 65, 6),
    }


def test_partition_and_its_parent_have_the_same_parent() -> None:
    view = view_of(cut("g0"), part("g0", SMALL, 0))
    found = listed(view)

    assert [d.attributes["parent"] for d in found.values()] == ["g0", "g0"]
    assert [d.attributes["profile"] for d in found.values()] == ["whole", "1g.10gb"]


def test_place_that_is_not_known_is_not_said() -> None:
    found = said(gpu("g0", product=None, locality=Locality()))

    assert found["product"] == "unknown"
    assert not [name for name in found if "/" in name]


def test_nearest_nodes_are_a_list_only_where_the_server_keeps_one() -> None:
    device = gpu(
        "g0",
        locality=Locality(numa_node=1, near_nodes=(1, 0)),
        attributes={"modes": ("a", "b"), "none": (), "count": 2},
    )

    assert said(device)["resource.kubernetes.io/numaNode"] == 1
    assert said(device, LISTS)["resource.kubernetes.io/numaNode"] == (1, 0)
    assert "modes" not in said(device)
    assert said(device, LISTS)["modes"] == ("a", "b")
    assert "none" not in said(device, LISTS)


def test_every_device_of_a_vendor_has_the_same_texts() -> None:
    """A selector that looks at what one device lacks stops the pod altogether (seen on 1.37.2)."""
    view = view_of(
        gpu("g0", attributes={"brand": "Pro", "clock": 5}), gpu("g1", attributes={"cc": "9.0"})
    )
    found = listed(view)

    assert (found["g0"].attributes["cc"], found["g1"].attributes["brand"]) == ("unknown", "unknown")
    assert "clock" not in found["g1"].attributes


def test_number_that_some_devices_lack_is_noted() -> None:
    view = view_of(gpu("g0", attributes={"clock": 5}), gpu("g1"), gpu("g2"))

    (problem,) = document(view).problems

    assert (problem.code, problem.subject) == ("attribute-missing", f"{DRIVER}/clock")
    assert problem.reason == "2 devices do not say their clock"


@given(st.text(max_size=70))
def test_text_is_cut_at_a_character(text: str) -> None:
    short = trimmed(text)

    assert text.startswith(short)
    assert len(short.encode()) <= TEXT_LIMIT
    assert short == text or len(text[: len(short) + 1].encode()) > TEXT_LIMIT


def test_texts_are_cut_by_bytes() -> None:
    found = said(gpu("g0", product="ä" * 40, attributes={"brand": "ö" * 40}))

    assert (found["product"], found["brand"]) == ("ä" * 32, "ö" * 32)


def test_version_that_is_too_long_is_left_out() -> None:
    assert "build" not in said(gpu("g0", attributes={"build": Version(1, 2, 3, "x" * 60)}))


def test_surplus_attributes_are_left_out_in_a_fixed_order_and_named() -> None:
    """32 in all: 6 and 3 of the core's, then capacities, then the vendor's by name."""
    many: dict[str, AttributeValue] = {f"a{n:02}": n for n in range(30)}
    view = view_of(gpu("g0", attributes=many), gpu("g1", attributes=many))

    found = listed(view)["g0"]
    (problem,) = document(view).problems

    assert [n for n in found.attributes if n.startswith("a")] == [f"a{n:02}" for n in range(22)]
    assert list(found.capacity) == ["memory"]
    assert problem.code == "attributes-trimmed"
    assert "a22, a23, a24, a25, a26, a27, a28, a29 are left out" in problem.reason


def test_memory_is_the_last_capacity_to_be_left_out() -> None:
    amounts = {f"a{n:02}": n for n in range(40)} | {"memory": GIB}
    found = listed(view_of(gpu("g0", capacity=amounts)))["g0"]

    assert list(found.capacity) == [*(f"a{n:02}" for n in range(22)), "memory"]


def test_lists_share_48_values() -> None:
    words = vocabulary([gpu("g0", attributes={"a": (1,) * 30, "b": 1, "c": 1})], [], lists=True)

    assert (words.names, words.left_out) == (("a", "b"), ("c",))


def test_offer_is_an_attribute_of_its_devices() -> None:
    view = view_of(gpu("g0"), offers=[Offer(name="fast", through="dra")])

    assert listed(view)["g0"].attributes["offer"] == "fast"


def test_capacity_is_what_the_device_has() -> None:
    assert listed(view_of(gpu("g0", capacity={"memory": GIB, "links": 4})))["g0"].capacity == {
        "memory": Capacity(value=GIB),
        "links": Capacity(value=4),
    }
