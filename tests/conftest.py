import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory with a short name, whatever the test is called: a socket path has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ak-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
