"""Times that tests took; they are shown at the end, and nothing is asserted of them."""

from statistics import median

import pytest

TIMES = pytest.StashKey[dict[str, list[float]]]()


class Measured:
    """Keeps seconds by what took them."""

    def __init__(self, config: pytest.Config) -> None:
        self._times = config.stash.setdefault(TIMES, {})

    def add(self, what: str, seconds: float) -> None:
        self._times.setdefault(what, []).append(seconds)


def summary(config: pytest.Config) -> list[str]:
    """A line for each thing that was measured: the median, then each time if there are several."""
    return [
        f"{what:<66}{_ms(median(times)):>9} ms"
        + (f"  ({' '.join(map(_ms, sorted(times)))})" if times[1:] else "")
        for what, times in sorted(config.stash.get(TIMES, {}).items())
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"
