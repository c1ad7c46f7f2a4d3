"""Times and counts of tests; they are shown at the end, and nothing is asserted of them."""

from collections.abc import Iterable
from statistics import median

import pytest

TIME, TEXT = "node time: ", "node text"
"""Of properties of a test's report, how the names of times begin, and the name of a text.

Reports come from whichever process ran the test.
"""


class Measured:
    """Keeps seconds by what took them, and texts, with the report of a test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def add(self, what: str, seconds: float) -> None:
        self._item.user_properties.append((f"{TIME}{what}", seconds))

    def tell(self, text: str) -> None:
        """Show a line about what was counted."""
        self._item.user_properties.append((TEXT, text))


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each thing that was measured: the median, then each time if there are several.

    Below them what was counted.
    """
    times_of: dict[str, list[float]] = {}
    texts: list[str] = []
    for report in reports:
        for name, found in report.user_properties:
            if name == TEXT:
                texts.append(str(found))
            elif name.startswith(TIME) and isinstance(found, float):
                times_of.setdefault(name.removeprefix(TIME), []).append(found)
    lines = [
        f"{what:<66}{_ms(median(times)):>9} ms"
        + (f"  ({' '.join(map(_ms, sorted(times)))})" if times[1:] else "")
        for what, times in sorted(times_of.items())
    ]
    return lines + texts


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"
