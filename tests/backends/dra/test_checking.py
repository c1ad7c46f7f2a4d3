"""What is wrong with a pool, before anybody is asked to keep it."""

from typing import Any

import attrs
import pytest

from accelkit.backends.dra.checking import check_pool, check_slice
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
from accelkit.core.limits import SLICE_LIMITS
from accelkit.core.model import Binding
from accelkit.core.values import FrozenMap, Version

TOTALS = FrozenMap({"slot-0": 2, "slot-1": 1})
SETS = Slice(counter_sets=(CounterSet(name="gpu-0", counters=TOTALS),))
PLAIN = PoolDevice(name="gpu-0")
TAINT = Taint(key="accelkit.dev/burnt", effect=Effect.NO_SCHEDULE)
GIB = 1 << 30


def pool(*slices: Slice, **fields: Any) -> Pool:  # type: ignore[explicit-any]  # of Pool
    return attrs.evolve(Pool(driver="acme.accelkit.dev", name="node-a", slices=slices), **fields)


def device(**fields: Any) -> PoolDevice:  # type: ignore[explicit-any]  # of PoolDevice
    return attrs.evolve(PLAIN, **fields)


def consuming(of: str = "gpu-0", /, **counters: int) -> PoolDevice:
    taken = {name.replace("_", "-"): amount for name, amount in counters.items()}
    return device(consumes=(Consumption(counter_set=of, counters=FrozenMap(taken)),))


def asked(value: int = 8, **fields: Any) -> PoolDevice:  # type: ignore[explicit-any]  # of RequestPolicy
    policy = RequestPolicy(**{"default": 1, **fields})
    return device(shareable=True, capacity={"memory": Capacity(value=value, policy=policy)})


def many(number: int, **fields: Any) -> Slice:  # type: ignore[explicit-any]  # of PoolDevice
    return Slice(devices=tuple(device(name=f"d-{n}", **fields) for n in range(number)))


def several(number: int) -> FrozenMap[str, int]:
    return FrozenMap({f"c{n}": 1 for n in range(number)})


def attributes(number: int) -> FrozenMap[str, int]:
    return FrozenMap({f"a{n}": n for n in range(number)})


GOOD_DEVICES = {
    "plain": PLAIN,
    "everything": device(
        attributes={
            "vendor": "acme",
            "driver": Version(1, 2, 3),
            "resource.kubernetes.io/numaNode": (0, 1),
            "ok": True,
        },
        capacity={"memory": Capacity(value=80 * GIB)},
        consumes=(Consumption(counter_set="gpu-0", counters=TOTALS),),
        taints=(TAINT, attrs.evolve(TAINT, effect=Effect.NONE)),
        binding=Binding(conditions=("acme.dev/ready",), failures=("acme.dev/failed",)),
    ),
    "64 bytes": device(attributes={"name": "ä" * 32}),
    "bound to its node alone": device(binding=Binding(conditions=(), failures=(), node=True)),
    "16 taints": device(taints=[attrs.evolve(TAINT, key=f"a/{n}") for n in range(16)]),
    "32 entries": device(attributes=attributes(31), capacity={"memory": Capacity(value=0)}),
    "48 values": device(attributes={"list": tuple(range(47)), "a": 1}),
    "nothing asked is nothing taken": asked(default=0, least=0, most=8),
    "range": asked(default=3, least=1, most=7, step=2),
    "range to all there is": asked(least=1, step=2),
    "values": asked(values=(1, 2, 8)),
    "default alone": asked(),
}


@pytest.mark.parametrize("good", GOOD_DEVICES.values(), ids=GOOD_DEVICES.keys())
def test_device_is_as_it_must_be(good: PoolDevice) -> None:
    assert check_pool(pool(SETS, Slice(devices=(good,)))) == ()


