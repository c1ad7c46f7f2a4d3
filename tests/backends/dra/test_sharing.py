"""What claims may ask of a device that several have at once."""

import pytest
from hypothesis import given, strategies as st

from accelkit.backends.dra.checking import check_slice
from accelkit.backends.dra.pool import Capacity, Dialect, PoolDevice, RequestPolicy, Slice
from accelkit.backends.dra.sharing import capacity_of, is_shared
from accelkit.core.policy import Divide, Offer, Sharing
from accelkit.core.units import Bytes
from accelkit.core.values import FrozenMap
from tests.backends.dra.views import GIB, gpu, held, listed, view_of

ANY = RequestPolicy(default=0, least=0)
ONE = Capacity(value=4, policy=RequestPolicy(default=1, values=(1,)))
AMOUNTS = FrozenMap({"memory": 80 * GIB, "links": 4})


def fixed(value: int, amount: int) -> Capacity:
    return Capacity(value=value, policy=RequestPolicy(default=amount, values=(amount,)))


@pytest.mark.parametrize("sharing", [Sharing(), Sharing(divide=Divide.EQUAL)])
def test_device_for_one_has_plain_capacities(sharing: Sharing) -> None:
    assert not is_shared(sharing)
    assert capacity_of(AMOUNTS, sharing) == {
        "memory": Capacity(value=80 * GIB),
        "links": Capacity(value=4),
    }


def test_shares_that_divide_nothing_take_nothing_but_themselves() -> None:
    assert capacity_of(AMOUNTS, Sharing(shares=4)) == {
        "memory": Capacity(value=80 * GIB, policy=ANY),
        "links": Capacity(value=4, policy=ANY),
        "shares": ONE,
    }


def test_equal_shares_have_equal_parts_in_whole_units() -> None:
    found = capacity_of(FrozenMap({"memory": 81 * GIB + 5}), Sharing(shares=4, divide=Divide.EQUAL))

    assert found == {
        "memory": fixed(81 * GIB + 5, 20 * GIB),
        "cores": fixed(100, 25),
        "shares": ONE,
    }


def test_every_one_of_many_equal_shares_has_some_cores() -> None:
    """A vendor takes none for no limit."""
    found = capacity_of(FrozenMap({"memory": GIB}), Sharing(shares=128, divide=Divide.EQUAL))

    assert found["cores"] == fixed(128, 1)


def test_equal_part_that_is_less_than_a_unit_is_not_rounded_to_nothing() -> None:
    found = capacity_of(FrozenMap({"memory": 2 * GIB}), Sharing(shares=4, divide=Divide.EQUAL))

    assert found["memory"] == fixed(2 * GIB, GIB // 2)


def test_amounts_may_be_asked_for_in_units_and_are_all_by_default() -> None:
    sharing = Sharing(divide=Divide.REQUESTED, unit=Bytes(2 * GIB))

    assert is_shared(sharing)
    assert capacity_of(FrozenMap({"memory": 81 * GIB, "links": 4}), sharing) == {
        "memory": Capacity(
            value=81 * GIB,
            policy=RequestPolicy(default=80 * GIB, least=2 * GIB, most=80 * GIB, step=2 * GIB),
        ),
        "cores": Capacity(value=100, policy=RequestPolicy(default=100, least=1, most=100, step=1)),
        "links": Capacity(value=4, policy=ANY),
    }


def test_number_of_those_who_ask_for_amounts_may_be_limited() -> None:
    found = capacity_of(AMOUNTS, Sharing(shares=4, divide=Divide.REQUESTED))

    assert found["shares"] == ONE


@pytest.mark.parametrize("divide", [Divide.EQUAL, Divide.REQUESTED])
def test_device_without_memory_divides_its_cores(divide: Divide) -> None:
    assert set(capacity_of(FrozenMap({}), Sharing(shares=2, divide=divide))) == {"cores", "shares"}


def test_memory_of_less_than_two_units_is_had_whole() -> None:
    found = capacity_of(FrozenMap({"memory": GIB + 7}), Sharing(divide=Divide.REQUESTED))

    assert found["memory"] == fixed(GIB + 7, GIB + 7)


@given(
    st.integers(0, 1 << 45),
    st.integers(1, 128),
    st.sampled_from(Divide),
    st.integers(1, 1 << 41),
)
def test_whatever_is_shared_obeys_the_limits(
    memory: int, shares: int, divide: Divide, unit: int
) -> None:
    sharing = Sharing(shares=shares, divide=divide, unit=Bytes(unit))
    device = PoolDevice(
        name="d",
        shareable=is_shared(sharing),
        capacity=capacity_of(FrozenMap({"memory": memory, "cores": 7}), sharing),
    )

    assert check_slice(Slice(devices=(device,))) == ()


def test_shared_device_is_exclusive_where_the_server_keeps_no_amounts() -> None:
    view = view_of(gpu("g0"), offers=[Offer(name="all", through="dra", sharing=Sharing(shares=4))])
    there, plain = listed(view)["g0"], listed(view, Dialect(consumable=False))["g0"]

    assert (there.shareable, there.capacity["shares"]) == (True, ONE)
    assert (plain.shareable, plain.capacity) == (
        False,
        FrozenMap({"memory": Capacity(value=80 * GIB)}),
    )


def test_held_device_stays_as_shareable_as_it_was_taken() -> None:
    """Published as exclusive again, it would be given away a second time (SL18)."""
    shared = Offer(name="all", through="dra", sharing=Sharing(shares=4))
    before = view_of(gpu("g0"), offers=[shared], holdings=[held("g0", share="s")])
    after = view_of(
        gpu("g0"),
        offers=[Offer(name="all", through="dra")],
        holdings=[held("g0", share="s")],
        previous=before,
    )
    free = view_of(gpu("g0"), offers=[Offer(name="all", through="dra")], previous=after)

    found = listed(after)["g0"]
    assert (found.shareable, found.capacity["shares"]) == (True, ONE)
    assert [taint.key for taint in found.taints] == ["accelkit.dev/leaving"]
    assert not listed(free)["g0"].shareable


def test_held_device_that_no_offer_ever_had_is_listed_as_it_was_taken() -> None:
    offers = [Offer(name="all", through="kubelet")]
    shared = view_of(gpu("g0"), offers=offers, holdings=[held("g0", share="s")])
    alone = view_of(gpu("g0"), offers=offers, holdings=[held("g0")])

    assert [listed(view)["g0"].shareable for view in (shared, alone)] == [True, False]
    assert listed(alone)["g0"].attributes["offer"] == "unknown"


def test_capacity_of_the_same_name_gives_way() -> None:
    assert capacity_of(FrozenMap({"shares": 9}), Sharing(shares=4)) == FrozenMap({"shares": ONE})
