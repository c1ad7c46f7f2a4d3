from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import pytest

from accelkit.core.allocation import ContainerEdits, Edits, Grant, Granted, Hook, Mount
from accelkit.core.errors import (
    AllocationError,
    IllegalSet,
    MissingParts,
    PluginContractError,
    PluginError,
    SourceError,
    SourceTimeout,
)
from accelkit.core.host import Host
from accelkit.core.model import Device, DeviceNode, Unreadable
from accelkit.core.policy import Divide, Offer, Sharing
from accelkit.core.reading import device_edits, grant_edits
from accelkit.core.real_host import RealHost
from accelkit.core.values import Enforcement, FrozenMap
from accelkit.core.vendor import Vendor
from tests.core.things import gpu, of

HOST = RealHost()
NULL = DeviceNode(path="/dev/null")
GONE = DeviceNode(path="/dev/accelkit-is-not-there")
BUG = "report it to the author of the plugin for toy"


class Toy(Vendor):
    """Its edits are what it was given; an exception is raised."""

    name = "toy"
    domain = "toy.example"

    def __init__(self) -> None:
        super().__init__(None)
        self.answer: object = None

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:  # noqa: ARG002 - as vendors
        return ()

    def edits(self, host: Host, grant: Grant) -> Edits:
        if self.answer is None:
            return super().edits(host, grant)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # a plugin may answer anything


def grant(*devices: Device, sharing: Sharing = Sharing()) -> Grant:  # noqa: B008 - a value
    return Grant(owner="all", granted=tuple(Granted(device=d) for d in devices), sharing=sharing)


def each(*names: str, **edits: Any) -> Edits:  # type: ignore[explicit-any]  # of ContainerEdits
    return Edits(each=FrozenMap((of(name), ContainerEdits(**edits)) for name in names))


def test_edits_of_one_device_are_its_nodes_by_default() -> None:
    edits = device_edits(Toy(), HOST, gpu("a", nodes=(NULL,)), Offer(name="all"))

    assert edits == ContainerEdits(nodes=(NULL,))


def test_shares_that_divide_a_device_are_told_their_amounts() -> None:
    class Telling(Toy):
        def edits(self, host: Host, grant: Grant) -> Edits:  # noqa: ARG002 - as vendors
            return each("a", env=FrozenMap({"AMOUNTS": str(dict(grant.granted[0].amounts))}))

    device = gpu("a", capacity={"memory": 9})

    def told_amounts(**sharing: Any) -> str:  # type: ignore[explicit-any]  # of Sharing
        terms = Offer(name="all", sharing=Sharing(**sharing))
        return device_edits(Telling(), HOST, device, terms).env["AMOUNTS"]

    assert told_amounts(shares=2, divide=Divide.EQUAL) == "{'memory': 4}"
    assert told_amounts(shares=2) == "{}"
    assert told_amounts(shares=1, divide=Divide.EQUAL) == "{}"


def test_host_paths_are_told_as_the_container_runtime_finds_them() -> None:
    host = RealHost("/", seen_as="/seen")
    vendor = Toy()
    vendor.answer = each(
        "a",
        nodes=(NULL, DeviceNode(path="/dev/full", host_path="/dev/zero")),
        mounts=(Mount(host_path="/dev", container_path="/devices"),),
        hooks=(Hook(name="createContainer", path="/bin/sh"),),
    )

    edits = grant_edits(vendor, host, grant(gpu("a"))).each[of("a")]

    assert [(n.path, n.host_path) for n in edits.nodes] == [
        ("/dev/full", "/seen/dev/zero"),
        ("/dev/null", "/seen/dev/null"),
    ]
    assert [(m.host_path, m.container_path) for m in edits.mounts] == [("/seen/dev", "/devices")]
    assert [h.path for h in edits.hooks] == ["/seen/bin/sh"]