BAD_DEVICES = {
    "'GPU' is not a DNS label": device(name="GPU"),
    "'gpu.0' is not a DNS label": device(name="gpu.0"),
    "attribute 'Ä' is not a name": device(attributes={"Ä": 1}),
    "attribute 'a b/c' is not a name": device(attributes={"a b/c": 1}),
    f"capacity '{'m' * 33}' is not a name": device(capacity={"m" * 33: Capacity(value=1)}),
    "attribute name: 66 bytes, at most 64": device(attributes={"name": "ä" * 33}),
    "attribute version: 66 bytes": device(attributes={"version": Version(1, 2, 3, "x" * 60)}),
    "attribute big: 9223372036854775808 needs more than 64 bits": device(
        attributes={"big": 1 << 63}
    ),
    "attribute list: an empty list": device(attributes={"list": ()}),
    "it has 33 attributes and capacities, at most 32": device(attributes=attributes(33)),
    "it has 49 values of attributes, at most 48": device(attributes={"l": tuple(range(49))}),
    "capacity memory must be a whole number from 0": device(
        capacity={"memory": Capacity(value=-1)}
    ),
    "capacity memory: only shared devices have a request policy": attrs.evolve(
        asked(), shareable=False
    ),
    "capacity memory: a request policy is made of whole numbers": asked(default=-1),
    "a request policy has a range or values, not both": asked(least=1, values=(1,)),
    "a range needs its least amount": asked(most=1),
    "the default 9 is more than the 8 there are": asked(default=9),
    "11 values, at most 10": asked(value=20, values=tuple(range(1, 12))),
    "the values do not ascend": asked(values=(1, 1)),
    "the value 9 is more than the 8": asked(values=(1, 9)),
    "the default 3 is none of the values": asked(default=3, values=(1, 2)),
    "the default 1 is not in the range 2 to 8 of 8": asked(least=2),
    "the default 1 is not in the range 0 to 9 of 8": asked(least=0, most=9),
    "a step of 0 does not fit": asked(least=0, step=0),
    "a step of 8 does not fit between 1 and 8": asked(least=1, step=8),
    "no whole number of steps of 2 above 0": asked(least=0, step=2),
    "no whole number of steps of 3 above 1": asked(least=1, most=6, step=3),
    "it consumes of gpu-9, which is no counter set": consuming("gpu-9", slot_0=1),
    "it consumes slot-7, which gpu-0 does not have": consuming(slot_7=1),
    "it consumes 3 of slot-0, gpu-0 has 2": consuming(slot_0=3),
    "what it consumes of slot-0 must be a whole number from 1": consuming(slot_0=0),
    "what it consumes of slot-1 must be a whole number from 1": consuming(slot_1=-1),
    "it consumes nothing of gpu-0": consuming(),
    "counter set gpu-0 is there 2 times": device(consumes=consuming(slot_0=1).consumes * 2),
    "it has 3 counter sets, at most 2": device(
        consumes=[Consumption(counter_set=f"s{n}", counters=TOTALS) for n in range(3)]
    ),
    "it has 33 counters of gpu-0": consuming(**several(33)),
    "it has 17 taints, at most 16": device(
        taints=[attrs.evolve(TAINT, key=f"a/{n}") for n in range(17)]
    ),
    "taint accelkit.dev/burnt NoSchedule is there 2 times": device(taints=(TAINT, TAINT)),
    "taint 'a b' '' is not a key": device(taints=(attrs.evolve(TAINT, key="a b"),)),
    "taint 'a' 'b c' is not a key": device(
        taints=(Taint(key="a", value="b c", effect=Effect.NONE),)
    ),
    "need each other": device(binding=Binding(conditions=("a",), failures=())),
    "it has 5 binding conditions": device(
        binding=Binding(conditions=tuple("abcde"), failures=("f",))
    ),
    "it has 5 binding failure conditions": device(
        binding=Binding(conditions=("f",), failures=tuple("abcde"))
    ),
    "binding condition a is there 2 times": device(
        binding=Binding(conditions=("a",), failures=("a",))
    ),
    "'not ready' is not the type of a condition": device(
        binding=Binding(conditions=("not ready",), failures=("a",))
    ),
    "model is there with the driver's domain and without": device(
        attributes={"acme.accelkit.dev/model": "a", "model": "a"}
    ),
}


