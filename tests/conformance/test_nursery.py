"""Agents start out of a process that has loaded everything, and are like any other."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from accelkit.conformance import nursery

ASKS = """
import os, sys
from pathlib import Path
from accelkit.conformance import nursery

print(nursery.start(sys.argv[1:], Path(os.devnull)).pid, flush=True)
os._exit(0)
"""


def waiting(directory: Path) -> list[str]:
    """Words for an agent that waits for its policy for ever."""
    policy = directory / "policy.yaml"
    os.mkfifo(policy)
    return ["agent", "--policy", str(policy)]


def test_program_says_what_it_says_and_ends_with_its_code(tmp_path: Path) -> None:
    log = tmp_path / "log"

    codes = [nursery.start(words, log).wait(60) for words in (["version"], ["agent", "--colour"])]

    assert codes == [0, 2]
    assert "devicePlugin" in log.read_text()
    assert "unrecognized arguments: --colour" in log.read_text()


def test_code_of_a_program_that_a_signal_ended_is_below_zero(tmp_path: Path) -> None:
    started = nursery.start(waiting(tmp_path), tmp_path / "log")

    started.kill()

    assert started.wait(60) == started.wait() == -signal.SIGKILL


def test_program_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", ASKS, *waiting(tmp_path)]

    pid = int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    while Path(f"/proc/{pid}").exists():
        time.sleep(0.01)
