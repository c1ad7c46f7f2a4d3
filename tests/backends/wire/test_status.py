"""Errors as gRPC statuses."""

import logging

import grpc
import pytest

from accelkit.backends.wire.status import TEXT_LIMIT, StatusError, cut, shown, status_of
from accelkit.core import errors

CODE = grpc.StatusCode


@pytest.mark.parametrize(
    "error, code",
    [
        (errors.UnknownDevice("x"), CODE.NOT_FOUND),
        (errors.DeviceUnavailable("x"), CODE.FAILED_PRECONDITION),
        (errors.IllegalSet("x"), CODE.FAILED_PRECONDITION),
        (errors.MissingParts("x"), CODE.FAILED_PRECONDITION),
        (errors.PartitionInUse("x"), CODE.FAILED_PRECONDITION),
        (errors.SourceTimeout("x"), CODE.DEADLINE_EXCEEDED),
        (errors.DriverNotReady("x"), CODE.UNAVAILABLE),
        (errors.LedgerBusy("x"), CODE.UNAVAILABLE),
        (errors.NoSpace("x"), CODE.RESOURCE_EXHAUSTED),
    ],
)
def test_error_of_ours_has_its_code_and_its_text(error: Exception, code: grpc.StatusCode) -> None:
    assert status_of(error) == (code, "x")


def test_remedy_follows_the_text() -> None:
    error = errors.IllegalSet("a and b do not go together", remedy="ask for 1, 2 or 4")

    assert status_of(error)[1] == "a and b do not go together; ask for 1, 2 or 4"


def test_text_that_quotes_too_much_of_a_request_is_cut() -> None:
    _, text = status_of(errors.UnknownDevice("é" * 5000, remedy="look"))

    assert text.endswith("é ...; look")
    assert TEXT_LIMIT - 2 < len(text.encode()) <= TEXT_LIMIT


@pytest.mark.parametrize("limit", range(8, 16))
def test_text_is_cut_at_a_whole_character(limit: int) -> None:
    text = cut("aé€𝄞" * 9, limit)

    assert len(text.encode()) <= limit
    assert "aé€𝄞".startswith(text.removesuffix(" ...")[:4])


def test_text_that_is_no_text_can_be_read_all_the_same() -> None:
    assert cut("half \ud800", 99) == "half ?"


def test_lines_of_an_error_become_one() -> None:
    error = errors.ConfigError([("$.a", "missing"), ("$.b", "missing")], remedy="write both")

    assert shown(error) == "$.a: missing; $.b: missing; write both"


def test_status_error_is_answered_as_it_stands(caplog: pytest.LogCaptureFixture) -> None:
    assert status_of(StatusError(CODE.UNKNOWN, "no")) == (CODE.UNKNOWN, "no")
    assert not caplog.records


def test_other_error_of_ours_is_internal_with_text_and_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    code, text = status_of(errors.ModelError("two parents"))

    assert code is CODE.INTERNAL
    assert text.startswith("two parents (id ")
    assert text.split()[3] in caplog.text


def test_foreign_error_keeps_its_text_and_leaves_an_id(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        code, text = status_of(ValueError("secret=abc"))

    assert code is CODE.INTERNAL
    assert "secret" not in text
    ident = text.removeprefix("internal error (id ").split()[0]
    assert ident in caplog.text
    assert "secret=abc" in caplog.text


def test_text_that_quotes_a_user_holds_nothing_that_steers_a_terminal() -> None:
    error = errors.ConfigRefused("$.\x1b[2J\x00\u202e: unknown key", remedy="correct\x07 it")

    assert shown(error) == "$.\ufffd[2J\ufffd\ufffd: unknown key; correct\ufffd it"