@pytest.mark.parametrize("why,bad", BAD_DEVICES.items(), ids=BAD_DEVICES.keys())
def test_device_is_found_out(why: str, bad: PoolDevice) -> None:
    (fault, *_) = check_pool(pool(SETS, Slice(devices=(bad,))))

    assert f"{bad.name}: " in fault
    assert why in fault


BAD_POOLS = {
    "driver 'Acme_' is not a DNS subdomain": pool(SETS, driver="Acme_"),
    f"driver '{'a' * 64}' is not": pool(SETS, driver="a" * 64),
    "pool 'a//b' is not made of": pool(SETS, name="a//b"),
    f"pool '{'a' * 254}' is not": pool(SETS, name="a" * 254),
    "there is no slice": pool(),
    "device gpu-0 is there 2 times": pool(Slice(devices=(PLAIN,)), Slice(devices=(PLAIN,))),
    "counter set gpu-0 is there 2 times": pool(SETS, SETS),
    "slice 1: it has both counter sets and devices": pool(
        Slice(), attrs.evolve(SETS, devices=(PLAIN,))
    ),
    "it has 9 counter sets, at most 8": pool(
        Slice(counter_sets=tuple(CounterSet(name=f"s{n}", counters=TOTALS) for n in range(9)))
    ),
    "counter set s: it has 33 counters": pool(
        Slice(counter_sets=(CounterSet(name="s", counters=several(33)),))
    ),
    "counter set s: it is empty": pool(
        Slice(counter_sets=(CounterSet(name="s", counters=FrozenMap()),))
    ),
    "counter set S_1: 'S_1' is not a DNS label": pool(
        Slice(counter_sets=(CounterSet(name="S_1", counters=TOTALS),))
    ),
    "'memorySlice0' is not a DNS label": pool(
        Slice(counter_sets=(CounterSet(name="s", counters=FrozenMap({"memorySlice0": 1})),))
    ),
    "counter a must be a whole number from 1": pool(
        Slice(counter_sets=(CounterSet(name="s", counters=FrozenMap({"a": 0})),))
    ),
}


@pytest.mark.parametrize("why,bad", BAD_POOLS.items(), ids=BAD_POOLS.keys())
def test_pool_is_found_out(why: str, bad: Pool) -> None:
    assert why in "\n".join(check_pool(bad))


def test_slice_holds_fewer_devices_where_one_is_special() -> None:
    special: tuple[dict[str, object], ...] = (
        {"taints": (TAINT,)},
        {"attributes": FrozenMap({"a": (1, 2)})},
        {"consumes": consuming(slot_0=1).consumes},
    )

    assert [check_slice(many(n)) for n in (128, 129)] == [
        (),
        ("it has 129 devices, at most 128 are allowed",),
    ]
    for fields in special:
        assert [bool(check_slice(many(n, **fields))) for n in (64, 65)] == [False, True]


def test_1_34_has_limits_of_its_own() -> None:
    old = SLICE_LIMITS["1.34"]
    quiet = device(taints=(attrs.evolve(TAINT, effect=Effect.NONE),))
    sets = tuple(CounterSet(name=f"s{n}", counters=several(17)) for n in "ab")

    assert check_slice(many(128, taints=(TAINT,)), old) == ()
    assert check_slice(attrs.evolve(SETS, devices=(PLAIN,)), old) == ()
    assert check_slice(Slice(devices=(quiet,)), old) == (
        "gpu-0: taint accelkit.dev/burnt: there is no effect None",
    )
    assert check_slice(Slice(counter_sets=sets), old) == (
        "it has 34 counters in all, at most 32 are allowed",
    )


def test_every_fault_is_told_at_once() -> None:
    bad = pool(Slice(devices=(device(name="A", taints=(TAINT, TAINT)),)), name="")

    assert len(check_pool(bad)) == 3
