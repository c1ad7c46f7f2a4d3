"""The play as a process: where it runs, what it says, and that nothing of it is left."""

import os
import re
import select
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PLAY = (
    sys.executable,
    "-c",
    "from accelkit.cli.main import main; raise SystemExit(main())",
    "play",
)
SABOTAGE = (
    "import sys\nif 'agent' in sys.orig_argv[3:4]:\n    raise SystemExit('this agent is broken')\n"
)


@pytest.fixture
def base() -> Iterator[Path]:
    """A directory for temporary files with a short path, in which nothing may be left."""
    with tempfile.TemporaryDirectory(prefix="play-", dir="/tmp") as directory:
        yield Path(directory)
        assert [*Path(directory).iterdir()] == []


def environment(base: Path, **more: str) -> Mapping[str, str]:
    return {**os.environ, "TMPDIR": str(base), "NO_COLOR": "1", **more}


def gone(said: str) -> bool:
    """Whether none of the agents of which the play spoke runs."""
    pids = re.findall(r"process (\d+)", said)
    return bool(pids) and not any(Path("/proc", pid).exists() for pid in pids)


def read_until(terminal: int, text: str) -> str:
    """What a terminal shows up to *text*, without its control sequences."""
    until, shown = time.monotonic() + 120, b""
    while (plain := re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode(errors="ignore"))).find(
        text
    ) < 0:
        ready, _, _ = select.select([terminal], [], [], until - time.monotonic())
        assert ready, f"not seen: {text}; shown: {plain[-2000:]}"
        shown += os.read(terminal, 65536)
    return plain
