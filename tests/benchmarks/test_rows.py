import pytest

from benchmarks.rows import Beside, Judge, Row, cells, figure, in_turns, markdown, misses

HUNDRED = tuple(float(number) for number in range(1, 101))


@pytest.mark.parametrize(
    "judge, found", [(Judge.MEDIAN, 50.5), (Judge.P99, 99.0), (Judge.WORST, 100.0)]
)
def test_figure_is_what_the_budget_is_about(judge: Judge, found: float) -> None:
    assert figure(judge, HUNDRED) == found


def test_miss_says_by_how_much() -> None:
    rows = [
        Row(what="slow", values=[1.0, 6.0], budget=4, judge=Judge.WORST),
        Row(what="fast", values=[1.0, 6.0], budget=4),
        Row(what="told", values=[1.0, 6.0]),
    ]

    assert [*misses(rows)] == ["missed: slow: worst 6.00 ms, 2.00 over 4.00 (50%)"]


def test_ratio_is_that_of_the_figures_that_the_budget_is_about() -> None:
    row = Row(
        what="call", values=HUNDRED, budget=99, judge=Judge.P99, beside=Beside("empty", [33.0])
    )

    assert cells(row)[-4:] == ("p99 ≤ 99.00", "held", "empty 33.00", "3.00")


def test_every_line_of_the_markdown_table_has_the_same_columns() -> None:
    lines = [*markdown([Row(what="a", values=[1.0]), Row(what="b", values=HUNDRED, budget=1)])]

    assert {line.count("|") for line in lines} == {lines[0].count("|")}


def test_every_other_round_goes_the_other_way() -> None:
    order: list[str] = []

    def measure(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = in_turns(2, {"a": lambda: measure("a"), "b": lambda: measure("b")})

    assert order == ["a", "b", "b", "a"]
    assert found == {"a": (1.0, 4.0), "b": (2.0, 3.0)}
