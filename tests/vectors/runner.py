"""Reads files of vectors and asks the product; what a vector's fields mean is elsewhere."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from tests.vectors import partition, preferred, slices

Json: TypeAlias = Mapping[str, object]
Check: TypeAlias = Callable[[Json, Json], Iterator[str]]

CHECKS: Mapping[str | None, Check] = {
    None: preferred.check,
    "place": partition.check_place,
    "start": partition.check_start,
    "group": partition.check_group,
    "listing": partition.check_listing,
    "counters": partition.check_counters,
    "pack": slices.check_pack,
    "change": slices.check_change,
    "limits": slices.check_limits,
}
"""By ``op``; preferred allocation has none."""


class UnusableFileError(Exception):
    """A file is not one of vectors."""


def read(path: Path) -> tuple[Json, Sequence[Json]]:
    """Return the document and its vectors.

    Raises:
        UnusableFileError: The file cannot be read, is not JSON, or has no vectors.
    """
    try:
        document: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UnusableFileError(f"{path}: not a file of vectors: {error}") from error
    vectors = document.get("vectors") if isinstance(document, dict) else None
    if not isinstance(vectors, list) or not vectors:
        raise UnusableFileError(f"{path}: not a file of vectors: it has no list of vectors")
    if not all(isinstance(vector, dict) and "id" in vector for vector in vectors):
        raise UnusableFileError(f"{path}: not a file of vectors: one of them has no id")
    return cast("Json", document), cast("list[Json]", vectors)


def differences(document: Json, vector: Json) -> list[str]:
    """Return how the product's answer differs from the vector's, empty if it does not."""
    op = cast("str | None", vector.get("op"))
    check = CHECKS.get(op)
    if check is None:
        return [f"op {op!r} is not there yet"]
    try:
        return list(check(document, vector))
    except Exception as error:  # noqa: BLE001 - whatever a vector provokes is that vector's failure
        return [f"{type(error).__name__}: {error}"]


def main(arguments: Sequence[str]) -> int:
    """Print a line for each failure and the sums last; 1 if any failed, 2 if a file is unusable."""
    if not arguments:
        sys.stderr.write("usage: python -m tests.vectors FILE...\n")
        return 2
    try:
        files = [read(Path(argument)) for argument in arguments]
    except UnusableFileError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    passed = failed = 0
    for document, vectors in files:
        for vector in vectors:
            wrong = differences(document, vector)
            if wrong:
                sys.stdout.write(f"{vector['id']}: {'; '.join(wrong)}\n")
            failed += bool(wrong)
            passed += not wrong
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0
