"""Packs devices into slices as a vector says and compares the number of slices and of writes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict, cast

import attrs

from accelkit.backends.dra.checking import check_slice
from accelkit.backends.dra.packing import PARENT, Unit, changed, pack
from accelkit.backends.dra.pool import (
    Consumption,
    CounterSet,
    Effect,
    PoolDevice,
    Slice,
    Taint,
)
from accelkit.core.values import FrozenMap


class Parents(TypedDict):
    prefix: str
    count: int
    devices: int
    counters: NotRequired[int]


class Step(TypedDict):
    do: str
    parent: str
    devices: NotRequired[int]
    counters: NotRequired[int]


class Numbers(TypedDict):
    devices: NotRequired[int]
    advanced: NotRequired[bool]
    sets: NotRequired[int]
    counters_per_set: NotRequired[int]
    sets_per_device: NotRequired[int]
    entries_per_device: NotRequired[int]
    values_per_device: NotRequired[int]


def check_pack(_document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    """Yield each expectation of a ``pack`` vector that is not met."""
    slices = pack(_units(cast("list[Parents]", vector["parents"])).values())
    actual: dict[str, int] = {
        "device_slices": sum(not one.counter_sets for one in slices),
        "counter_slices": sum(bool(one.counter_sets) for one in slices),
    }
    expected = cast("dict[str, int]", vector["expect"])
    for name, number in actual.items():
        if number != expected[name]:
            yield f"{name}: expected {expected[name]}, got {number}"
    if actual["device_slices"] < expected["lower_bound_device_slices"]:
        yield "fewer device slices than there can be"
    yield from _wrong(slices)


def check_change(_document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    """Yield each expectation of a ``change`` vector that is not met."""
    units = _units(cast("list[Parents]", vector["parents"]))
    slices = pack(units.values())
    steps = cast("list[Step]", vector["steps"])
    for step, expected in zip(
        steps, cast("list[Mapping[str, object]]", vector["expect"]), strict=True
    ):
        _take(step, units)
        before, slices = slices, pack(units.values(), slices)
        yield from _wrong(slices)
        written = changed(slices, before)
        bump = len(slices) != len(before) or sum(bool(slices[n].devices) for n in written) > 1
        writes = len(slices) if bump else len(written)
        if bump != expected["generation_bump"]:
            yield f"{step}: expected a new generation: {expected['generation_bump']}, got {bump}"
        exactly = expected.get("slices_written")
        if exactly not in {None, writes} or writes > cast(
            "int", expected.get("slices_written_at_most", writes)
        ):
            yield f"{step}: {writes} slices written, expected {expected}"


def check_limits(_document: Mapping[str, object], vector: Mapping[str, object]) -> Iterator[str]:
    """Yield what is said of the slice of a ``limits`` vector, if it is not what is expected."""
    faults = check_slice(_slice(cast("Numbers", vector["slice"])))
    valid = cast("dict[str, bool]", vector["expect"])["valid"]
    if valid == bool(faults):
        yield f"expected valid: {valid}, got {faults}"


def _units(parents: Sequence[Parents]) -> dict[str, Unit]:
    return {
        name: _unit(name, of["devices"], of.get("counters", 0))
        for of in parents
        for name in (f"{of['prefix']}-{number:03}" for number in range(of["count"]))
    }


def _unit(name: str, devices: int, counters: int) -> Unit:
    totals = FrozenMap({f"c-{n}": 1 for n in range(counters)})
    consumes = (Consumption(counter_set=name, counters=totals),) if counters else ()
    return Unit(
        name=name,
        devices=tuple(
            PoolDevice(name=f"{name}-{n}", attributes=FrozenMap({PARENT: name}), consumes=consumes)
            for n in range(devices)
        ),
        counters=totals,
    )


def _take(step: Step, units: dict[str, Unit]) -> None:
    name = step["parent"]
    if step["do"] == "remove":
        del units[name]
    elif step["do"] == "add":
        units[name] = _unit(name, step["devices"], step.get("counters", 0))
    else:
        first, *rest = units[name].devices
        tainted = attrs.evolve(first, taints=(Taint(key="a/b", effect=Effect.NO_SCHEDULE),))
        units[name] = attrs.evolve(units[name], devices=(tainted, *rest))


def _wrong(slices: Sequence[Slice]) -> Iterator[str]:
    for number, one in enumerate(slices):
        yield from (f"slice {number}: {fault}" for fault in check_slice(one))


def _slice(given: Numbers) -> Slice:
    counters = FrozenMap({f"c-{n}": 1 for n in range(given.get("counters_per_set", 1))})
    sets = given.get("sets_per_device", 1 if given.get("advanced") else 0)
    device = PoolDevice(
        name="d",
        attributes=FrozenMap({f"a{n}": n for n in range(given.get("entries_per_device", 0))}),
        consumes=tuple(Consumption(counter_set=f"s-{n}", counters=counters) for n in range(sets)),
    )
    return Slice(
        counter_sets=tuple(
            CounterSet(name=f"s-{n}", counters=counters) for n in range(given.get("sets", 0))
        ),
        devices=tuple(attrs.evolve(device, name=f"d-{n}") for n in range(given.get("devices", 0))),
    )
