"""Files with what a command said when somebody last looked at it closely."""

from pathlib import Path

import pytest

from tests.golden_files import Golden, golden_in

__all__ = ["Golden", "golden"]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the file of a name below here."""
    return golden_in(Path(__file__).parent / "golden", request)
