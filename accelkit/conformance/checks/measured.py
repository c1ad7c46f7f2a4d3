"""AG: what metrics say of devices, of who has them, and of how long things take.

Not here: that they can be read.
"""

import re
from collections.abc import Iterator, Mapping

import attrs

from accelkit.conformance.checks.making import over_sockets
from accelkit.conformance.model import Badge, Check, Feature
from accelkit.conformance.socket_bench import SOON_S, SocketBench
from accelkit.core.values import FrozenMap

SHORTEST_S, LONGEST_S = 0.001, 60.0
"""A call of a device, and the slowest that anybody waits for."""
HOLDER = "accelkit_device_holder"
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"')


@attrs.frozen
class Series:
    """One line of a page of metrics."""

    name: str
    labels: FrozenMap[str, str]


def series_in(page: str) -> list[Series]:
    """What is on a page of metrics."""
    found = (_SAMPLE.fullmatch(line) for line in page.splitlines() if not line.startswith("#"))
    return [Series(m[1], FrozenMap(_LABEL.findall(m[2] or ""))) for m in found if m]


def holders_in(page: str) -> list[Mapping[str, str]]:
    """The labels of everyone who has a device."""
    return [one.labels for one in series_in(page) if one.name == HOLDER]


def _by_device(page: str) -> dict[tuple[str, str], None]:
    """Metric and device of everything that is told of a device, but for who has it."""
    return {
        (one.name, one.labels["device"]): None
        for one in series_in(page)
        if one.labels.get("device") and one.name != HOLDER
    }


def nobody_has(bench: SocketBench) -> Iterator[str]:
    count = len(bench.usable())
    page = bench.driver.probe("/metrics")[1]
    before = _by_device(page)
    told = {device for name, device in before if name == "accelkit_device_info"}
    if len(told) < count:
        yield f"{count} devices are listed, and metrics tell of {len(told)}"
    pod = bench.do(bench.sim.admit("pod", {bench.resource: 1}))
    if pod.message:
        yield f"a pod that wants a device fails: {pod.message}"
        return

    def page_now() -> str:
        return bench.driver.probe("/metrics")[1]

    if not bench.comes(lambda: holders_in(page_now()), SOON_S):
        yield "a pod has a device, and no metric tells who has it"
    after = _by_device(page_now())
    for name, device in before:
        if (name, device) not in after:
            yield f"when a pod has one device, {name} of {device} is gone"


def fine_buckets(bench: SocketBench) -> Iterator[str]:
    bench.allocate(bench.usable()[:1])
    bounds: dict[str, list[float]] = {}
    for one in series_in(bench.driver.probe("/metrics")[1]):
        if one.name.endswith("_bucket") and "le" in one.labels:
            bounds.setdefault(one.name.removesuffix("_bucket"), []).append(float(one.labels["le"]))
    if not bounds:
        yield "nothing tells how long a call took"
    for name, found in sorted(bounds.items()):
        finite = [bound for bound in found if bound != float("inf")]
        if not finite or min(finite) > SHORTEST_S or max(finite) < LONGEST_S:
            ends = f"{min(finite):g} s to {max(finite):g} s" if finite else "infinity"
            yield f"{name} counts from {ends}: a call of 1 ms or of a minute is not told apart"


CHECKS: tuple[Check[SocketBench], ...] = (
    over_sockets(
        "AG04",
        "Devices that nobody has are measured like others.",
        nobody_has,
        Feature.PROBES,
        badges=(Badge.AGENT,),
    ),
    over_sockets(
        "AG06",
        "Latencies are counted from 1 ms to 60 s.",
        fine_buckets,
        Feature.PROBES,
        badges=(Badge.AGENT,),
    ),
)
