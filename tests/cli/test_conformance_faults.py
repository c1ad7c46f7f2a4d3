"""`conformance run --faults`: it reaches every machine, and no output takes it for a clean run."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Run

ONLY = ("--only", "H01", "--only", "I02")
CLEAN = ("conformance", "run", "sim", *ONLY)


@pytest.fixture
def faults(tmp_path: Path) -> Path:
    """Nobody can be asked how it is."""
    path = tmp_path / "faults.yaml"
    path.write_text('- {read: "*/faults", times: 1000, do: error EIO}\n')
    return path


def test_run_with_faults_says_so_wherever_it_is_told(
    run: Run, faults: Path, tmp_path: Path
) -> None:
    junit, markdown = tmp_path / "report.xml", tmp_path / "report.md"

    answer = run(*CLEAN, "--faults", faults, "--junit", junit, "--markdown", markdown)

    assert answer.code == 1
    assert answer.lines[:2] == [
        "plugin sim, seed 0",
        "with fault: read */faults times 1000 do error EIO",
    ]
    assert answer.lines[2].startswith("H01   fail")
    assert "EIO (made to fail)" in answer.lines[3]
    assert answer.lines[-3:] == ["no badges: it was run with faults", "1 pass, 1 fail", ""]
    (suite,) = ET.fromstring(junit.read_text())
    assert suite.get("name") == "accelkit.conformance.sim with faults"
    assert [(one.get("name"), one.get("value")) for one in suite.iter("property")] == [
        ("fault", "read */faults times 1000 do error EIO")
    ]
    assert {case.get("classname") for case in suite.iter("testcase")} == {suite.get("name")}
    lines = markdown.read_text().splitlines()
    assert lines[2].startswith("| plugin sim basic with faults | none: with faults |")
    assert "Fault of plugin sim basic with faults: `read */faults times 1000 do error EIO`" in lines


def test_run_with_faults_earns_no_badge_even_if_all_pass(run: Run, faults: Path) -> None:
    words = ("conformance", "run", "sim", "--only", "T01", "-o", "json")

    with_faults = json.loads(run(*words, "--faults", faults).out)
    clean = json.loads(run(*words).out)

    assert with_faults["faults"] == ["read */faults times 1000 do error EIO"]
    assert with_faults["badges"] == {}
    assert clean["faults"] == []


def test_baseline_is_of_runs_with_the_same_faults(run: Run, faults: Path, tmp_path: Path) -> None:
    known, other = tmp_path / "known.json", tmp_path / "other.yaml"
    known.write_text(run(*CLEAN, "--faults", faults, "-o", "json").out)
    other.write_text('- {read: "*/faults", times: 1001, do: error EIO}\n')

    assert run(*CLEAN, "--faults", faults, "--baseline", known).code == 0
    assert run(*CLEAN, "--faults", other, "--baseline", known).code == 1

    clean = tmp_path / "clean.json"
    clean.write_text(run(*CLEAN, "-o", "json").out)
    lines = run("conformance", "diff", clean, known).lines
    assert [line.split()[0:3:2] for line in lines[1:]] == [["sim/basic", "pass"]] * 2 + [
        ["sim/basic", "faults:"]
    ] * 2


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("check, said", [("DP02", "no list"), ("SL01", "no devices for claims")])
def test_faults_reach_the_machines_of_agents(
    run: Run, tmp_path: Path, check: str, said: str
) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("- {at: 0s, do: error discover}\n")

    answer = run(
        *("conformance", "run", "sim", "--only", check, "--faults", path),
        *("--deadline-scale", "0.5", "-o", "json"),
    )

    (found,) = json.loads(answer.out)["checks"]
    assert found["verdict"] == "fail"
    assert said in found["findings"][0]


@pytest.mark.parametrize(
    "text, said",
    [
        ("- {at: 0s, do: lose accel-9}", "faults.yaml[0]: lose: there is no accel-9"),
        ("- {at: 0s, do: frobnicate}", "faults.yaml[0]: frobnicate: nothing here knows it"),
        ("- {do: unload}", "faults.yaml[0]: must say exactly one of call, read and at"),
        ("{}", "faults.yaml: must hold a list of faults"),
        ("[]", "faults.yaml: holds no fault"),
        ("- {at: [", "faults.yaml: is not YAML"),
    ],
)
def test_bad_file_is_told_before_anything_runs(
    run: Run, tmp_path: Path, text: str, said: str
) -> None:
    path, junit = tmp_path / "faults.yaml", tmp_path / "report.xml"
    path.write_text(text)

    answer = run(*CLEAN, "--faults", path, "--junit", junit)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"{tmp_path}/{said}")


@pytest.mark.parametrize(
    "words, said",
    [
        (("--driver", "k", "--resource", "acme.com/npu"), "--driver has none"),
        (("sim", "--host", "/"), "--host names another one"),
        ((), "--faults go with one VENDOR"),
        (("sim", "simset"), "--faults go with one VENDOR"),
        (("sim",), "cannot be read"),
    ],
)
def test_faults_are_refused_where_they_cannot_happen(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    answer = run("conformance", "run", *words, "--faults", "missing.yaml")

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
