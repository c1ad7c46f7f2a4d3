"""AG: a process that is there for months. Not here: what it serves meanwhile."""

from collections.abc import Iterator

from accelkit.conformance.checks.making import over_sockets
from accelkit.conformance.model import Badge, Check, Feature
from accelkit.conformance.socket_bench import SocketBench, refusal

CYCLES, WARM = 40, 5
"""Of everything that a kubelet and a scraper ask for; the first ones fill what is kept."""
SPARE = 15
"""Files and threads that are there by chance: connections that end, say; a leak has one a cycle."""
SPARE_BYTES = 4 << 20
"""Less than 100 kB for each cycle, and more than what is there by chance."""
START_S = 3.0
"""Of a processor: nodes boot with all their daemons at once."""
MEMORY = 128 << 20
"""Resident, of a driver that has nothing to do; daemons are given little more."""


def renewed(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    before, stream = bench.listed(), bench.watch()
    for valid in (True, False):
        bench.driver.renew(valid=valid)
        what = "in other words" if valid else "as rubbish"
        if error := refusal(lambda: bench.allocate(ids[:1])):
            yield f"configured {what}, it hands nothing out: {error.details()}"
        if len(bench.registered()) > 1:
            yield f"configured {what}, it registers anew"
        if stream.ended:
            yield f"configured {what}, it ends its streams"
        if bench.listed() != before:
            yield f"configured {what}, it lists other devices"
    bench.do(stream.close())


def flat(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    for _ in range(WARM):
        _cycle(bench, ids)
    before = bench.driver.footprint()
    for _ in range(CYCLES):
        _cycle(bench, ids)
    bench.comes(lambda: bench.driver.footprint().files <= before.files + SPARE)
    after = bench.driver.footprint()
    if (more := after.files - before.files) > SPARE:
        yield f"{CYCLES} times streams, calls and probes, and it has {more} more open files"
    if (more := after.threads - before.threads) > SPARE:
        yield f"{CYCLES} times streams, calls and probes, and it has {more} more threads"
    if (more := after.memory - before.memory) > SPARE_BYTES:
        yield f"{CYCLES} times streams, calls and probes, and it has {more >> 20} MiB more"


def _cycle(bench: SocketBench, ids: list[str]) -> None:
    """All that a kubelet asks for, and a page of metrics where there is one."""
    stream = bench.watch()
    bench.allocate(ids[:1])
    bench.happens(lambda: stream.lists or stream.ended)
    bench.do(stream.close())
    if Feature.PROBES in bench.features:
        bench.driver.probe("/metrics")


def slight(bench: SocketBench) -> Iterator[str]:
    bench.driver.afresh()
    bench.kubelet()
    bench.driver.start(bench.root)
    bench.first()
    found = bench.driver.footprint()
    if found.cpu_s > START_S:
        yield f"until its first list it works for {found.cpu_s:.1f} s, more than {START_S:g} s"
    if found.memory > MEMORY:
        yield f"it has {found.memory >> 20} MiB when it has started, more than {MEMORY >> 20} MiB"


def beside_a_deadly_one(bench: SocketBench) -> Iterator[str]:
    bench.driver.endanger()
    ids = bench.usable()
    if error := refusal(lambda: bench.allocate(ids[:1])):
        yield f"nothing is handed out beside a plugin that is skipped: {error.details()}"


_BADGE = (Badge.AGENT,)
CHECKS: tuple[Check[SocketBench], ...] = (
    over_sockets(
        "AG11",
        "Another configuration costs no registration, and rubbish changes nothing.",
        renewed,
        Feature.RENEW,
        badges=_BADGE,
    ),
    over_sockets(
        "AG13",
        "Files, threads and memory do not grow with what is asked.",
        flat,
        Feature.PROCESS,
        badges=_BADGE,
    ),
    over_sockets(
        "AG14",
        "It starts with little work, and in little memory.",
        slight,
        Feature.PROCESS,
        badges=_BADGE,
    ),
    over_sockets(
        "AG23",
        "A plugin that kills whoever loads it is skipped in the end.",
        beside_a_deadly_one,
        Feature.DEADLY,
        badges=_BADGE,
    ),
)
