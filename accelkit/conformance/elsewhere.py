"""Asks a plugin in a process of its own: ``python -m accelkit.conformance.elsewhere``."""

import json
import sys
from functools import reduce
from importlib import import_module

from accelkit.core.host import ReadOnly
from accelkit.core.policy_check import options_of
from accelkit.core.reading import read_inventory
from accelkit.testing.hosts import open_host


def main() -> int:
    """Read vendor, options and host as JSON, and print the ids that the vendor gives."""
    asked = json.load(sys.stdin)
    module, _, name = asked["vendor"].partition(":")
    kind = reduce(getattr, name.split("."), import_module(module))
    vendor = kind(options_of(kind, asked["options"]))  # type: ignore[arg-type,operator]  # by name
    report = read_inventory(vendor, ReadOnly(open_host(asked["host"])))
    sys.stdout.write(json.dumps([str(d.id) for d in report.devices]))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
