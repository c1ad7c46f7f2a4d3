"""Times and counts of tests; they are shown at the end, and nothing is asserted of them."""

from statistics import median

import pytest

TIMES = pytest.StashKey[dict[str, list[float]]]()
TEXTS = pytest.StashKey[list[str]]()


class Measured:
    """Keeps seconds by what took them, and texts."""

    def __init__(self, config: pytest.Config) -> None:
        self._times = config.stash.setdefault(TIMES, {})
        self._texts = config.stash.setdefault(TEXTS, [])

    def add(self, what: str, seconds: float) -> None:
        self._times.setdefault(what, []).append(seconds)

    def tell(self, text: str) -> None:
        """Show a line about what was counted."""
        self._texts.append(text)


def summary(config: pytest.Config) -> list[str]:
    """A line for each thing that was measured: the median, then each time if there are several.

    Below them what was counted.
    """
    times_of = config.stash.get(TIMES, {})
    lines = [
        f"{what:<66}{_ms(median(times)):>9} ms"
        + (f"  ({' '.join(map(_ms, sorted(times)))})" if times[1:] else "")
        for what, times in sorted(times_of.items())
    ]
    return lines + config.stash.get(TEXTS, [])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"
