"""Which devices an operator's words mean."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from accelkit.core.model import Device, DeviceId, Locality, Placement
from accelkit.core.policy import Selection
from accelkit.core.selection import matches, select
from accelkit.core.serde import from_tree
from accelkit.core.values import AttributeValue, FrozenMap, Version

NODE = "train-7"
ATTRIBUTES: dict[str, AttributeValue] = {
    "driver": Version(580, 65, 6),
    "ecc": True,
    "cores": 132,
    "links": ("a/b", "c"),
}
GPU = Device(
    id=DeviceId(vendor="nvidia", name="gpu-1"),
    kind="gpu",
    product="NVIDIA H100 80GB HBM3",
    locality=Locality(pci_address="0000:18:00.0"),
    attributes=FrozenMap(ATTRIBUTES),
    capacity=FrozenMap({"memory": 80 << 30}),
)
PART = Device(
    id=DeviceId(vendor="nvidia", name="gpu-1-1g10gb-0"),
    kind="mig",
    parent=GPU.id,
    placement=Placement(profile="1g.10gb", start=0, size=1),
)


def chosen(tree: dict[str, Any]) -> list[str]:  # type: ignore[explicit-any]  # a tree
    found = select(from_tree(Selection, tree), (GPU, PART), NODE)
    return [d.kind for d in found]


@pytest.mark.parametrize(
    "tree,kinds",
    [
        ({}, ["gpu", "mig"]),
        ({"vendor": "nvidia"}, ["gpu", "mig"]),
        ({"vendor": "amd"}, []),
        ({"vendor": ["amd", "nv*"]}, ["gpu", "mig"]),
        ({"vendor": []}, ["gpu", "mig"]),
        ({"kind": "mig"}, ["mig"]),
        ({"product": "*H100*"}, ["gpu"]),
        ({"product": "*h100*"}, []),
        ({"name": "gpu-1"}, ["gpu"]),
        ({"name": "gpu-?-*"}, ["mig"]),
        ({"pci": "0000:18:*"}, ["gpu"]),
        ({"profile": "1g.*"}, ["mig"]),
        ({"partition": True}, ["mig"]),
        ({"partition": False}, ["gpu"]),
        ({"node": "train-*"}, ["gpu", "mig"]),
        ({"node": "test-*"}, []),
        ({"memory": {"atLeast": "80Gi"}}, ["gpu"]),
        ({"memory": {"atLeast": "81Gi"}}, []),
        ({"memory": {"atMost": "80Gi"}}, ["gpu"]),
        ({"memory": {"atMost": "79Gi"}}, []),
        ({"attributes": {"ecc": True}}, ["gpu"]),
        ({"attributes": {"cores": 132}}, ["gpu"]),
        ({"attributes": {"driver": "580.*"}}, ["gpu"]),
        ({"attributes": {"links": "a*b"}}, ["gpu"]),
        ({"attributes": {"links": ["x", "c"]}}, ["gpu"]),
        ({"attributes": {"cores": []}}, ["gpu", "mig"]),
        ({"kind": "gpu", "partition": True}, []),
        ({"any": [{"kind": "mig"}, {"product": "*H100*"}]}, ["gpu", "mig"]),
        ({"any": [{"kind": "npu"}]}, []),
        ({"all": [{"vendor": "nvidia"}, {"kind": "mig"}]}, ["mig"]),
        ({"not": {"kind": "mig"}}, ["gpu"]),
        ({"not": {}}, []),
        ({"not": {"not": {"kind": "mig"}}}, ["mig"]),
    ],
)
def test_devices_that_match(tree: dict[str, Any], kinds: list[str]) -> None:  # type: ignore[explicit-any]  # a tree
    assert chosen(tree) == kinds


@pytest.mark.parametrize("key", ["product", "pci", "profile"])
def test_no_glob_matches_what_a_device_does_not_have(key: str) -> None:
    bare = Device(id=DeviceId(vendor="a", name="b"), kind="k")

    assert not matches(from_tree(Selection, {key: "*"}), bare, NODE)


@given(st.sampled_from([GPU, PART]), st.sampled_from(["gpu", "mig", "*", "n*", "npu"]))
def test_not_is_the_opposite(device: Device, glob: str) -> None:
    one = Selection(kind=(glob,))

    assert matches(Selection(not_=one), device, NODE) != matches(one, device, NODE)
