"""The state of a kubelet's device manager, without a kubelet."""

import random

import pytest
from hypothesis import given, strategies as st

from accelkit.conformance.sims.choosing import (
    Policy,
    Rejected,
    affinity_of,
    check_held,
    complete,
    plan,
)
from accelkit.conformance.sims.devices import (
    AlreadyConnected,
    Devices,
    Endpoint,
    Listing,
    quantity,
)
from accelkit.conformance.sims.events import ListedDevice


def state(*, per_socket: bool = True, grace_s: float = 300.0) -> Devices:
    return Devices(per_socket=per_socket, grace_s=grace_s, rng=random.Random(0))


def listing(**nodes: tuple[int, ...]) -> Listing:
    known = {name: ListedDevice(name, True, where) for name, where in nodes.items()}
    return Listing(set(known), set(), known)


def listed(*names: str) -> tuple[ListedDevice, ...]:
    return tuple(ListedDevice(name, True) for name in names)


@pytest.mark.parametrize(
    "amount, text",
    [
        (0, "0"),
        (7, "7"),
        (1000, "1k"),
        (1500, "1500"),
        (10_000, "10k"),
        (2_000_000, "2M"),
        (10**13, "10T"),
    ],
)
def test_quantity_is_canonical(amount: int, text: str) -> None:
    assert quantity(amount) == text


def test_nothing_is_known_at_first() -> None:
    assert state().amounts(0.0) == {}


@pytest.mark.parametrize("per_socket", [True, False])
def test_single_endpoint_ends_alike_in_every_release(per_socket: bool) -> None:
    devices = state(per_socket=per_socket)
    endpoint = Endpoint("a/b", "/a")
    devices.connect(endpoint)
    devices.listed("a/b", listed("d0"))
    assert devices.serving("a/b") is endpoint

    assert devices.end("a/b", "/a", 0.0) == (endpoint,)
    assert devices.serving("a/b") is None
    assert devices.amounts(299.0) == {"a/b": (1, 0)}
    assert devices.has_endpoint("a/b", 299.0)
    assert devices.amounts(300.0) == {"a/b": (0, 0)}
    assert not devices.has_endpoint("a/b", 300.0)


def test_path_that_is_known_is_refused_and_its_client_forgotten() -> None:
    devices = state()
    devices.connect(Endpoint("a/b", "/a"))

    with pytest.raises(AlreadyConnected):
        devices.connect(Endpoint("a/b", "/a"))
    assert devices.end("a/b", "/a", 0.0) == ()


def test_one_socket_may_serve_two_resources() -> None:
    devices = state()
    endpoints = [Endpoint(name, "/a") for name in ("a/b", "a/c")]
    for endpoint in endpoints:
        devices.connect(endpoint)

    assert devices.end("a/b", "/a", 0.0) == (endpoints[0],)
    assert devices.serving("a/c") is endpoints[1]


def test_any_of_the_rest_is_promoted_even_if_the_one_that_ended_did_not_serve() -> None:
    """Which one is by chance, so that many goes show both."""
    promoted = set()
    for seed in range(20):
        devices = Devices(per_socket=True, grace_s=300.0, rng=random.Random(seed))
        for path in ("/a", "/b", "/c"):
            devices.connect(Endpoint("a/b", path))
        devices.end("a/b", "/a", 0.0)
        serving = devices.serving("a/b")
        promoted.add(serving.path if serving else "")

    assert promoted == {"/b", "/c"}


def test_end_of_any_is_the_end_of_the_newest_up_to_1_36() -> None:
    devices = state(per_socket=False)
    older, newer = Endpoint("a/b", "/a"), Endpoint("a/b", "/b")
    devices.connect(older)
    devices.connect(newer)

    assert devices.end("a/b", "/a", 0.0) == (newer,)
    assert devices.end("a/b", "/b", 0.0) == ()


def test_restart_keeps_names_only() -> None:
    devices = state()
    devices.connect(Endpoint("a/b", "/a"))
    devices.listed("a/b", listed("d0"))

    devices.restart(0.0)

    assert devices.amounts(0.0) == {"a/b": (0, 0)}
    assert devices.serving("a/b") is None
    devices.connect(Endpoint("a/b", "/a"))


