import json
from pathlib import Path

import pytest

from accelkit.conformance.checks import CHECKS
from accelkit.testing.simulate import set_state
from tests.cli.conftest import Run

ONE = CHECKS[0]


def test_checks_are_listed(run: Run) -> None:
    table = run("conformance", "list")
    tree = json.loads(run("conformance", "list", "-o", "json", "--only", "health").out)

    assert [line.split()[0] for line in table.lines] == ["ID", *(c.id for c in CHECKS)]
    assert {item["id"] for item in tree["items"]} == {c.id for c in CHECKS if "health" in c.badges}


def test_check_is_explained(run: Run) -> None:
    answer = run("conformance", "show", ONE.id.lower())

    assert answer.code == 0
    assert answer.lines[0] == f"{ONE.id}: {ONE.claim}"
    assert answer.lines[-1] == f"page:   docs/conformance/{ONE.id}.md"


def test_vendor_is_checked(run: Run) -> None:
    answer = run("conformance", "run", "sim", "--only", "I01", "--only", "I02")

    assert answer.code == 0
    assert answer.lines == [
        "sim:",
        "I01   pass           No two devices have one id.",
        "I02   pass           Names are DNS labels that leave room for suffixes.",
        "2 checks: 2 pass",
        "badge core: granted",
        "",
    ]


def test_must_that_fails_makes_the_answer_no_and_says_what_is_wrong(run: Run, basic: Path) -> None:
    set_state(str(basic), ["raise", "discover"])

    answer = run("conformance", "run", "sim", "--host", basic, "--only", "I01")

    assert answer.code == 1
    assert answer.lines[1] == "I01   fail           No two devices have one id."
    assert answer.lines[2].startswith("      - RuntimeError: discover was told to raise")
    assert answer.lines[4] == "badge core: refused"


def test_every_vendor_of_the_tree_is_checked_where_none_is_named(run: Run) -> None:
    tree = json.loads(run("conformance", "run", "--only", "I02", "-o", "json").out)

    assert tree["kind"] == "ConformanceReportList"
    assert {item["subject"]["name"] for item in tree["items"]} >= {"generic", "nvidia", "sim"}


def test_report_says_what_was_checked_where_and_how(run: Run) -> None:
    answer = run("conformance", "run", "sim", "--product", "ring", "--only", "I02", "-o", "json")
    tree = json.loads(answer.out)

    assert (tree["kind"], tree["badges"], tree["summary"]["pass"]) == (
        "ConformanceReport",
        {"core": "granted"},
        1,
    )
    assert tree["subject"]["product"] == "ring"
    assert tree["checks"] == [
        {"id": "I02", "level": "L1", "must": True, "verdict": "pass", "findings": []}
    ]


@pytest.mark.parametrize(
    "words, said",
    [
        (("run", "nope"), "vendor nope: is not installed"),
        (("run", "sim", "--only", "X99"), "X99: is no check, family, level or badge"),
        (("run", "--product", "ring"), "--product and --host go with one VENDOR"),
        (("run", "sim", "--product", "nope"), "product nope: is none of sim"),
        (("run", "sim", "--waivers", "/no/such"), "/no/such: cannot be read"),
        (("show", "X99"), "X99: is no check"),
        (("list", "--only", "X99"), "X99: is no check"),
    ],
)
def test_what_there_is_not_is_bad_input(run: Run, words: tuple[str, ...], said: str) -> None:
    answer = run("conformance", *words)

    assert answer.code == 2
    assert said in answer.err


def test_waivers_of_the_working_directory_are_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conformance.toml").write_text("[[waive]]\nid = 'X99'\n")
    monkeypatch.chdir(tmp_path)

    answer = run("conformance", "run", "sim", "--only", "I02")

    assert answer.code == 2
    assert answer.err.startswith("waive[0]: ")
