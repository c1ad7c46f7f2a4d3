"""Writes the project of a new plugin. Not here: what a plugin can do beside that."""

import re
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from string import Template

from accelkit.core.errors import ConfigError
from accelkit.core.hooks import GROUP
from accelkit.core.values import is_dns_label

LONGEST = 20
"""Characters of a vendor's name."""
_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "plugin.py": "{module}/__init__.py",
    "machine.py": "{module}/machine.py",
    "test_plugin.py": "tests/test_{identifier}.py",
}
"""Templates beside this file, and where they go."""


def write_project(name: str, directory: Path, pci: int) -> tuple[Path, ...]:
    """Write a plugin for the vendor *name*, whose PCI vendor id is *pci*, into *directory*.

    Raises:
        ConfigError: The name is none, or accelkit's own, or something is there already.
    """
    if not is_dns_label(name) or len(name) > LONGEST or not re.match("[a-z]", name):
        text = f"{name!r} is no name of a vendor"
        remedy = f"take at most {LONGEST} small letters, digits and -, a letter first"
        raise ConfigError([("NAME", text)], remedy=remedy)
    if name in {p.name for p in entry_points(group=GROUP) if p.dist and p.dist.name == "accelkit"}:
        raise ConfigError([("NAME", f"{name} comes with accelkit")], remedy="take another name")
    if directory.exists() and any(directory.iterdir()):
        remedy = "name a directory that is empty, or is not there yet"
        raise ConfigError([("DIR", f"{directory} is not empty")], remedy=remedy)
    identifier = name.replace("-", "_")
    words = {
        "name": name,
        "identifier": identifier,
        "module": f"{identifier}_accelkit",
        "pci": f"{pci:04x}",
        "kind": "".join(part.capitalize() for part in name.split("-")),
    }
    made = []
    for template, place in _FILES.items():
        path = directory / place.format(**words)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = files(__package__).joinpath(f"{template}.txt").read_text()
        path.write_text(Template(text).substitute(words))
        made.append(path)
    return tuple(made)
