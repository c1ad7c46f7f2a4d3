"""The tutorial does what it says: every file is written, every command is run, in its order."""

from pathlib import Path

import pytest

from tests.docs.reader import Reader, acts

PAGES = sorted((Path(__file__).parents[2] / "docs" / "tutorial").glob("[0-9]*.md"))
LONGEST = 65
"""Lines of the vendor's file, at the end of each page."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_of_the_tutorial_shows_what_happens(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On what the pages before have made of the project; each page makes nodes of its own."""
    reader = Reader(tmp_path, monkeypatch, lambda: "".join(capsys.readouterr()))
    try:
        for before in PAGES[: PAGES.index(page)]:
            assert [w for act in acts(before) if act.stays and (w := reader.do(act))] == []
        wrongs = [wrong for act in acts(page) if (wrong := reader.do(act))]
        length = len(Path("acme_accelkit/__init__.py").read_text().splitlines())
    finally:
        reader.end()

    assert wrongs == [], "\n".join(wrongs)
    assert length <= LONGEST


@pytest.mark.timeout(300)
def test_finished_plugin_and_the_one_to_start_from_please_a_type_checker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(tmp_path, monkeypatch, lambda: "".join(capsys.readouterr()))
    assert [w for page in PAGES for a in acts(page) if a.stays and (w := reader.do(a))] == []
    assert reader.run(["accelkit", "vendor", "new", "umbra", f"{tmp_path}/umbra"])[0] == 0

    found = reader.run(
        [
            *("mypy", "--strict", f"--cache-dir={tmp_path}/cache"),
            *("acme_accelkit", f"{tmp_path}/umbra/umbra_accelkit"),
        ]
    )

    assert found == (0, "Success: no issues found in 6 source files\n")
