"""Partitions that may come back with the device that they were cut out of."""

from pathlib import Path

import pytest

from accelkit.agent.disk import HostDisk
from accelkit.agent.left import Gone, Left
from tests.agent.toys import device

WHOLE, PART = device("toy", "a"), device("toy", "a-half-0")
GONE = Gone(root=WHOLE, handle="1")


@pytest.fixture
def left(tmp_path: Path) -> Left:
    noted = Left(tmp_path / "left", HostDisk())
    noted.note(PART, GONE)
    return noted


@pytest.mark.usefixtures("left")
def test_what_was_noted_is_known_to_every_instance(tmp_path: Path) -> None:
    assert dict(Left(tmp_path / "left", HostDisk()).all()) == {PART: GONE}


def test_what_was_noted_is_forgotten_once_and_for_all(left: Left) -> None:
    left.forget(PART)
    left.forget(PART)

    assert dict(left.all()) == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"device": "a", "root": "", "handle": 1}'])
def test_what_cannot_be_read_is_left_alone(left: Left, tmp_path: Path, text: str) -> None:
    (tmp_path / "left" / "toy~x.json").write_text(text)

    assert dict(left.all()) == {PART: GONE}
