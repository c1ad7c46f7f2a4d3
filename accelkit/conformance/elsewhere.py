"""Asks a plugin in a process of its own: ``python -m accelkit.conformance.elsewhere``."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path

from accelkit.conformance.bench import grant
from accelkit.core.host import ReadOnly
from accelkit.core.policy_check import options_of
from accelkit.core.reading import grant_edits, read_conditions, read_inventory
from accelkit.testing.hosts import open_host


def main() -> int:
    """Read vendor, options and host as JSON.

    Prints the ids that the vendor gives, and what it left of itself in the process, as JSON.
    """
    asked = json.load(sys.stdin)
    out, sys.stdout = sys.stdout, sys.stderr  # for whatever a plugin prints
    module, _, name = asked["vendor"].partition(":")
    kind = reduce(getattr, name.split("."), import_module(module))
    host = ReadOnly(open_host(asked["host"]))
    before = _surroundings()
    vendor = kind(options_of(kind, asked["options"]))  # type: ignore[arg-type,operator]  # by name
    devices = read_inventory(vendor, host).devices
    read_conditions(vendor, host, devices, ())
    grant_edits(vendor, host, grant(d for d in devices if d.usable))
    vendor.close()
    after = _surroundings()
    left = [what for what in before if before[what] != after[what]]
    out.write(json.dumps({"ids": [str(d.id) for d in devices], "left": left}))
    out.flush()
    return 0


def _surroundings() -> dict[str, object]:
    """What all code of a process shares, and no plugin may change for others."""
    return {
        "environment variables": dict(os.environ),
        "another working directory": os.getcwd(),  # noqa: PTH109 - as it was set
        "another umask": _status("Umask"),
        "folders that modules are looked for in": list(sys.path),
        "processes": sorted(_children()),
    }


def _status(key: str) -> str:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next((line for line in lines if line.startswith(key)), "")


def _children() -> Iterator[str]:
    for found in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ends as we look
            parent = found.read_text("utf-8", "replace").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                yield found.parent.name


if __name__ == "__main__":
    sys.exit(main())
