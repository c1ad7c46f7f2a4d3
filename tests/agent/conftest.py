"""What tests of vendors in processes of their own begin with."""

from pathlib import Path

import pytest

from accelkit.agent import remote
from tests.agent.acme_host import acme_host


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return acme_host(tmp_path)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes follow each other quickly."""
    monkeypatch.setattr(remote, "PAUSES_S", (0.05, 0.1))
