"""Somebody who reads a page and does all that it says. Not here: which pages."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from accelkit.cli.main import main
from tests.installing import forget, install
from tests.test_docs import says

FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = Path(sys.executable).parent
PATH = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
PATIENCE_S = 90.0
STAY = ("accelkit vendor new", "accelkit simulate acme", "pip install", "cd ", "rm ")
"""What later pages find done."""
GO_ON = ("accelkit agent", "accelkit conformance serve")
"""Commands that go on while the page does, each in a terminal of its own."""


@attrs.frozen
class Act:
    """One thing that a page tells its reader to do."""

    how: str
    """``run``, ``diff``, ``text``, or the language of a file that is written."""
    what: str
    """A command line, or a file's path in the project; of ``text`` a terminal's number."""
    text: str
    """What the command or the terminal shows, or the file's content."""

    @property
    def stays(self) -> bool:
        """Whether later pages meet what it does: a node that stands is in the way of another."""
        if self.how == "run":
            return self.what.startswith(STAY)
        return self.how != "text"


def acts(page: Path) -> Iterator[Act]:
    """In the order of *page*: fences that name a file are that file, or changes of it."""
    for language, file, text in FENCE.findall(page.read_text()):
        if file:
            yield Act(language, file, text)
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                yield Act("run", line, shown)


class Reader:
    """Works in *home*, which stands for /tmp.

    Args:
        home: An empty folder.
        monkeypatch: Of the test.
        heard: What was printed since it was asked for last.
    """

    def __init__(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, heard: Callable[[], str]
    ) -> None:
        self._home = home
        self._monkeypatch = monkeypatch
        self._heard = heard
        self._running: list[subprocess.Popen[bytes]] = []
        monkeypatch.chdir(home)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within one second

    def do(self, act: Act) -> str:
        """Do it; returns what is wrong with it, empty: nothing."""
        if act.how == "diff":
            return self._change(act)
        if act.how == "text":
            return self._awaited(act, self._terminal(int(act.what)))
        if act.how != "run":
            Path(act.what).parent.mkdir(parents=True, exist_ok=True)
            Path(act.what).write_text(act.text.replace("/tmp/", f"{self._home}/"))
            return ""
        words = shlex.split(act.what.replace("/tmp/", f"{self._home}/"), comments=True)
        if act.what.startswith(GO_ON):
            return self._awaited(act, self._started(words))
        code, said = self.run(words)
        promised = re.search(r"# ends with (\d+)", act.what)
        if code != (int(promised[1]) if promised else 0):
            return f"{act.what}: ends with {code}:\n{said}"
        return self._compared(act, said)

    def run(self, words: list[str]) -> tuple[int, str]:
        """How a command ends, and what it says."""
        if words[0] == "cd":
            self._monkeypatch.chdir(words[1])
        elif words[:4] == ["pip", "install", "-e", "."]:
            # As pip leaves it; the stage `build` lets pip do it.
            install(self._monkeypatch, self._home / "site", Path.cwd())
        elif words[0] == "accelkit":
            forget("acme_accelkit")
            return main(words[1:]), self._heard()
        else:  # cat, rm and pytest, as programs
            ran = subprocess.run(
                [shutil.which(words[0], path=PATH) or words[0], *words[1:]],
                capture_output=True,
                text=True,
                check=False,
            )
            return ran.returncode, ran.stdout + ran.stderr
        return 0, ""

    def end(self) -> None:
        """End what goes on."""
        for process in reversed(self._running):
            process.terminate()
            process.wait(PATIENCE_S)

    def _started(self, words: list[str]) -> Path:
        """Where a command that goes on says something."""
        log = self._terminal(len(self._running) + 1)
        with log.open("wb") as out:
            self._running.append(
                subprocess.Popen(
                    [PROGRAMS / words[0], *words[1:]], stdout=out, stderr=subprocess.STDOUT
                )
            )
        return log

    def _terminal(self, number: int) -> Path:
        return self._home / f"terminal-{number}"

    def _awaited(self, act: Act, log: Path) -> str:
        """What is wrong with what *log* says in the end, or when its time is over."""
        until = time.monotonic() + PATIENCE_S
        while (wrong := self._compared(act, log.read_text())) and time.monotonic() < until:
            time.sleep(0.05)
        return wrong

    def _change(self, act: Act) -> str:
        """Put the new lines of each hunk in the place of its old ones."""
        file = Path(act.what)
        text = file.read_text()
        for hunk in re.split(r"^@@.*\n", act.text, flags=re.MULTILINE):
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
            new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
            if text.count(old) != 1:
                return f"{act.what} has these lines {text.count(old)} times:\n{old}"
            text = text.replace(old, new)
        file.write_text(text)
        return ""

    def _compared(self, act: Act, said: str) -> str:
        said = said.replace(f"{self._home}/", "/tmp/")
        return "" if says(act.text, said) else f"{act.what}: says otherwise:\n{said}"
