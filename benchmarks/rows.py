"""What was measured, judged by a budget, and the table of it. Not here: the measuring."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from math import ceil
from statistics import median

import attrs


class Judge(StrEnum):
    """Which figure a budget is about."""

    MEDIAN = "median"
    P99 = "p99"
    WORST = "worst"


@attrs.frozen
class Beside:
    """A reference that was measured in the same run."""

    what: str
    values: Sequence[float]


@attrs.frozen(kw_only=True)
class Row:
    what: str
    values: Sequence[float]
    unit: str = "ms"
    budget: float | None = None
    """None: told for comparison."""
    judge: Judge = Judge.MEDIAN
    beside: Beside | None = None
    note: str = ""

    @property
    def judged(self) -> float:
        return figure(self.judge, self.values)

    @property
    def missed(self) -> bool:
        return self.budget is not None and self.judged > self.budget


def figure(judge: Judge, values: Sequence[float]) -> float:
    match judge:
        case Judge.MEDIAN:
            return median(values)
        case Judge.P99:
            return sorted(values)[ceil(len(values) * 0.99) - 1]
        case Judge.WORST:
            return max(values)


def in_turns(
    rounds: int, measures: Mapping[str, Callable[[], float]]
) -> dict[str, tuple[float, ...]]:
    """Call every measure once a round, in reverse order every other round."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds):
        for name in list(measures)[:: -1 if number % 2 else 1]:
            found[name].append(measures[name]())
    return {name: tuple(values) for name, values in found.items()}


HEAD = ("what", "median", "p99", "worst", "unit", "budget", "", "beside, median / p99", "ratio")
"""The ratio is that of the figures that the budget is about."""


def cells(row: Row) -> tuple[str, ...]:
    shown = [_number(figure(judge, row.values)) for judge in Judge]
    if len(row.values) < 20:
        shown[1] = ""  # Of so few values it is the worst.
    budget, verdict = "", ""
    if row.budget is not None:
        budget = f"{row.judge} ≤ {_number(row.budget)}"
        verdict = "MISSED" if row.missed else "held"
    beside, ratio = row.note, ""
    if row.beside is not None:
        values = row.beside.values
        beside = f"{row.beside.what} {_number(median(values))}"
        if len(values) >= 20:
            beside += f" / {_number(figure(Judge.P99, values))}"
        reference = figure(row.judge, values)
        ratio = f"{row.judged / reference:.2f}" if reference else ""
    return (row.what, *shown, row.unit, budget, verdict, beside, ratio)


def markdown(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield f"| {' | '.join(HEAD)} |"
    yield f"|{'|'.join('--:' if 1 <= n <= 3 else '---' for n in range(len(HEAD)))}|"
    for row in rows:
        yield f"| {' | '.join(cells(row))} |"


def misses(rows: Iterable[Row]) -> Iterator[str]:
    """One sentence for each budget that was missed."""
    for row in rows:
        if row.budget is not None and row.missed:
            over = row.judged - row.budget
            yield (
                f"missed: {row.what}: {row.judge} {_number(row.judged)} {row.unit}, "
                f"{_number(over)} over {_number(row.budget)} ({over / row.budget:.0%})"
            )


def line(shown: Sequence[str]) -> str:
    widths = (44, -8, -8, -8, 7, 13, 7, 34, -5)
    padded = (
        f"{text:{'<' if w > 0 else '>'}{abs(w)}}" for text, w in zip(shown, widths, strict=True)
    )
    return " ".join(padded).rstrip()


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
