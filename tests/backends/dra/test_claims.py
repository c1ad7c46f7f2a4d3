"""From a claim, as the API server has it, to what the driver has to prepare."""

import attrs
import pytest

from accelkit.backends.dra.claims import allocation_of
from accelkit.core.allocation import Allocation, ClaimRef, Piece, PodRef
from accelkit.core.errors import (
    AllocationError,
    ClaimMismatch,
    ConfigRefused,
    UnknownDevice,
)
from accelkit.core.kube import Json
from accelkit.core.model import Device, DeviceId, Placement, Snapshot
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap
from accelkit.core.view import Assignment, View
from tests.backends.dra.service_world import (
    ACME,
    DRIVER,
    SHARE,
    block,
    claim,
    ident,
    result,
    uid,
)

C1 = ClaimRef(uid=uid(1), namespace="default", name="c1")
HEAD = {"apiVersion": "accelkit.dev/v1", "kind": "ClaimConfig"}


def made(tree: Json, view: View = View()) -> Allocation:  # noqa: B008 - a frozen value
    return allocation_of(tree, C1, ACME, view)


def pieces(*results: Json) -> tuple[Piece, ...]:
    return made(claim(1, *results)).pieces


def without(tree: dict[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in tree.items() if name != key}


def test_claim_becomes_an_allocation() -> None:
    assert made(claim(1, config=[block(HEAD)])) == Allocation(
        claim=C1,
        driver=DRIVER,
        pieces=(Piece(device=ident("gpu-0"), request="gpu"),),
        configs=made(claim(1, config=[block(HEAD)])).configs,
        pods=(PodRef(uid=uid(101), namespace="default", name="p1"),),
        drivers=FrozenMap({"acme": DRIVER}),
    )
    assert len(made(claim(1, config=[block(HEAD)])).configs) == 1


def test_results_of_other_drivers_are_left_to_them() -> None:
    other = {**result("gpu-9"), "driver": "other.example.com"}

    assert [piece.device for piece in pieces(other, result("gpu-1"), other)] == [ident("gpu-1")]


def test_share_amounts_and_admin_access_are_taken_over() -> None:
    consumed = {"memory": "10Gi", f"{DRIVER}/cores": "50", "shares": 1, "zero": "0"}

    assert pieces(
        result(shareID=SHARE, consumedCapacity=consumed, request="gpu/small"),
        result("gpu-1", "watch", adminAccess=True),
    ) == (
        Piece(
            device=ident("gpu-0"),
            request="gpu/small",
            share=SHARE,
            amounts=FrozenMap({"memory": 10 << 30, "cores": 50, "shares": 1, "zero": 0}),
        ),
        Piece(device=ident("gpu-1"), request="watch", admin=True),
    )


@pytest.mark.parametrize(
    "toleration, codes",
    [
        ({"operator": "Exists"}, ("*",)),
        ({"key": "accelkit.dev/gpu-lost", "operator": "Exists"}, ("gpu-lost",)),
        ({"key": "accelkit.dev/lost", "operator": "Equal", "effect": "NoExecute"}, ("lost",)),
        ({"key": "accelkit.dev/lost", "operator": "Equal", "value": "ours have none"}, ()),
        ({"key": "example.com/lost", "operator": "Exists"}, ()),
    ],
)
def test_codes_of_taints_that_are_tolerated_are_taken_over(
    toleration: dict[str, object], codes: tuple[str, ...]
) -> None:
    (piece,) = pieces(result(tolerations=[toleration]))

    assert piece.tolerates == codes


def test_two_shares_of_one_device_are_two_pieces() -> None:
    found = pieces(result(shareID="a"), result(request="more", shareID="b"))

    assert [(piece.request, piece.share) for piece in found] == [("gpu", "a"), ("more", "b")]


@pytest.mark.parametrize(
    "quantity", ["1e99", "9223372036854775808", "100m", "-1", "1.5", "", "\u0663", None, [1], {}]
)
def test_amount_that_is_no_whole_number_of_64_bits_is_refused(quantity: object) -> None:
    with pytest.raises(AllocationError, match=r"claim c1, amount of memory: expected"):
        pieces(result(consumedCapacity={"memory": quantity}))


@pytest.mark.parametrize(
    "strange",
    [
        result(pool="node-b"),
        result(pool=""),
        result(""),
        result("GPU_0"),
        result("../gpu-0"),
        result("\u00e4"),
        {"driver": DRIVER},
    ],
)
def test_device_that_cannot_be_on_this_node_is_refused_whatever_else_is(strange: Json) -> None:
    with pytest.raises(UnknownDevice, match="is not on this node, whose pool is 'node-a'"):
        pieces(result(), strange)


def test_blocks_of_classes_come_before_those_of_the_claim() -> None:
    """Whatever the order, the claim wins over its class, and the later block over the earlier."""
    blocks = [
        block({**HEAD, "vendor": {"n": number}}, source=source)
        for number, source in enumerate(("FromClaim", "FromClass", "FromClaim", "FromClass"))
    ]

    found = made(claim(1, config=blocks)).configs

    assert [config.body.vendor["n"] for config in found] == [1, 3, 0, 2]


OTHER = "other.accelkit.dev"
BOTH = attrs.evolve(ACME, siblings=FrozenMap({OTHER: "other", "third.accelkit.dev": "third"}))


def test_claim_with_devices_of_several_of_our_drivers_is_one_whole() -> None:
    """The kubelet asks each driver, but there is one record of a claim."""
    results = (
        result("gpu-1", "gpu"),
        {**result("card-0", "card", consumedCapacity={f"{OTHER}/x": "1"}), "driver": OTHER},
        {**result("alien"), "driver": "alien.example.com"},
        result("gpu-0", "more"),
    )
    blocks = [
        block({**HEAD, "vendor": {"n": 1}}),
        block({**HEAD, "vendor": {"n": 2}}, driver=OTHER),
        block({**HEAD, "vendor": {"n": 3}}, source="FromClass", driver=OTHER),
    ]
    tree = claim(1, *results, config=blocks)
    asked_other = attrs.evolve(
        BOTH, name=OTHER, vendor="other", siblings=FrozenMap({DRIVER: "acme"})
    )

    found = allocation_of(tree, C1, BOTH, View())

    assert found.driver == DRIVER
    assert found.pieces == (
        Piece(device=ident("gpu-1"), request="gpu"),
        Piece(device=ident("gpu-0"), request="more"),
        Piece(
            device=DeviceId(vendor="other", name="card-0"),
            request="card",
            amounts=FrozenMap({"x": 1}),
        ),
    )
    assert [(c.body.vendor["n"], c.requests) for c in found.configs] == [
        (3, ("card",)),
        (1, ("gpu", "more")),
        (2, ("card",)),
    ]
    assert allocation_of(tree, C1, asked_other, View()) == found


def test_driver_is_not_asked_for_what_its_siblings_alone_have() -> None:
    tree = claim(1, {**result("card-0"), "driver": OTHER})

    with pytest.raises(ClaimMismatch, match=f"claim c1 has no device of {DRIVER}"):
        allocation_of(tree, C1, BOTH, View())


def test_claim_without_a_device_of_ours_is_refused() -> None:
    with pytest.raises(ClaimMismatch, match=f"claim c1 has no device of {DRIVER}"):
        pieces({**result(), "driver": "other.example.com"})


@pytest.mark.parametrize("status", [None, {}, {"allocation": None}, {"allocation": {}}, "x", []])
def test_claim_that_is_not_allocated_is_refused(status: object) -> None:
    with pytest.raises(ClaimMismatch, match="claim c1 is not allocated"):
        made({**claim(1), "status": status})


@pytest.mark.parametrize("tree", [claim(2), without(claim(1), "metadata"), {}])
def test_claim_with_another_uid_is_refused(tree: Json) -> None:
    with pytest.raises(ClaimMismatch, match="is another one by now"):
        made(tree)


def test_only_pods_count_as_pods() -> None:
    tree = claim(1)
    tree["status"] = {
        **dict(tree["status"]),  # type: ignore[call-overload]  # a mapping, see claim()
        "reservedFor": [
            {"resource": "pods", "name": "p", "uid": "1"},
            {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "2"},
            {"apiGroup": "other.example.com", "resource": "pods", "name": "q", "uid": "3"},
            "strange",
        ],
    }

    assert made(tree).pods == (PodRef(uid="1", namespace="default", name="p"),)


def test_wrong_configuration_is_refused() -> None:
    with pytest.raises(ConfigRefused, match=r"\$\.env: unknown key"):
        made(claim(1, config=[block({**HEAD, "env": {}})]))


EXTENDED = {"resource.kubernetes.io/extended-resource-claim": "true"}


def offered_as(name: str, *devices: Device) -> View:
    terms = Offer(name="x", through="dra", extended_resource=name)
    return View(
        snapshot=Snapshot(devices=tuple(d for d in devices if d.parent is None)),
        potential=tuple(d for d in devices if d.parent is not None),
        assignments=FrozenMap((device.id, Assignment(terms=terms)) for device in devices),
    )


def part(name: str) -> Device:
    return Device(
        id=ident(name),
        kind="part",
        parent=DeviceId(vendor="acme", name="gpu-0"),
        placement=Placement(profile="1g.10gb+me", start=0, size=1),
    )


def gpu(name: str) -> Device:
    return Device(id=ident(name), kind="gpu")


@pytest.mark.parametrize(
    "view, expected",
    [
        (offered_as("acme.com/gpu", gpu("gpu-0")), "acme.com/gpu"),
        (offered_as("acme.com/x-{profile}", gpu("gpu-0"), part("gpu-0-1g-0")), "acme.com/x-whole"),
        (offered_as("", gpu("gpu-0")), "deviceclass.resource.kubernetes.io/acme"),
        (View(), "deviceclass.resource.kubernetes.io/acme"),
    ],
)
def test_extended_resource_is_known_by_the_offer_or_else_by_the_class(
    view: View, expected: str
) -> None:
    assert made(claim(1, annotations=EXTENDED), view).extended == expected
    assert made(claim(1), view).extended is None


def test_claim_for_several_extended_resources_names_them_all() -> None:
    view = offered_as("acme.com/x-{profile}", gpu("gpu-0"), part("gpu-0-1g-0"))
    tree = claim(
        1, result(), result("gpu-0-1g-0", "part"), result("gpu-0-1g-0"), annotations=EXTENDED
    )

    assert made(tree, view).extended == "acme.com/x-1g.10gb.me,acme.com/x-whole"


def test_class_of_a_subrequest_is_found() -> None:
    requests = [{"name": "gpu", "firstAvailable": [{"name": "small", "deviceClassName": "little"}]}]
    tree = {
        **claim(1, result(request="gpu/small"), annotations=EXTENDED),
        "spec": {"devices": {"requests": requests}},
    }

    assert made(tree).extended == "deviceclass.resource.kubernetes.io/little"


def test_extended_claim_whose_resource_nobody_knows_has_none() -> None:
    assert made(without(claim(1, annotations=EXTENDED), "spec")).extended is None
