"""Files with what was said when somebody last looked at it closely."""

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import pytest

Golden = Callable[[str, str], None]


def golden_in(folder: Path, request: pytest.FixtureRequest) -> Golden:
    """Compare a text with a file in *folder*; ``--update-golden`` writes the file instead."""

    def check(name: str, text: str) -> None:
        file = folder / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        known = file.read_text() if file.exists() else ""
        changed = "\n".join(unified_diff(known.splitlines(), text.splitlines(), lineterm=""))
        assert text == known, (
            f"{file}: write it anew with --update-golden if this is meant:\n{changed}"
        )

    return check
