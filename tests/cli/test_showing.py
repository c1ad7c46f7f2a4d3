import pytest

from accelkit.cli.showing import (
    aligned,
    amount,
    counted,
    document,
    show_problems,
    show_table,
    timeless,
)
from accelkit.core.model import Problem


@pytest.mark.parametrize(
    "value, said",
    [
        (None, "-"),
        (0, "0"),
        (512, "512"),
        (1 << 34, "16Gi"),
        (85422243840, "79.6Gi"),
        (24 << 20, "24Mi"),
        (3 << 40, "3Ti"),
        (1500, "1.5Ki"),
    ],
)
def test_amounts_are_short(value: int | None, said: str) -> None:
    assert amount(value) == said


def test_cells_are_aligned_without_blanks_at_the_end() -> None:
    assert aligned(("a", "bb", ""), (3, 2, 4)) == "a    bb"


def test_things_are_counted_in_words() -> None:
    assert [counted(1, "device"), counted(2, "device")] == ["1 device", "2 devices"]


def test_documents_do_not_say_when_they_were_made() -> None:
    assert document("Thing", items=[{"since": "now", "a": 1}], tookS=2.0) == {
        "apiVersion": "accelkit.dev/v1",
        "kind": "Thing",
        "items": [{"a": 1}],
        "tookS": 2.0,
    }
    assert timeless([{"takenAt": 1}, "since"]) == [{}, "since"]


def test_texts_of_hardware_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("PRODUCT",), [("a\x1b[2Jb\n",), ("H100 µ",)])

    assert capsys.readouterr().out == "PRODUCT\na�[2Jb�\nH100 µ\n"


def test_what_is_wrong_is_said_once_however_often_it_was_met(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder of device files that was closed was told twice of each device."""
    one = Problem(vendor="amd", subject="gpu-0", code="access-denied", reason="no", remedy="do")
    other = Problem(vendor="amd", subject="gpu-1", code="access-denied", reason="no")

    show_problems([one, one, other])

    assert capsys.readouterr().out.splitlines() == [
        "problem: amd/gpu-0: no [access-denied]",
        "  remedy: do",
        "problem: amd/gpu-1: no [access-denied]",
    ]
