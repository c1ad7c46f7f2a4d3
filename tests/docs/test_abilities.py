"""Pages of abilities show code that is there, and what it does."""

import re
from pathlib import Path

import attrs
import pytest

from accelkit.conformance.subjects import WORDS
from accelkit.core.model import Device
from accelkit.core.vendor import ABILITIES
from tests.docs.reader import Reader, acts
from tests.installing import install

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "acme-accelkit"
PAGES = sorted((ROOT / "docs" / "abilities").glob("*.md"))
LONGEST = 60
"""Lines of a page, what commands print left out."""


def test_every_ability_has_a_page_that_names_it() -> None:
    lacking = [
        name
        for name, ability in ABILITIES.items()
        if f"`{ability.__name__}`" not in (ROOT / f"docs/abilities/{name}.md").read_text()
    ]

    assert lacking == []


def test_page_of_machines_has_every_word_that_checks_use() -> None:
    page = (ROOT / "docs/abilities/machine.md").read_text()
    words = {text.split()[0] for pairs in WORDS.values() for pair in pairs for text in pair if text}

    assert {word for word in words if f"`{word} " not in page and f"`{word}`" not in page} <= {
        "remove"  # for machines that tell a device that is gone from one that is lost
    }


def test_every_field_of_a_device_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/plugins.md").read_text()

    assert [f.name for f in attrs.fields(Device) if f"`{f.name}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_of_an_ability_is_short_and_shows_code_that_is_there(page: Path) -> None:
    printed = sum(act.text.count("\n") for act in acts(page) if act.how == "run")
    missing = [
        act.what
        for act in acts(page)
        if act.how == "python" and act.text not in source(act.what).read_text()
    ]

    assert missing == []
    assert len(page.read_text().splitlines()) - printed <= LONGEST


def source(file: str) -> Path:
    """The file of the example, or of accelkit itself."""
    return EXAMPLE / file if (EXAMPLE / file).exists() else ROOT / file


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if re.search(r"^\$ ", p.read_text(), re.MULTILINE)],
    ids=lambda p: p.stem,
)
def test_page_of_an_ability_shows_what_happens(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = Reader(tmp_path, monkeypatch, lambda: "".join(capsys.readouterr()))
    install(monkeypatch, tmp_path / "site", EXAMPLE)

    assert [w for act in acts(page) if act.how != "python" and (w := reader.do(act))] == []
