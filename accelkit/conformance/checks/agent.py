"""AG and C: the process around the drivers. Not here: what it serves."""

import math
import re
import time
from collections.abc import Iterator

from accelkit.conformance.checks.making import over_sockets
from accelkit.conformance.model import Badge, Check, Feature
from accelkit.conformance.socket_bench import FIRST_S, SOON_S, SocketBench, refusal
from accelkit.core.telemetry import METRICS, MetricType

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)( \d+)?")
_LABEL = re.compile(r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*"')
_SUFFIXES = ("_bucket", "_sum", "_count")


def _metrics(bench: SocketBench) -> str:
    status, text = bench.driver.probe("/metrics")
    return text if status == 200 else ""


def parseable(bench: SocketBench) -> Iterator[str]:
    bench.up()
    text = _metrics(bench)
    if not text.endswith("\n"):
        yield "the page of metrics does not end with a line"
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    helped = set(re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE))
    seen: set[str] = set()
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        found = _SAMPLE.fullmatch(line)
        if found is None or not _is_number(found[3]):
            yield f"this is no sample: {line[:80]}"
            continue
        name = _base(found[1], kinds)
        if name not in kinds or name not in helped:
            yield f"{name} has no type or no help"
        labels = found[2] or ""
        if labels and ",".join(_LABEL.findall(labels)) != labels[1:-1].rstrip(","):
            yield f"these are no labels: {labels[:80]}"
        if (key := found[1] + labels) in seen:
            yield f"{key[:80]} is there twice"
        seen.add(key)


def _base(name: str, kinds: dict[str, str]) -> str:
    for suffix in _SUFFIXES:
        if name not in kinds and name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text)) or text == "NaN"
    except ValueError:
        return False


def from_the_start(bench: SocketBench) -> Iterator[str]:
    bench.up()
    text = _metrics(bench)
    for metric in METRICS:
        if metric.type is MetricType.INFO or metric.labels:
            continue
        if not re.search(rf"^{metric.name} \S", text, re.MULTILINE):
            yield f"{metric.name} is not there from the start"
    if not re.search(r"^accelkit_registrations_total\{", text, re.MULTILINE):
        yield "registrations are not counted"


def ready(bench: SocketBench) -> Iterator[str]:
    bench.root.mkdir(parents=True, exist_ok=True)
    bench.driver.start(bench.root)
    until = time.monotonic() + bench.patience(FIRST_S)
    while _status(bench, "/livez") != 200:
        if time.monotonic() > until:
            yield f"/livez is not answered within {bench.patience(FIRST_S):g} s"
            return
        time.sleep(0.02)
    if _status(bench, "/readyz") == 200:
        yield "it is ready, and there is no kubelet"
    bench.kubelet()
    bench.first()
    if not bench.happens(lambda: _status(bench, "/readyz") == 200, FIRST_S):
        yield "it is not ready, and everything is registered"


def _status(bench: SocketBench, path: str) -> int:
    try:
        return bench.driver.probe(path)[0]
    except OSError:
        return 0


def ends(bench: SocketBench) -> Iterator[str]:
    bench.up()
    streams = [bench.watch() for _ in range(2)]
    bench.happens(lambda: all(s.lists for s in streams))
    bench.driver.stop()
    for stream in streams:
        if not bench.happens(lambda stream=stream: stream.ended):  # type: ignore[misc]  # mypy#7464
            yield "a stream is open still when it has ended"
        bench.do(stream.close())


def ends_while_hung(bench: SocketBench) -> Iterator[str]:
    bench.up()
    bench.driver.hang()
    # So that a call has begun to hang: nothing else tells from outside.
    time.sleep(1)
    bench.driver.stop()
    yield from ()


def beside_a_failing_one(bench: SocketBench) -> Iterator[str]:
    bench.driver.disturb_neighbour()
    ids = bench.usable()
    if error := refusal(lambda: bench.allocate(ids[:1])):
        yield f"nothing is handed out while another plugin fails: {error.details()}"


def beside_a_crashing_one(bench: SocketBench) -> Iterator[str]:
    bench.driver.disturb_neighbour()
    bench.up()
    bench.driver.break_device()
    if not bench.happens(bench.sick, 3 * SOON_S):
        yield "a change is not listed while another plugin fails"


_BADGE = (Badge.AGENT,)
CHECKS: tuple[Check[SocketBench], ...] = (
    over_sockets(
        "AG01",
        "Metrics can be read, each with type and help.",
        parseable,
        Feature.PROBES,
        badges=_BADGE,
    ),
    over_sockets(
        "AG02",
        "Metrics without labels are there from the start.",
        from_the_start,
        Feature.PROBES,
        badges=_BADGE,
    ),
    over_sockets(
        "AG09",
        "It is ready when it is registered, and not before.",
        ready,
        Feature.PROBES,
        badges=_BADGE,
    ),
    over_sockets("AG10", "It ends when it is asked to.", ends, Feature.STOP, badges=_BADGE),
    over_sockets(
        "AG15",
        "A plugin that fails leaves the others served.",
        beside_a_failing_one,
        Feature.NEIGHBOUR,
        badges=_BADGE,
    ),
    over_sockets(
        "C08",
        "A plugin that fails again and again does not hold up another.",
        beside_a_crashing_one,
        Feature.NEIGHBOUR,
        Feature.BREAK,
        badges=(Badge.CORE,),
        must=False,
    ),
    over_sockets(
        "C09",
        "It ends when it is asked to while hardware hangs.",
        ends_while_hung,
        Feature.HANG,
        Feature.STOP,
        badges=(Badge.CORE,),
    ),
)
