"""Placement, counters, and what could be made; in process, on the tables of real products."""

import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from random import Random
from time import perf_counter

import attrs

from accelkit.core.errors import UnsatisfiableLayout
from accelkit.core.model import Device, Placement, Snapshot
from accelkit.core.partition import choose_start, counters, filling_order, place
from accelkit.core.partitioning import plan, potential, steps
from accelkit.core.policy import Offer, Partitioning, PartitioningHow, Policy
from accelkit.core.snapshot import build_view
from accelkit.core.values import AttributeValue, FrozenMap
from accelkit.core.view import View
from accelkit.testing.hosts import open_host
from accelkit.testing.simulate import simulate
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from benchmarks.rows import Judge, Row

PRODUCTS = ("a100-40", "h100", "a30", "rtx-pro-6000", "b200")
GPUS = 16
"""Of the product with most places: 30 and the whole, 31 variants each."""
REQUESTS = 300
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def measure(rounds: int) -> Iterator[Row]:
    gpus = {product: _gpus(product, GPUS) for product in PRODUCTS}
    gc.collect()
    gc.disable()
    try:
        yield from _measured(gpus, rounds)
    finally:
        gc.enable()


def _measured(gpus: Mapping[str, tuple[Device, ...]], rounds: int) -> Iterator[Row]:
    for product, (device, *_) in gpus.items():
        yield from _placing(product, device)
    for product, (device, *_) in gpus.items():
        values = [_timed(partial(counters, _unknown(device, n))) for n in range(rounds)]
        yield Row(what=f"counters, first of {product}", values=values, budget=15)
    yield from _of_node(gpus["rtx-pro-6000"], rounds)


def _gpus(product: str, count: int) -> tuple[Device, ...]:
    """Devices of a simulated machine, in the mode in which they are cut."""
    with tempfile.TemporaryDirectory(prefix="ak-") as directory:
        simulate("nvidia", product, count, directory)
        vendor = Nvidia(NvidiaOptions())
        found = [*vendor.discover(open_host(directory))]
        vendor.close()
    return tuple(
        attrs.evolve(device, mode="mig", usable=False)
        for device in found
        if isinstance(device, Device)
    )


def _placing(product: str, device: Device) -> Iterator[Row]:
    """Layouts that fit, ones that do not, and one more partition; each beside what is there."""
    random = Random(product)
    fits, refusals, starts = [], [], []
    for _ in range(REQUESTS):
        existing = _filled(device, random)
        layout = _counted(_filled(device, random))
        fits.append(_least(partial(place, device, layout, existing)))
        wish = {p.name: random.randint(0, (p.limit or 0) + 1) for p in device.profiles}
        pinned = [p for p in existing if random.random() < 0.3]
        refusals.append(_least(partial(_try, device, wish, existing, pinned)))
        profile = random.choice(device.profiles).name
        starts.append(_least(partial(choose_start, device, existing, profile)))
    yield Row(what=f"layout placed, {product}", values=fits, budget=5, judge=Judge.WORST)
    yield Row(what=f"layout too large, {product}", values=refusals, budget=5, judge=Judge.WORST)
    yield Row(what=f"one more partition, {product}", values=starts)


def _try(
    device: Device, layout: Mapping[str, int], existing: list[Placement], pinned: list[Placement]
) -> None:
    with suppress(UnsatisfiableLayout):
        place(device, layout, existing, pinned)


def _filled(device: Device, random: Random) -> list[Placement]:
    """Partitions as they come until one has no room."""
    there: list[Placement] = []
    while True:
        profile = random.choice(device.profiles)
        start = choose_start(device, there, profile.name)
        if start is None:
            return there
        there.append(Placement(profile=profile.name, start=start, size=profile.size))


def _counted(places: list[Placement]) -> dict[str, int]:
    profiles = [place.profile for place in places]
    return {profile: profiles.count(profile) for profile in profiles}


def _unknown(device: Device, number: int) -> Device:
    """*device* with a table that is another value each time."""
    told: FrozenMap[str, AttributeValue] = FrozenMap({"round": number})
    profiles = tuple(attrs.evolve(p, attributes=told) for p in device.profiles)
    return attrs.evolve(device, profiles=profiles)


def _of_node(gpus: tuple[Device, ...], rounds: int) -> Iterator[Row]:
    """The whole of a node whose GPUs are cut by claims, and by a layout."""
    policy = Policy(
        offers=(Offer(name="dra", through="dra"),),
        partitioning=(Partitioning(how=PartitioningHow.DYNAMIC),),
    )
    node = f"{GPUS} GPUs of 31 variants"
    snapshots = [_changed(gpus, n) for n in range(rounds)]
    assert len(potential(snapshots[0], policy)) == GPUS * 30
    for what, work, budget in (
        ("what could be, all changed", [partial(potential, s, policy) for s in snapshots], None),
        ("view", [partial(_viewed, snapshots[-1], policy)] * rounds, 20),
        ("counters, known", [partial(_each, counters, gpus)] * rounds, None),
        ("order of listing", [partial(_each, filling_order, gpus)] * rounds, None),
    ):
        yield Row(what=f"{node}: {what}", values=[_timed(one) for one in work], budget=budget)
    rule = Partitioning(how=PartitioningHow.LAYOUT, layout="mixed")
    layouts = FrozenMap({"mixed": FrozenMap({"1g.24gb": 2, "2g.48gb": 1})})
    laid = attrs.evolve(policy, partitioning=(rule,), layouts=layouts)
    plans = [_timed(partial(_planned, snapshots[-1], laid)) for _ in range(rounds)]
    yield Row(what=f"{GPUS} GPUs: a layout and the steps to it", values=plans)


def _changed(gpus: tuple[Device, ...], number: int) -> Snapshot:
    """The node in another state each time."""
    devices = tuple(attrs.evolve(gpu, handle=str(number)) for gpu in gpus)
    return Snapshot(node="bench", devices=devices)


def _each(ask: Callable[[Device], object], devices: tuple[Device, ...]) -> None:
    for device in devices:
        ask(device)


def _viewed(snapshot: Snapshot, policy: Policy) -> View:
    return build_view(
        snapshot,
        policy,
        edits={},
        domains={"nvidia": "nvidia.com"},
        previous=None,
        now_s=0.0,
        now=NOW,
    )


def _planned(snapshot: Snapshot, policy: Policy) -> None:
    assert len(steps(snapshot, plan(snapshot, policy))) == GPUS * 3


def _least(work: Callable[[], object]) -> float:
    """Milliseconds without what else the machine does: the least of several."""
    return min(_timed(work) for _ in range(5))


def _timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    begun = perf_counter()
    work()
    return (perf_counter() - begun) * 1000
