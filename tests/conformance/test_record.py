"""The page that says what passes is what was run, of all that there is."""

from pathlib import Path

import pytest

from accelkit.conformance.checks import CHECKS
from accelkit.conformance.intree import IN_TREE, subject_of
from accelkit.conformance.model import Level, Verdict
from accelkit.conformance.runner import why_not
from tests.conformance import record

RENEW = "run: python -m tests.conformance.record (--page: without running checks)"


@pytest.mark.slow
def test_the_page_is_what_is_kept() -> None:
    assert record.PAGE.read_text("utf-8").splitlines() == list(
        "\n".join(record.page_of(record.read())).splitlines()
    ), RENEW


def test_every_product_of_every_vendor_has_a_row() -> None:
    rows = [line.split(" | ")[:2] for line in record.PAGE.read_text("utf-8").splitlines()]
    told = {f"{row[0].removeprefix('| ')}/{row[1]}" for row in rows if len(row) > 1}

    assert told >= {*record.subjects()}, RENEW
    assert {subject.partition("/")[0] for subject in record.subjects()} == {*IN_TREE}


def test_what_is_kept_is_of_checks_that_there_are_and_none_failed() -> None:
    known = {check.id for check in CHECKS}
    bad = {Verdict.FAIL, Verdict.UNSTABLE, Verdict.WAIVED}

    for subject, verdicts in record.read().items():
        assert known >= verdicts.keys(), (subject, RENEW)
        assert [i for i, verdict in verdicts.items() if verdict in bad] == [], subject


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TREE)
def test_what_passed_applies_still(name: str) -> None:
    """Whatever does not apply on the way only is known by running it."""
    for subject, verdicts in record.read().items():
        vendor, _, product = subject.partition("/")
        if vendor != name:
            continue
        made = subject_of(vendor, product=product)
        features = {level: made.features(level) for level in Level}
        for check in CHECKS:
            if [*why_not(check, made, features)]:
                assert verdicts.get(check.id) in {None, Verdict.NOT_APPLICABLE}, (subject, RENEW)


@pytest.mark.slow
def test_only_what_is_missing_or_did_not_pass_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(record, "PAGE", tmp_path / "page.md")
    all_passed = {check.id: Verdict.PASS for check in CHECKS}
    record.write({"sim/basic": {**all_passed, "D01": Verdict.FAIL, "D00": Verdict.PASS}})

    assert record.main(["sim/basic"]) == 0

    assert "sim/basic: 1 checks run, 0 failed" in capsys.readouterr().out
    assert record.read() == {"sim/basic": all_passed}
    assert "| sim | basic | core, health" in (tmp_path / "page.md").read_text("utf-8")


@pytest.mark.slow
def test_the_page_can_be_written_without_running_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(record, "PAGE", tmp_path / "page.md")

    assert record.main(["--page"]) == 0

    assert capsys.readouterr().out == ""
    assert f"| 0 | 0 | 0 | 0 | {len(CHECKS)} |" in (tmp_path / "page.md").read_text("utf-8")


def test_a_subject_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        record.main(["sim/huge"])

    assert "there is no sim/huge" in capsys.readouterr().err
