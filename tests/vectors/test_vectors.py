import subprocess
import sys
from pathlib import Path

import pytest

from tests.vectors.runner import Json, UnusableFileError, differences, read

HERE = Path(__file__).parent
DOCUMENT, VECTORS = read(HERE / "preferred-allocation.json")
SLICES, OF_SLICES = read(HERE / "counters-and-slices.json")
PLACES, OF_PLACES = read(HERE / "partition-placement.json")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.vectors", *arguments],
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("vector", VECTORS, ids=[str(vector["id"]) for vector in VECTORS])
def test_preferred_allocation_is_as_published(vector: Json) -> None:
    assert differences(DOCUMENT, vector) == []


@pytest.mark.parametrize("vector", OF_SLICES, ids=lambda vector: str(vector["id"]))
def test_counters_and_slices_are_as_published(vector: Json) -> None:
    assert differences(SLICES, vector) == []


@pytest.mark.parametrize("vector", OF_PLACES, ids=lambda vector: str(vector["id"]))
def test_places_of_partitions_are_as_published(vector: Json) -> None:
    assert differences(PLACES, vector) == []


def test_runner_counts_and_is_content() -> None:
    done = run(HERE / "preferred-allocation.json")

    assert (done.returncode, done.stdout) == (0, f"{len(VECTORS)} passed, 0 failed\n")


def test_runner_prints_a_line_for_each_failure(tmp_path: Path) -> None:
    document = tmp_path / "vectors.json"
    document.write_text(
        """{"topologies": {"two": {"ids": ["a", "b"], "levels": [[[0, 1], [1, 0]]]}}, "vectors": [
        {"id": "A", "topology": "two", "available": ["a", "b"], "must": [], "size": 1,
         "expect": {"ids": ["b"], "size": 1, "colour": "red"}},
        {"id": "B", "topology": "one", "available": [], "must": [], "size": 1, "expect": {}},
        {"id": "C", "op": "dance"},
        {"id": "D", "topology": "two", "available": ["a", "b"], "must": [], "size": 2,
         "expect": {"closeness": 1, "contains": ["b"]}}]}"""
    )

    done = run(document)

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        (
            "A: ids: expected ['b'], got ['a']; "
            "colour: expected 'red', got 'nothing that is compared with it'"
        ),
        "B: KeyError: 'one'",
        "C: op 'dance' is not there yet",
        "1 passed, 3 failed",
    ]


@pytest.mark.parametrize(
    "text,why",
    [
        ("{", "Expecting"),
        ("[1]", "no list of vectors"),
        ('{"vectors": []}', "no list of vectors"),
        ('{"vectors": [{"op": "place"}]}', "one of them has no id"),
    ],
)
def test_runner_refuses_a_file_that_holds_no_vectors(tmp_path: Path, text: str, why: str) -> None:
    document = tmp_path / "vectors.json"
    document.write_text(text)

    with pytest.raises(UnusableFileError, match=why):
        read(document)
    done = run(document)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_runner_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert run(tmp_path / "missing.json").returncode == 2


def test_runner_wants_a_file() -> None:
    done = run()

    assert (done.returncode, done.stderr) == (2, "usage: python -m tests.vectors FILE...\n")