def test_scratch_of_a_claim_is_the_agents_and_not_looked_for_on_the_host() -> None:
    host = RealHost("/", seen_as="/seen")
    vendor = Toy()
    mounts = (
        Mount(host_path="/run/own/1", container_path="/a"),
        Mount(host_path="/run/own/1/cache", container_path="/b"),
        Mount(host_path="/dev", container_path="/c"),
    )
    vendor.answer = each("a", mounts=mounts)
    asked = attrs.evolve(grant(gpu("a")), scratch="/run/own/1")

    edits = grant_edits(vendor, host, asked).each[of("a")]

    paths = {mount.container_path: mount.host_path for mount in edits.mounts}
    assert paths == {"/a": "/run/own/1", "/b": "/run/own/1/cache", "/c": "/seen/dev"}


def test_folder_beside_the_scratch_of_a_claim_is_looked_for_on_the_host() -> None:
    vendor = Toy()
    vendor.answer = each("a", mounts=(Mount(host_path="/run/own/10", container_path="/a"),))
    asked = attrs.evolve(grant(gpu("a")), scratch="/run/own/1")

    with pytest.raises(MissingParts, match="/run/own/10 is needed"):
        grant_edits(vendor, HOST, asked)


@pytest.mark.parametrize(
    "edits",
    [
        {"nodes": (GONE,)},
        {"mounts": (Mount(host_path=GONE.path, container_path="/x"),)},
        {"hooks": (Hook(name="createContainer", path=GONE.path),)},
    ],
)
def test_a_host_path_that_is_not_there_is_a_missing_part(edits: Mapping[str, object]) -> None:
    vendor = Toy()
    vendor.answer = each("a", **edits)

    with pytest.raises(MissingParts, match=r"accelkit-is-not-there is needed"):
        grant_edits(vendor, HOST, grant(gpu("a")))


@pytest.mark.parametrize(
    "error",
    [IllegalSet("no"), MissingParts("gone"), SourceTimeout("slow"), PluginContractError("odd")],
)
def test_typed_errors_of_edits_are_passed_on(error: AllocationError | SourceError) -> None:
    vendor = Toy()
    vendor.answer = error

    with pytest.raises(type(error), match=str(error)):
        grant_edits(vendor, HOST, grant(gpu("a")))


@pytest.mark.parametrize("error", [KeyError("uuid"), SystemExit(1)])
def test_other_exceptions_of_edits_are_errors_of_the_plugin(error: BaseException) -> None:
    vendor = Toy()
    vendor.answer = error

    with pytest.raises(PluginError, match=f"edits of toy: {type(error).__name__}") as caught:
        grant_edits(vendor, HOST, grant(gpu("a")))

    assert (caught.value.plugin, caught.value.remedy) == ("toy", BUG)


@pytest.mark.parametrize(
    "answer,words",
    [
        ("nothing", "they are a str"),
        (each(), "toy/a is missing"),
        (each("a", "b"), "toy/b is not in the set"),
        (
            attrs.evolve(each("a"), whole=ContainerEdits(env=FrozenMap({"SET": "1"}))),
            "they describe the set",
        ),
    ],
)
def test_edits_must_be_of_the_set_that_was_asked_for(answer: object, words: str) -> None:
    vendor = Toy()
    vendor.answer = answer

    with pytest.raises(PluginContractError, match=words):
        grant_edits(vendor, HOST, grant(gpu("a")))


def test_a_vendor_with_sets_or_a_library_may_describe_the_set() -> None:
    class Sets(Toy):
        sets = True

    library = Sharing(shares=2, enforce=Enforcement.LIBRARY)
    answer = attrs.evolve(each("a"), whole=ContainerEdits(env=FrozenMap({"SET": "1"})))
    with_sets, with_library = Sets(), Toy()
    with_sets.answer = with_library.answer = answer

    assert grant_edits(with_sets, HOST, grant(gpu("a"))) == answer
    assert grant_edits(with_library, HOST, grant(gpu("a"), sharing=library)) == answer
