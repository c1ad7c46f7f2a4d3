"""What changed between two reports, and what of it is worse."""

import json
from pathlib import Path

import attrs
import pytest

from accelkit.conformance.comparing import Change, changes, read_report, told
from accelkit.conformance.model import Badge, Level, Verdict
from accelkit.conformance.render import as_json
from accelkit.conformance.report import Report, Result
from accelkit.core.errors import ConfigError

PASS, FAIL = Verdict.PASS, Verdict.FAIL


def report(*, must: bool = True, **verdicts: Verdict) -> Report:
    results = [
        Result(
            id=ident,
            claim=f"{ident} holds.",
            level=Level.L1,
            must=must,
            badges=frozenset({Badge.CORE}),
            verdict=verdict,
        )
        for ident, verdict in verdicts.items()
    ]
    return Report(kind="plugin", name="acme", product="a100", results=tuple(results))


def test_check_that_ended_otherwise_is_a_change_and_others_are_not() -> None:
    old = report(X01=PASS, X02=FAIL, X03=PASS, X05=PASS)
    new = report(X01=FAIL, X02=PASS, X03=PASS, X04=PASS)

    assert [attrs.astuple(c) for c in changes(told([old]), told([new]))] == [
        ("acme/a100", "X01", "pass", "fail", True),
        ("acme/a100", "X02", "fail", "pass", False),
        ("acme/a100", "X04", "not-run", "pass", False),
        ("acme/a100", "X05", "pass", "not-run", False),
    ]


@pytest.mark.parametrize(
    "before, after, worse",
    [
        (report(), report(X01=FAIL), True),
        (report(X01=PASS), report(X01=Verdict.UNSTABLE), True),
        (report(X01=FAIL), report(X01=Verdict.UNSTABLE), False),
        (report(X01=PASS), report(X01=Verdict.WAIVED), False),
        (report(X01=PASS), report(must=False, X01=FAIL), False),
        (report(must=False, X01=FAIL), report(X01=FAIL), True),
    ],
)
def test_only_a_must_that_makes_the_answer_no_and_did_not_is_worse(
    before: Report, after: Report, worse: bool
) -> None:
    (change,) = changes(told([before]), told([after]))

    assert change.worse is worse


def test_reports_of_several_subjects_are_compared_each_with_its_own(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    other = attrs.evolve(report(X01=FAIL), name="other", product="")
    file.write_text(as_json([report(X01=PASS), other]))

    found = list(changes(read_report(file), told([report(X01=PASS)])))

    gone = Change(subject="other", id="X01", before="fail", after="not-run", worse=False)
    assert found == [gone]


@pytest.mark.parametrize(
    "text, problem",
    [
        ("", "is no ConformanceReport"),
        ("[1]", "is no ConformanceReport"),
        ("[" * 100_000, "is no ConformanceReport"),
        ('{"kind": "CheckList"}', "its kind is CheckList"),
        (as_json([report(X01=PASS)]).replace('"pass",', '"fine",'), "is no ConformanceReport"),
        (json.dumps({"kind": "ConformanceReport", "subject": []}), "is no ConformanceReport"),
    ],
)
def test_file_that_is_no_report_is_an_error_that_says_how_to_get_one(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "old.json").write_text(text)

    with pytest.raises(ConfigError, match=problem) as told_so:
        read_report(tmp_path / "old.json")

    assert told_so.value.remedy == "write one: accelkit conformance run -o json"


def test_report_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_report(tmp_path / "old.json")
