"""Times preferred allocation on nodes of several shapes; prints a row each beside its budget."""

import gc
import sys
from collections.abc import Iterator
from math import ceil
from random import Random
from statistics import median
from time import perf_counter

import attrs

from accelkit.core.policy import Place
from accelkit.core.preference import Choice, Topology, of_shares, prefer, used

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
class Row:
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


def rows() -> Iterator[Row]:
    yield Row(name="DGX-1 V100, any size", topology=cube_mesh(), budget_ms=5)
    for count, links in ((8, 12), (16, 6)):
        name, topology = f"NVSwitch {count}, any size", node(fabric(links, count), bus(count))
        yield Row(name=name, topology=topology, budget_ms=5)
    yield Row(name="PCIe 16, any size", topology=node(bus(16)), budget_ms=5)
    odd = irregular(16)
    yield Row(name="irregular 16, some free, any size", topology=odd, budget_ms=5)
    yield Row(name="irregular 16, all free, any size", topology=odd, budget_ms=5, thin=False)
    yield Row(name="irregular 16, all free, 8", topology=odd, budget_ms=5, thin=False, size=8)
    for place in Place:
        topology = shared(node(fabric(18, 16), bus(16)), 32, place)
        name = f"4 of 512 shares, {place}"
        yield Row(name=name, topology=topology, budget_ms=10, size=4, place=place)
    topology = shared(cube_mesh(), 64, Place.PACKED)
    yield Row(name="4 of 512 shares on a DGX-1", topology=topology, budget_ms=10, size=4)


def requests(row: Row) -> Iterator[tuple[list[str], int]]:
    random = Random(row.name)
    ids = list(row.topology.ids)
    for _ in range(row.requests):
        least = row.size or 1
        count = random.randint(max(least, len(ids) // 4), len(ids)) if row.thin else len(ids)
        some = random.sample(ids, count)
        yield some, row.size or random.randint(1, count)


def measure(row: Row) -> tuple[list[float], set[str]]:
    """Return milliseconds of each request, sorted, and the methods that answered."""
    times, methods = [], set()
    for available, size in requests(row):
        fresh = attrs.evolve(row.topology)  # Without answers that are remembered.
        start = perf_counter()
        choice = ask(fresh, available, size, row.place)
        times.append((perf_counter() - start) * 1000)
        methods.add(str(choice.method) + ("" if choice.exact else "!"))
    return sorted(times), methods


def ask(topology: Topology, available: list[str], size: int, place: Place | None) -> Choice:
    unit = None if place is None else used(topology, available, place)
    return prefer(topology, available, (), size, unit=unit)


def main() -> int:
    """Print the table; 1 if a 99th percentile is over its budget."""
    print(f"{'case':36}{'median':>9}{'p99':>9}{'worst':>9}{'budget':>9}  ms  methods")
    over = 0
    for row in rows():
        gc.collect()
        times, methods = measure(row)
        p99 = times[ceil(len(times) * 0.99) - 1]
        over += p99 > row.budget_ms
        numbers = "".join(f"{ms:9.2f}" for ms in (median(times), p99, times[-1], row.budget_ms))
        print(f"{row.name:36}{numbers}      {', '.join(sorted(methods))}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
