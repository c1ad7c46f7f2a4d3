"""Fixtures of the machine tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accelkit.testing.shared import machine_class

PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The distribution *toy* is installed."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    machine_class.cache_clear()
    yield
    machine_class.cache_clear()


@pytest.fixture
def here(tmp_path: Path) -> str:
    """A directory for a machine."""
    return str(tmp_path / "machine")
