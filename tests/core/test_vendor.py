from collections.abc import Iterable

import attrs
import pytest

from accelkit.core.allocation import ContainerEdits, Edits, Grant, Granted
from accelkit.core.host import Host
from accelkit.core.model import Device, DeviceNode, Link, Locality, Placement, Profile, Unreadable
from accelkit.core.real_host import RealHost
from accelkit.core.values import AttributeValue, FrozenMap
from accelkit.core.vendor import (
    ABILITIES,
    NoOptions,
    SupportsHealth,
    SupportsLinks,
    Vendor,
    abilities,
)
from tests.core.things import of

HOST = RealHost()


class Plain(Vendor):
    name = "toy"
    domain = "toy.example"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:  # noqa: ARG002 - as vendors
        return ()


class Linked(Plain, SupportsLinks):
    def links(self, host: Host, devices: tuple[Device, ...]) -> Iterable[Link]:  # noqa: ARG002 - as vendors
        return ()


def test_a_vendor_that_only_discovers_is_complete() -> None:
    vendor = Plain(NoOptions())

    vendor.close()

    assert vendor.chosen == NoOptions()
    assert vendor.software(HOST) == {}
    assert abilities(Plain) == ()


def test_a_vendor_that_does_not_discover_is_none() -> None:
    with pytest.raises(TypeError, match="discover"):
        Vendor(NoOptions())  # type: ignore[abstract]  # that is the point


def test_abilities_are_what_a_vendor_declares() -> None:
    assert abilities(Linked) == ("links",)
    assert ABILITIES["links"] is SupportsLinks
    assert not issubclass(Linked, SupportsHealth)


def test_a_device_gets_its_vendors_id() -> None:
    assert Plain(NoOptions()).device("gpu-0", kind="gpu", slots=2) == Device(
        id=of("gpu-0"), kind="gpu", slots=2
    )


def test_a_partition_is_named_by_its_place_and_inherits_what_is_not_said() -> None:
    told: dict[str, AttributeValue] = {"engines": 1, "colour": "red"}
    vendor = Plain(NoOptions())
    profile = Profile(
        name="1g.5gb",
        slug="1g5gb",
        size=1,
        starts=(0, 1),
        capacity=FrozenMap({"memory": 5}),
        attributes=FrozenMap({"engines": 1}),
    )
    parent = vendor.device(
        "gpu-0",
        kind="gpu",
        product="Toy 9",
        locality=Locality(numa_node=1),
        capacity={"memory": 40},
        attributes={**told, "engines": 7, "serial": "S1"},
        own={"serial"},
        nodes=(DeviceNode(path="/dev/toy0"),),
    )

    assert vendor.partition(parent, profile, 1, kind="slice", handle="7") == Device(
        id=of("gpu-0-1g5gb-1"),
        kind="slice",
        product="Toy 9",
        parent=of("gpu-0"),
        placement=Placement(profile="1g.5gb", start=1, size=1),
        locality=Locality(numa_node=1),
        capacity=FrozenMap({"memory": 5}),
        attributes=FrozenMap(told),
        handle="7",
    )
    assert vendor.partition(parent, profile, 0).kind == "gpu"
    assert vendor.partition(parent, attrs.evolve(profile, kind="part"), 0).kind == "part"


def test_edits_are_the_device_nodes_by_default() -> None:
    vendor = Plain(NoOptions())
    node = DeviceNode(path="/dev/toy0")
    device = vendor.device("gpu-0", kind="gpu", nodes=(node,))

    edits = vendor.edits(HOST, Grant(owner="all", granted=(Granted(device=device),)))

    assert edits == Edits(each=FrozenMap({of("gpu-0"): ContainerEdits(nodes=(node,))}))
