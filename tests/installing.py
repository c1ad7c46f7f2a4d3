"""What an installation leaves, without one: a module on the path, and its entry point."""

from pathlib import Path

import pytest


def install(monkeypatch: pytest.MonkeyPatch, site: Path, project: Path, vendor: str) -> None:
    """Let the plugin in *project*, whose module is VENDOR_accelkit, be found until the test ends.

    Args:
        monkeypatch: Of the test.
        site: A folder for what is not the project's.
        project: Has the module.
        vendor: Name of the vendor.
    """
    module = f"{vendor.replace('-', '_')}_accelkit"
    folder = site / f"{module}-0.1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {vendor}-accelkit\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text(f"[accelkit]\n{vendor} = {module}\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(project)
