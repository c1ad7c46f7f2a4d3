"""The shape of the tree: sizes, reasons, and what a fresh interpreter loads."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

import accelkit
from accelkit import testing

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    p for folder in ("accelkit", "tests", "benchmarks") for p in (ROOT / folder).rglob("*.py")
)
LIMIT = 600
PASTED = {"accelkit.testing.pasted", "accelkit.testing.texts"}
"""Open to all as they are: their names are too short to stand for themselves."""
REASON = re.compile(r"(\s-\s|\s#\s|no cover: )\S")
SILENCED = re.compile(r"#\s*(noqa|type: ignore|pragma: no cover)(?P<rest>.*)$")


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after *statement*."""
    code = (
        f"import sys, json\n{statement}\nprint(json.dumps([m.split('.')[0] for m in sys.modules]))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True
    )
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_files_stay_below_the_limit() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in SOURCES}

    assert {path: n for path, n in lines.items() if n >= LIMIT} == {}


def test_whoever_silences_a_checker_says_why() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (found := SILENCED.search(line)) and not REASON.search(found["rest"])
    ]

    assert silent == []


def test_importing_accelkit_loads_only_attrs() -> None:
    loaded = loaded_by("import accelkit; accelkit.Vendor; accelkit.Device")

    assert "attr" in loaded
    assert not loaded & {"grpc", "google", "yaml", "cattrs", "click", "rich", "pynvml", "asyncio"}


def test_every_public_name_is_there_and_typed() -> None:
    stub = (ROOT / "accelkit" / "__init__.pyi").read_text()
    named = set(re.findall(r"import (\w+) as \1", stub)) | set(
        re.findall(r"^    (\w+) as \1", stub, re.MULTILINE)
    )

    assert named == set(dir(accelkit))
    assert [name for name in named if not hasattr(accelkit, name)] == []


def test_vendors_use_nothing_that_a_stranger_could_not() -> None:
    """Names of `accelkit` and `accelkit.testing`, of their own folder, and for pasted texts."""
    vendors = ROOT / "accelkit" / "vendors"
    found = [
        f"{path.relative_to(ROOT)}: {module}.{name}"
        for path in vendors.rglob("*.py")
        for module, name in imported(path)
        if not public(module, name, path.relative_to(vendors).parts[0])
    ]

    assert found == []


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """What of accelkit a file imports: module and name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("accelkit"):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if a.name.startswith("accelkit"))


def public(module: str, name: str, vendor: str) -> bool:
    own = f"accelkit.vendors.{vendor}"
    if module == own or module.startswith(f"{own}.") or module in PASTED:
        return True
    if module == "accelkit":
        return name in dir(accelkit)
    return module.startswith("accelkit.testing") and name in dir(testing)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Devise'"):
        getattr(accelkit, "Devise")  # noqa: B009 - the name must not exist


def test_every_module_says_what_is_in_it() -> None:
    nameless = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if path.parts[-2] != "tests"
        and path.is_relative_to(ROOT / "accelkit")
        and not path.read_text().lstrip().startswith('"""')
    ]

    assert nameless == []


def test_the_version_is_the_one_in_the_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert version("accelkit") == project["version"]
