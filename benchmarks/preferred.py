"""Preferred allocation on nodes of several shapes; in process, without gRPC."""

import gc
from collections.abc import Iterator
from random import Random
from time import perf_counter

import attrs

from accelkit.core.policy import Place
from accelkit.core.preference import Choice, Topology, of_shares, prefer, used
from benchmarks.rows import Judge, Row

V100 = (  # Links of a DGX-1 between its eight V100, as nvidia-smi topo -m prints them.
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)
BUS = (0, 50, 40, 20, 10, 10)
"""Weight by how many levels of a binary tree lie between two devices."""


@attrs.frozen(kw_only=True)
class Case:
    name: str
    topology: Topology
    budget_ms: float
    requests: int = 200
    size: int | None = None
    """None: any."""
    thin: bool = True
    """Only some devices are available."""
    place: Place | None = None


def bus(count: int) -> list[list[int]]:
    return [[BUS[(a ^ b).bit_length()] for b in range(count)] for a in range(count)]


def node(*levels: list[list[int]]) -> Topology:
    count = len(levels[0])
    ids = [f"gpu-{position:02}" for position in range(count)]
    return Topology(ids=ids, groups=range(count), levels=levels)


def fabric(links: int, count: int) -> list[list[int]]:
    return [[100 * links * (a != b) for b in range(count)] for a in range(count)]


def cube_mesh() -> Topology:
    near = bus(8)
    level = [[max(100 * V100[a][b], near[a][b]) for b in range(8)] for a in range(8)]
    return node(level, near)


def irregular(count: int) -> Topology:
    random = Random(count)
    return node([[random.randrange(1000) for _ in range(count)] for _ in range(count)])


def shared(devices: Topology, shares: int, place: Place) -> Topology:
    return of_shares(devices, dict.fromkeys(devices.ids, shares), place)


def cases() -> Iterator[Case]:
    yield Case(name="DGX-1 V100, any size", topology=cube_mesh(), budget_ms=5)
    for count, links in ((8, 12), (16, 6)):
        name, topology = f"NVSwitch {count}, any size", node(fabric(links, count), bus(count))
        yield Case(name=name, topology=topology, budget_ms=5)
    yield Case(name="PCIe 16, any size", topology=node(bus(16)), budget_ms=5)
    odd = irregular(16)
    yield Case(name="irregular 16, some free, any size", topology=odd, budget_ms=5)
    yield Case(name="irregular 16, all free, any size", topology=odd, budget_ms=5, thin=False)
    yield Case(name="irregular 16, all free, 8", topology=odd, budget_ms=5, thin=False, size=8)
    for place in Place:
        topology = shared(node(fabric(18, 16), bus(16)), 32, place)
        name = f"4 of 512 shares, {place}"
        yield Case(name=name, topology=topology, budget_ms=10, size=4, place=place)
    topology = shared(cube_mesh(), 64, Place.PACKED)
    yield Case(name="4 of 512 shares on a DGX-1", topology=topology, budget_ms=10, size=4)


def requests(case: Case) -> Iterator[tuple[list[str], int]]:
    random = Random(case.name)
    ids = list(case.topology.ids)
    for _ in range(case.requests):
        least = case.size or 1
        count = random.randint(max(least, len(ids) // 4), len(ids)) if case.thin else len(ids)
        some = random.sample(ids, count)
        yield some, case.size or random.randint(1, count)


def measure(_rounds: int) -> Iterator[Row]:
    """A row for each case; every request is another one, so that rounds would add nothing."""
    for case in cases():
        gc.collect()
        times, methods = timed(case)
        yield Row(
            what=f"preferred, {case.name}",
            values=times,
            budget=case.budget_ms,
            judge=Judge.P99,
            note=", ".join(sorted(methods)),
        )


def timed(case: Case) -> tuple[list[float], set[str]]:
    """Return milliseconds of each request, and the methods that answered; ! is not exact."""
    times, methods = [], set()
    for available, size in requests(case):
        fresh = attrs.evolve(case.topology)  # Without answers that are remembered.
        start = perf_counter()
        choice = ask(fresh, available, size, case.place)
        times.append((perf_counter() - start) * 1000)
        methods.add(str(choice.method) + ("" if choice.exact else "!"))
    return times, methods


def ask(topology: Topology, available: list[str], size: int, place: Place | None) -> Choice:
    unit = None if place is None else used(topology, available, place)
    return prefer(topology, available, (), size, unit=unit)
