"""Files with what a command said when somebody last looked at it closely."""

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"
Golden = Callable[[str, str], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the file of a name; ``--update-golden`` writes the file instead."""

    def check(name: str, text: str) -> None:
        file = FOLDER / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        assert text == file.read_text(), f"{file} differs; write it anew with --update-golden"

    return check