def test_registration_after_the_grace_brings_the_name_back() -> None:
    devices = state(grace_s=1.0)
    devices.connect(Endpoint("a/b", "/a"))
    devices.end("a/b", "/a", 0.0)
    assert devices.amounts(1.0) == {"a/b": (0, 0)}

    devices.connect(Endpoint("a/b", "/b"))
    devices.listed("a/b", listed("d0"))

    assert devices.amounts(1000.0) == {"a/b": (1, 1)}


def test_more_than_the_aligned_must_include_all_of_them() -> None:
    rng = random.Random(0)
    known = listing(a=(0,), b=(0,), c=(1,), d=())
    planned = plan("a/b", known, size=3, used=(), reusable=(), affinity=frozenset({0}), rng=rng)

    assert (planned.taken, planned.ask) == (frozenset("ab"), frozenset("abcd"))
    # Devices on another node come before those on none, if the plugin has no wish.
    assert complete(planned, (), rng) == {"a", "b", "c"}
    assert complete(planned, ("d",), rng) == {"a", "b", "d"}


def test_container_that_is_down_needs_its_resource_registered() -> None:
    with pytest.raises(Rejected, match="cannot allocate unregistered device a/b"):
        check_held("a/b", None, ("d0",))


def test_narrowest_nodes_win_and_the_lowest_of_them() -> None:
    known = listing(a=(0,), b=(1,), c=(1,))

    def found(size: int, policy: Policy) -> frozenset[int] | None:
        return affinity_of(
            known, size=size, available=("a", "b", "c"), reusable=(), host=(0, 1), policy=policy
        )

    assert found(1, Policy.RESTRICTED) == frozenset({0})
    assert found(2, Policy.RESTRICTED) == frozenset({1})
    assert found(3, Policy.BEST_EFFORT) == frozenset({0, 1})
    assert found(3, Policy.NONE) is None


def test_alignment_that_was_possible_with_all_free_is_missed_by_a_strict_policy() -> None:
    known = listing(a=(0,), b=(0,), c=(1,))

    with pytest.raises(Rejected, match="Topology locality"):
        affinity_of(
            known, size=2, available=("a", "c"), reusable=(), host=(0, 1), policy=Policy.RESTRICTED
        )


def test_nodes_hold_all_devices_that_are_reused() -> None:
    known = listing(a=(0,), b=(0,), c=(1,), d=())

    found = affinity_of(
        known,
        size=2,
        available=("a", "b"),
        reusable=("c", "d"),
        host=(0, 1),
        policy=Policy.BEST_EFFORT,
    )

    assert found == frozenset({0, 1})


def test_devices_without_topology_are_never_aligned_to() -> None:
    known = listing(a=(), b=())

    assert (
        affinity_of(known, size=1, available=("a",), reusable=(), host=(0, 1), policy=Policy.SINGLE)
        is None
    )


def test_one_node_host_has_nothing_to_align_under_the_one_node_policy() -> None:
    known = listing(a=(0,))

    assert (
        affinity_of(known, size=1, available=("a",), reusable=(), host=(0,), policy=Policy.SINGLE)
        is None
    )


@given(
    free=st.sets(st.sampled_from("abcdefgh"), min_size=1),
    wish=st.lists(st.sampled_from("abcdefghxy")),
    reusable=st.sets(st.sampled_from("abcd")),
    affinity=st.sampled_from([None, frozenset({0}), frozenset({1})]),
    data=st.data(),
)
def test_choice_has_the_size_and_only_devices_that_may_be_had(
    free: set[str],
    wish: list[str],
    reusable: set[str],
    affinity: frozenset[int] | None,
    data: st.DataObject,
) -> None:
    nodes = {"a": (0,), "b": (0,), "c": (1,), "d": (0, 1)}
    known = listing(**{name: nodes.get(name, ()) for name in sorted(free | reusable)})
    size = data.draw(st.integers(1, len(free | reusable)))
    used = reusable | set("gh")
    rng = random.Random(0)
    may = reusable | (free - used)

    try:
        planned = plan(
            "a/b", known, size=size, used=used, reusable=reusable, affinity=affinity, rng=rng
        )
    except Rejected:
        assert len(may) < size
        return
    chosen = complete(planned, wish, rng)

    assert len(chosen) == size
    assert chosen <= may
    assert planned.taken <= chosen
