"""Agents start out of a process that has loaded everything, and are like any other."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelkit.conformance import nursery
from accelkit.conformance.bench import Scope
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.model import Unanswered
from accelkit.conformance.runner import Options, run_check
from accelkit.conformance.subjects import PluginSubject
from accelkit.vendors.sim.vendor import Sim

SIM = PluginSubject(vendor=Sim)
ASKS = """
import os, sys
from pathlib import Path
from accelkit.conformance import nursery

print(nursery.start(sys.argv[1:], Path(os.devnull)).pid, flush=True)
os._exit(0)
"""


def waiting(directory: Path) -> list[str]:
    """Words for an agent that waits for a kubelet for ever."""
    paths = {name: str(directory / name) for name in ("kubelet", "run", "cdi")}
    policy = {
        "apiVersion": "accelkit.dev/v1",
        "kind": "NodePolicy",
        "paths": paths,
        "http": {"listen": ""},
    }
    path = directory / "policy.json"
    path.write_text(json.dumps(policy), encoding="utf-8")
    return ["agent", "--policy", str(path), "--node", "n", "--host", str(directory)]


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


def test_program_ends_with_the_check_that_started_it_even_if_that_goes_on(tmp_path: Path) -> None:
    go_on, started, told = threading.Event(), list[nursery.Started](), list[str]()
    words, log = waiting(tmp_path), tmp_path / "log"
    nursery.start(["version"], log).wait(60)  # so that the next one starts at once

    def hangs(bench: Scope) -> Iterator[str]:
        started.append(bench.start(words, log))
        go_on.wait()
        try:
            bench.start(words, log)
        except Unanswered as error:
            told.append(str(error))
        yield from ()

    result = run_check(in_process("X01", "It ends.", hangs), SIM, Options(deadline_scale=0.05))
    ended = started[0].wait(60)
    go_on.set()

    assert "the check has not ended after 3 s" in result.findings[0]
    assert ended == -signal.SIGKILL
    while not told:
        time.sleep(0.01)
    assert told == ["what the check made is taken away"]


def test_what_is_made_after_the_end_is_taken_away_at_once() -> None:
    scope, undone = Scope(0, 1.0), list[str]()
    scope.later(lambda: undone.append("first"))
    scope.close()

    with pytest.raises(Unanswered, match="taken away"):
        scope.later(lambda: undone.append("second"))

    assert undone == ["first", "second"]
