"""``python -m benchmarks [NAME...]``: measure, and print a table beside the budgets."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib import import_module

from benchmarks.rows import HEAD, Row, cells, line, markdown, misses
from benchmarks.usage import busy, others

NAMES = (
    "start",
    "allocate",
    "preferred",
    "partition",
    "prepare",
    "change",
    "many",
    "discovery",
    "scrape",
    "claims",
    "drivers",
    "cycles",
    "slices",
    "kube",
    "idle",
    "worker",
    "mixed",
)


def main() -> int:
    """Measure what was asked for; 1 if a budget is missed."""
    if sys.argv[1:2] == ["soak"]:
        from benchmarks.soak import main as soak  # noqa: PLC0415 - has arguments of its own

        return soak(sys.argv[2:])
    parser = _parser()
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in NAMES]:
        parser.error(f"{unknown[0]} is none of {', '.join(NAMES)}, soak")
    rows = []
    before, begun = busy(), time.monotonic()
    if not asked.markdown:
        print(surroundings(), line(HEAD), sep="\n")
    for row in measured(asked.names or NAMES, asked.rounds):
        rows.append(row)
        if not asked.markdown:
            print(line(cells(row)))
    if asked.markdown:
        print(f"{surroundings()}\n", *markdown(rows), sep="\n")
    missed = list(misses(rows))
    theirs = others(before, busy(), time.monotonic() - begun)
    said = f"others had {theirs:.1f} of {os.cpu_count()} cores meanwhile"
    print("", *(missed or ["all budgets held"]), said, sep="\n")
    return 1 if missed else 0


def measured(names: Iterable[str], rounds: int) -> Iterator[Row]:
    for name in names:
        measure: Callable[[int], Iterable[Row]] = import_module(f"benchmarks.{name}").measure
        yield from measure(rounds)


def surroundings() -> str:
    """What the figures depend on."""
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} cores, load {load:.1f} before"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev bench", epilog="./dev bench soak [SECONDS] looks for leaks instead."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument("--rounds", type=int, default=7, help="of each measure (default: 7)")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
