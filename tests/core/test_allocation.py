import pytest
from hypothesis import given, strategies as st

from accelkit.core.allocation import (
    ContainerEdits,
    Edits,
    Grant,
    Granted,
    Hook,
    Mount,
    equal_share,
    join_edits,
    merged,
)
from accelkit.core.model import Device, DeviceNode, Locality
from accelkit.core.policy import Divide, Sharing
from accelkit.core.values import FrozenMap
from tests.core.things import gpu, of

GIB = 1 << 30
SHARED = DeviceNode(path="/dev/ctl")
MOUNT = Mount(host_path="/opt", container_path="/opt")
HOOK = Hook(name="createContainer", path="/bin/h")


def at(name: str, address: str | None) -> Device:
    return gpu(name, locality=Locality(pci_address=address))


def edits_of(name: str) -> ContainerEdits:
    return ContainerEdits(
        env=FrozenMap({"VISIBLE": "void", f"ONLY_{name.upper()}": "1"}),
        nodes=(SHARED, DeviceNode(path=f"/dev/{name}")),
        mounts=(MOUNT,),
        hooks=(HOOK,),
        gids=(44,),
        joined=FrozenMap({"VISIBLE": name}),
    )


def test_a_set_is_in_order_of_pci_address_then_id_then_share() -> None:
    b, a, c, d = at("b", "0000:01:00.0"), at("a", "0000:02:00.0"), at("c", None), at("d", None)
    granted = [Granted(device=x) for x in (d, c, a)]
    granted += [Granted(device=b, share="1"), Granted(device=b, share="0")]

    order = [(g.device.id.name, g.share) for g in Grant(owner="x", granted=tuple(granted)).granted]

    assert order == [("b", "0"), ("b", "1"), ("a", None), ("c", None), ("d", None)]


def test_a_mount_is_read_only_unless_it_says_otherwise() -> None:
    assert MOUNT.read_only
    assert not Mount(host_path="/a", container_path="/a", options=("rw",)).read_only


def test_edits_are_true_if_they_say_anything() -> None:
    assert not ContainerEdits()
    assert ContainerEdits(joined=FrozenMap({"A": "1"}))


def test_one_answer_for_a_set_joins_lists_and_says_the_rest_once() -> None:
    whole = ContainerEdits(env=FrozenMap({"BOUNDS": "1,2,1"}), gids=(7,))
    edits = Edits(each=FrozenMap({of(n): edits_of(n) for n in ("a", "b")}), whole=whole)

    assert join_edits(edits, [of("b"), of("a"), of("b")]) == ContainerEdits(
        env=FrozenMap({"VISIBLE": "b,a", "ONLY_A": "1", "ONLY_B": "1", "BOUNDS": "1,2,1"}),
        nodes=(SHARED, DeviceNode(path="/dev/a"), DeviceNode(path="/dev/b")),
        mounts=(MOUNT,),
        hooks=(HOOK,),
        gids=(7, 44),
    )


def test_variables_of_the_set_come_last() -> None:
    one = ContainerEdits(env=FrozenMap({"A": "each"}))
    whole = ContainerEdits(env=FrozenMap({"A": "whole"}))

    joined = join_edits(Edits(each=FrozenMap({of("a"): one}), whole=whole), [of("a")])

    assert joined == whole


@given(st.permutations("abc"))
def test_lists_follow_the_order_of_the_grant(order: list[str]) -> None:
    edits = Edits(each=FrozenMap({of(n): edits_of(n) for n in "abc"}))

    assert join_edits(edits, [of(n) for n in order]).env["VISIBLE"] == ",".join(order)


def test_edits_of_two_sets_are_merged() -> None:
    one = ContainerEdits(
        env=FrozenMap({"A": "1"}), gids=(2,), mounts=(Mount(host_path="/a", container_path="/a"),)
    )
    other = ContainerEdits(
        env=FrozenMap({"B": "2"}),
        gids=(1,),
        nodes=(DeviceNode(path="/dev/x"),),
        hooks=(Hook(name="createContainer", path="/bin/x"),),
        joined=FrozenMap({"C": "3"}),
    )

    both = merged(one, other)

    assert merged(ContainerEdits(), other) == other
    assert both == ContainerEdits(
        env=FrozenMap({"A": "1", "B": "2"}),
        gids=(1, 2),
        mounts=one.mounts,
        nodes=other.nodes,
        hooks=other.hooks,
        joined=FrozenMap({"C": "3"}),
    )


def test_equal_shares_have_whole_units_of_memory() -> None:
    capacity = {"memory": 80 * GIB, "decoders": 7}
    sharing = Sharing(shares=3, divide=Divide.EQUAL)

    assert equal_share(capacity, sharing) == FrozenMap({"memory": 26 * GIB, "decoders": 2})


def test_a_share_smaller_than_a_unit_is_as_it_is() -> None:
    sharing = Sharing(shares=4, divide=Divide.EQUAL)

    assert equal_share({"memory": 2 * GIB}, sharing) == FrozenMap({"memory": GIB // 2})


@pytest.mark.parametrize(
    "sharing", [Sharing(shares=3), Sharing(divide=Divide.EQUAL), Sharing(divide=Divide.REQUESTED)]
)
def test_what_is_not_divided_equally_has_no_share(sharing: Sharing) -> None:
    assert equal_share({"memory": GIB}, sharing) == FrozenMap()


def test_what_has_no_memory_is_divided_all_the_same() -> None:
    assert equal_share({"cores": 8}, Sharing(shares=4, divide=Divide.EQUAL)) == FrozenMap(
        {"cores": 2}
    )
