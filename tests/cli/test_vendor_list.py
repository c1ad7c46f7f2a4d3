"""What is wrong with a plugin that cannot be used, and what its author has to change."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.installing import install

GOOD = """\
from accelkit import Vendor, hookimpl


class Broken(Vendor):
    name = "broken"
    domain = "broken.example"

    def discover(self, host):
        return []


@hookimpl
def accelkit_vendors():
    return [Broken]
"""
BROKEN = {
    "api": ('name = "broken"', 'name = "broken"\n    api = 2', "plugin API 2", "upgrade accelkit"),
    "missing": ("def discover", "def discovers", "Broken: discover", "must be written"),
    "type": (
        'name = "broken"',
        'name = "broken"\n    attributes = {"a": list}',
        "attribute 'a'",
        "its type must be one of bool, int, str",
    ),
    "name": ('name = "broken"', 'name = "Bad!"', "found 'Bad!'", "at most 20 characters"),
    "object": ("return [Broken]", "return [Broken(None)]", "not a subclass", "return classes"),
    "list": ("return [Broken]", "return Broken", "accelkit_vendors", "must answer a list"),
    "nothing": (
        "return [Broken]",
        "[Broken]",
        "no hook of broken_accelkit answers",
        "return [...]",
    ),
    "flag": ('name = "broken"', 'name = "broken"\n    sets = "no"', "Broken: sets", "must be True"),
    "hook": ("@hookimpl", "", "has no hook", "accelkit.hookimpl"),
    "import": ("from acc", "import nowhere\nfrom acc", "'nowhere'", "broken_accelkit.py:1"),
    "raise": (
        "class B",
        "raise SystemExit('no')\nclass B",
        "SystemExit: no",
        "broken_accelkit.py:4",
    ),
}
"""By kind: what is written instead of what, and what is said to be wrong and to be done."""


def install_plugin(monkeypatch: pytest.MonkeyPatch, directory: Path, text: str) -> None:
    project = directory / "project"
    project.mkdir()
    (project / "broken_accelkit.py").write_text(text)
    (project / "pyproject.toml").write_text(
        '[project]\nname = "broken-accelkit"\nversion = "0.1"\n'
        '[project.entry-points.accelkit]\nbroken = "broken_accelkit"\n'
    )
    install(monkeypatch, directory / "site", project)


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_plugin_is_named_with_what_is_to_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, kind: str
) -> None:
    old, new, wrong, remedy = BROKEN[kind]
    install_plugin(monkeypatch, tmp_path, GOOD.replace(old, new, 1))

    answer = run("vendor", "list")

    (line,) = (line for line in answer.lines if line.startswith("broken "))
    assert answer.code == 0
    assert wrong in line
    assert remedy in line
    assert any(line.startswith("sim ") for line in answer.lines)


@pytest.mark.parametrize("command", [("devices", "-o", "json"), ("doctor", "-o", "json")])
def test_what_a_plugin_prints_does_not_come_between_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, command: tuple[str, ...]
) -> None:
    """Whoever read the answer with a program found the plugin's words before it."""
    text = GOOD.replace("return []", 'print("hello")\n        return []')
    install_plugin(monkeypatch, tmp_path, text)
    host = tmp_path / "host"
    host.mkdir()

    answer = run(*command, "--host", host)

    assert "hello" in answer.err
    assert isinstance(json.loads(answer.out), dict)
