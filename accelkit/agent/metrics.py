"""Counts what the list of metrics names, and writes it as text. Not here: what is counted."""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from accelkit.core.dcgm import DCGM
from accelkit.core.errors import PluginContractError
from accelkit.core.telemetry import BUCKETS_S, MEASURES, METRICS, Metric, MetricType

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]
ALL = (*METRICS, *MEASURES, *DCGM)

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_UNFIT = re.compile("[\ud800-\udfff\x00-\x09\x0b-\x1f]")
_OURS = frozenset(metric.name for metric in METRICS)
"""What is written though nothing was counted yet; what devices measure is not."""
_EXACT = 1e15
"""Whole numbers below it are written without a point."""
_BOUNDS = (*(f"{bound:g}" for bound in BUCKETS_S), "+Inf")


def _quoted(value: str) -> str:
    """A label's value as the text format has it; what is not UTF-8 would cost the whole scrape."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", value).translate(_ESCAPES)


def _series(name: str, labels: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{key}="{_quoted(value)}"' for key, value in labels)
    return f"{name}{{{inside}}} " if inside else f"{name} "


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if abs(value) < _EXACT and value.is_integer() else repr(value)


class _Plain:
    """Series with one value each; what names a series is made once."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.values: dict[Labels, float] = {}
        self._prefixes: dict[Labels, str] = {}

    def lines(self) -> Iterator[str]:
        for labels, value in self.values.items():
            prefix = self._prefixes.get(labels)
            if prefix is None:
                prefix = self._prefixes[labels] = _series(
                    self.metric.name, zip(self.metric.labels, labels, strict=True)
                )
            yield prefix + _number(float(value))

    def replace(self, values: Mapping[Labels, float]) -> None:
        self.values = dict(values)
        if len(self._prefixes) > 2 * len(values) + 100:  # series that ended
            self._prefixes.clear()


class _Histogram:
    """Latencies in fixed buckets."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.counts: dict[Labels, list[int]] = {}
        self.sums: dict[Labels, float] = {}
        self._prefixes: dict[Labels, tuple[str, ...]] = {}

    def observe(self, labels: Labels, seconds: float) -> None:
        counts = self.counts.setdefault(labels, [0] * len(_BOUNDS))
        counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sums[labels] = self.sums.get(labels, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        for labels, counts in self.counts.items():
            prefixes = self._prefixes.get(labels)
            if prefixes is None:
                prefixes = self._prefixes[labels] = self._named(labels)
            total = 0
            for prefix, count in zip(prefixes, counts, strict=False):
                total += count
                yield f"{prefix}{total}"
            yield f"{prefixes[-2]}{self.sums[labels]!r}"
            yield f"{prefixes[-1]}{total}"

    def _named(self, labels: Labels) -> tuple[str, ...]:
        name = self.metric.name
        pairs = tuple(zip(self.metric.labels, labels, strict=True))
        return (
            *(_series(f"{name}_bucket", (*pairs, ("le", bound))) for bound in _BOUNDS),
            _series(f"{name}_sum", pairs),
            _series(f"{name}_count", pairs),
        )


class Metrics:
    """Every series of the agent: a Meter for those who count, a text for those who scrape.

    Counts of a label set that is known beforehand begin at 0, so that the first one is seen.

    Args:
        metrics: What may be counted.
    """

    def __init__(self, metrics: Sequence[Metric] = ALL) -> None:
        self._known = {metric.name: metric for metric in metrics}
        self._plain = {m.name: _Plain(m) for m in metrics if m.type is not MetricType.HISTOGRAM}
        self._histograms = {
            m.name: _Histogram(m) for m in metrics if m.type is MetricType.HISTOGRAM
        }
        self._collectors: list[Callable[[], None]] = []
        for metric in metrics:
            if metric.type is MetricType.COUNTER and not metric.labels:
                self.count(metric.name, by=0)

    def count(self, metric: str, labels: Sequence[str] = (), by: int = 1) -> None:
        """Add *by* to a counter.

        Raises:
            PluginContractError: The metric is not in the list, or has other labels.
        """
        key = self._checked(metric, labels, MetricType.COUNTER)
        values = self._plain[metric].values
        values[key] = values.get(key, 0) + by

    def set(self, metric: str, value: float, labels: Sequence[str] = ()) -> None:
        """Set a gauge.

        Raises:
            PluginContractError: The metric is not in the list, or has other labels.
        """
        key = self._checked(metric, labels, MetricType.GAUGE, MetricType.INFO)
        self._plain[metric].values[key] = value

    def observe(self, metric: str, seconds: float, labels: Sequence[str] = ()) -> None:
        """Add a latency to a histogram.

        Raises:
            PluginContractError: The metric is not in the list, or has other labels.
        """
        key = self._checked(metric, labels, MetricType.HISTOGRAM)
        self._histograms[metric].observe(key, seconds)

    def replace(self, metric: str, values: Mapping[Labels, float]) -> None:
        """Set all series of a gauge, or of what is counted elsewhere, at once; the others end."""
        for labels in values:
            self._checked(metric, labels, MetricType.GAUGE, MetricType.INFO, MetricType.COUNTER)
        self._plain[metric].replace(values)

    def collect_with(self, collector: Callable[[], None]) -> None:
        """Let *collector* bring gauges up to date before each text."""
        self._collectors.append(collector)

    def text(self) -> bytes:
        """All series in the text format 0.0.4.

        Source:
            https://prometheus.io/docs/instrumenting/exposition_formats/, text format 0.0.4.
        """
        for collector in self._collectors:
            collector()
        lines: list[str] = []
        families: list[_Plain | _Histogram] = [*self._plain.values(), *self._histograms.values()]
        for family in families:
            metric = family.metric
            written = MetricType.GAUGE if metric.type is MetricType.INFO else metric.type
            series = tuple(family.lines())
            if series or metric.name in _OURS:
                lines += (f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {written}")
                lines += series
        return "\n".join((*lines, "")).encode()

    def _checked(self, name: str, labels: Sequence[str], *types: MetricType) -> Labels:
        metric = self._known.get(name)
        if metric is None or metric.type not in types:
            raise PluginContractError(
                f"{name} is not a {' or '.join(types)} in the list of metrics",
                remedy="see `accelkit metrics`",
            )
        if len(labels) != len(metric.labels):
            raise PluginContractError(
                f"{name} has the labels {', '.join(metric.labels) or 'none'}, not {list(labels)}"
            )
        return tuple(labels)
