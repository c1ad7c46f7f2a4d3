"""One look at a whole node, as values."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import podresources as pr
from accelkit.backends.wire.serve import bind
from accelkit.cli.composing import boot_of, check_installed, choose_vendors
from accelkit.cli.node import NodeReading, read_node
from accelkit.cli.rendering import document_of
from accelkit.core.errors import ConfigError
from accelkit.core.host import Host
from accelkit.core.model import Device, DeviceId, Holder, Holding, Problem
from accelkit.core.policy import Paths, Policy, VendorPolicy
from accelkit.core.real_host import RealHost
from accelkit.core.registry import LoadFailure, Registry
from accelkit.core.values import FrozenMap, HolderKind
from accelkit.core.vendor import PciMatch, Vendor
from accelkit.testing.hosts import open_host


class Toy(Vendor):
    name = "toy"
    domain = "toy.example"

    def discover(self, host: Host) -> Iterator[Device]:
        del host
        yield self.device("t0", kind="toy")


class Unmakable(Toy):
    name = "unmakable"

    def __init__(self, options: object) -> None:
        super().__init__(options)
        raise ZeroDivisionError("no")


class Leaving(Toy):
    name = "leaving"

    def __init__(self, options: object) -> None:
        super().__init__(options)
        raise SystemExit(0)


class Elsewhere(Toy):
    name = "elsewhere"
    hardware: ClassVar[tuple[PciMatch, ...]] = (PciMatch(vendor=0x1234),)


BROKEN = LoadFailure(plugin="broken", code="plugin-load", reason="no module", remedy="install it")
REGISTRY = Registry(
    vendors=FrozenMap({"toy": Toy, "unmakable": Unmakable, "elsewhere": Elsewhere}),
    failures=(BROKEN,),
)


def policy(host: Path, **fields: object) -> Policy:
    paths = Paths(host=str(host), kubelet=str(host / "kubelet"))
    return attrs.evolve(Policy(), paths=paths, **fields)  # type: ignore[arg-type]  # of a policy


async def look(host: Path, **fields: object) -> NodeReading:
    return await read_node(policy(host, **fields), "n1", REGISTRY)


async def test_one_look_has_devices_verdicts_offers_and_edits(tmp_path: Path) -> None:
    toy = DeviceId(vendor="toy", name="t0")

    found = await look(tmp_path)

    assert list(found.view.devices) == [toy]
    assert found.view.verdicts[toy].good
    assert found.view.assignments[toy].terms == Policy().offers[0]
    assert toy in found.view.edits
    assert (found.asked, found.absent, found.host) == (("toy",), ("elsewhere",), str(tmp_path))


async def test_plugins_that_are_not_used_are_problems(tmp_path: Path) -> None:
    found = await look(tmp_path)

    assert found.view.snapshot.problems == (
        Problem(vendor="broken", code="plugin-load"),
        Problem(vendor="unmakable", code="plugin-bug"),
    )
    assert [p.remedy for p in found.view.snapshot.problems] == [
        "install it",
        "report it to the author of the plugin for unmakable",
    ]


def test_vendor_that_ends_the_process_when_it_is_made_is_not_used() -> None:
    registry = Registry(vendors=FrozenMap({"leaving": Leaving, "toy": Toy}))

    chosen = choose_vendors(Policy(), registry, RealHost())

    assert [vendor.name for vendor in chosen.vendors] == ["toy"]
    assert [f.reason for f in chosen.failures] == ["it cannot be made: SystemExit: 0"]


@attrs.frozen
class Impossible:
    root: str = attrs.field(factory=lambda: str(1 // 0))


class Undefaulted(Toy):
    name = "undefaulted"
    options = Impossible


def test_vendor_whose_own_defaults_are_refused_is_not_used_and_others_are() -> None:
    """Seen: nothing was started, for options that nobody had given."""
    registry = Registry(vendors=FrozenMap({"toy": Toy, "undefaulted": Undefaulted}))

    chosen = choose_vendors(Policy(), registry, RealHost())

    assert [vendor.name for vendor in chosen.vendors] == ["toy"]
    assert [f.plugin for f in chosen.failures] == ["undefaulted"]


async def test_only_vendors_that_the_policy_names_are_asked(tmp_path: Path) -> None:
    off = (VendorPolicy(name="toy", enabled=False), VendorPolicy(name="elsewhere"))

    found = await look(tmp_path, vendors=off)

    assert (found.asked, found.absent) == ((), ("elsewhere",))


async def test_kubelet_of_a_real_host_says_which_pods_hold_devices(tmp_path: Path) -> None:
    folder = tmp_path / "kubelet" / "pod-resources"
    folder.mkdir(parents=True)
    held = pr.ContainerDevices(resource_name="toy.example/toy", device_ids=["t0"])
    main = pr.ContainerResources(name="main", devices=[held])
    pod = pr.PodResources(name="p", namespace="ns", containers=[main])

    async def pods(_: pr.ListPodResourcesRequest) -> pr.ListPodResourcesResponse:
        return pr.ListPodResourcesResponse(pod_resources=[pod])

    async with await bind(folder / "kubelet.sock", [services.unary(services.LIST, pods)]):
        found = await look(tmp_path)

    assert found.view.holdings == (
        Holding(
            device=DeviceId(vendor="toy", name="t0"),
            through="kubelet",
            holder=Holder(kind=HolderKind.POD, namespace="ns", pod="p", container="main"),
            resource="toy.example/toy",
        ),
    )


async def test_backend_that_is_not_there_cannot_render(tmp_path: Path) -> None:
    found = await look(tmp_path)

    with pytest.raises(ConfigError, match="'kubelet' is not installed; there are: none"):
        document_of(found, "kubelet")


def test_vendor_whose_plugin_did_not_load_is_not_the_operators_mistake() -> None:
    failed = attrs.evolve(REGISTRY, failures=(BROKEN, attrs.evolve(BROKEN, plugin="kubelet")))
    wanted = attrs.evolve(Policy(), vendors=(VendorPolicy(name="broken"),))

    check_installed(wanted, failed)
    with pytest.raises(ConfigError, match=r"^\$\.offers\[0\]\.through: no backend 'kubelet'"):
        check_installed(wanted, REGISTRY)


def test_vendor_that_refuses_its_options_is_the_operators_mistake(tmp_path: Path) -> None:
    block = VendorPolicy(name="toy", options={"colour": "red"})

    with pytest.raises(ConfigError, match="unknown key"):
        choose_vendors(policy(tmp_path, vendors=(block,)), REGISTRY, RealHost(str(tmp_path)))


def test_boot_is_empty_where_the_host_does_not_tell(tmp_path: Path, basic: Path) -> None:
    assert boot_of(RealHost(str(tmp_path))) == ""
    assert len(boot_of(open_host(str(basic)))) == 36
