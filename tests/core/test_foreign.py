"""Words for what plugins raise."""

import pytest

from accelkit.core.errors import DriverNotReady, SourceError
from accelkit.core.foreign import (
    TEXT_LIMIT,
    code_of,
    in_words,
    one_line,
    printable,
    remedy_of,
    text_of,
)


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


def test_error_says_what_it_is() -> None:
    error = DriverNotReady("it sleeps", remedy="wake it")

    assert (text_of(error), code_of(error), remedy_of(error)) == (
        "it sleeps",
        "driver-not-ready",
        "wake it",
    )
    assert in_words(ValueError("bad")) == "ValueError: bad"


@pytest.mark.parametrize(
    "error, text",
    [
        (Mute(), "(it cannot say what)"),
        (ValueError("\ud800"), "?"),
        (ValueError("x" * 10**6), "x" * TEXT_LIMIT),
    ],
)
def test_text_can_always_be_shown(error: Exception, text: str) -> None:
    assert text_of(error) == text


def test_error_without_a_code_that_can_be_used_is_a_bug_of_the_plugin() -> None:
    strange = SourceError("x")
    strange.code = 42  # type: ignore[assignment,misc]  # a plugin may do anything
    strange.remedy = None  # type: ignore[assignment]  # a plugin may do anything

    assert (code_of(strange), remedy_of(strange)) == ("plugin-bug", "")
    assert (code_of(ValueError()), remedy_of(ValueError())) == ("plugin-bug", "")


def test_texts_of_others_neither_steer_a_terminal_nor_begin_a_line() -> None:
    assert printable("plain └─ text") == "plain └─ text"
    assert printable("a\x1b[2J\x00\n\u202e\ud800") == "a\ufffd[2J\ufffd\ufffd\ufffd\ufffd"
    assert one_line("one\ntwo\r\nthree\x1b") == "one; two; three\ufffd"
