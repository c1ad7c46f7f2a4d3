"""What an installation leaves, without one: a module on the path, and its entry point."""

import importlib
import os
import sys
import tomllib
from pathlib import Path

import pytest

from accelkit.testing import shared


def install(monkeypatch: pytest.MonkeyPatch, site: Path, project: Path) -> None:
    """Let the plugin in *project* be found until the test ends, by what it starts as well.

    Args:
        monkeypatch: Of the test.
        site: A folder for what is not the project's.
        project: Has a pyproject.toml, and the module beside it.
    """
    described = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    name, version = described["name"], described["version"]
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    points = described["entry-points"]["accelkit"]
    lines = "".join(f"{point} = {module}\n" for point, module in points.items())
    (folder / "entry_points.txt").write_text(f"[accelkit]\n{lines}")
    for path in (site, project):
        monkeypatch.syspath_prepend(path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(project), str(site))))
    forget(*points.values())


def forget(*modules: str) -> None:
    """Let *modules* be read anew when they are asked for: their files are other ones now."""
    for name in [*sys.modules]:
        if name.partition(".")[0] in modules:
            del sys.modules[name]
    shared.machine_class.cache_clear()
    shared.machines.cache_clear()
    importlib.invalidate_caches()
