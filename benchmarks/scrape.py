"""The text of all series, as a scrape asks for it. In process, without a connection."""

import gc
from collections.abc import Iterator

from accelkit.agent.metrics import Metrics
from accelkit.core.telemetry import MEASURES
from benchmarks.many import timed
from benchmarks.rows import Row

DEVICES = 800
SERIES = DEVICES * len(MEASURES)
BUDGET_MS = 15.0


def measure(rounds: int) -> Iterator[Row]:
    """Scrapes before which all figures were read anew, and scrapes without that."""
    gc.collect()
    gc.freeze()  # as the agent does after its start
    metrics = Metrics()
    text = b""
    found: dict[str, list[float]] = {"every figure is new": [], "nothing is new": []}
    for number in range(rounds + 1):
        _fill(metrics, number)
        for values in found.values():
            took_ms, text = timed(metrics.text)
            if number:  # what names a series is made once
                values.append(took_ms)
    gc.unfreeze()
    written = sum(not line.startswith(b"#") for line in text.splitlines())
    assert written >= SERIES, written
    for what, values in found.items():
        yield Row(what=f"scrape of {SERIES} series, {what}", values=values, budget=BUDGET_MS)


def _fill(metrics: Metrics, number: int) -> None:
    for measure_ in MEASURES:
        labels = tuple(f"{name}-of-it" for name in measure_.labels[1:])
        values = {(f"gpu-{d}", *labels): d * 1e6 + number + 0.5 for d in range(DEVICES)}
        metrics.replace(measure_.name, values)
