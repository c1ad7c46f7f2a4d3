import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from accelkit.agent.logs import JsonLines, TextLines, configure
from accelkit.core.policy import LogFormat, Logging, LogLevel


def record(**fields: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {
            "name": "accelkit.x",
            "levelname": "INFO",
            "msg": "device %s",
            "args": ("found",),
            "created": 1800000000.5,
            **fields,
        }
    )


def failed() -> dict[str, object]:
    try:
        int("bug")
    except ValueError:
        return {"exc_info": sys.exc_info()}
    raise AssertionError


@contextmanager
def log_kept() -> Iterator[None]:
    """Afterwards the log goes where it went before."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:], level = before
        root.setLevel(level)


def test_json_line_has_the_event_and_its_keys() -> None:
    line = json.loads(JsonLines().format(record(device="toy/ä", took_ms=3)))

    assert line == {
        "time": "2027-01-15T08:00:00.500+00:00",
        "level": "info",
        "logger": "accelkit.x",
        "event": "device found",
        "device": "toy/ä",
        "took_ms": 3,
    }


def test_json_line_takes_any_value_and_a_traceback() -> None:
    text = JsonLines().format(record(where={1}, **failed()))
    line = json.loads(text)

    assert "\n" not in text
    assert line["where"] == "{1}"
    assert line["traceback"].endswith("base 10: 'bug'")


def test_text_line_reads_like_a_sentence_with_keys() -> None:
    text = TextLines().format(record(device="toy/a"))

    assert text == "2027-01-15T08:00:00.500+00:00 info    device found device=toy/a"


def test_text_line_puts_the_traceback_below() -> None:
    first, *rest = TextLines().format(record(**failed())).splitlines()

    assert first.endswith("device found")
    assert rest[-1].startswith("ValueError")


@pytest.mark.parametrize("wanted", [LogFormat.JSON, LogFormat.TEXT])
def test_configured_log_goes_to_standard_error_from_the_level_on(
    wanted: LogFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    with log_kept():
        configure(Logging(level=LogLevel.WARNING, format=wanted))
        log = logging.getLogger("accelkit.test")
        log.info("not said")
        log.warning("said")
    captured = capsys.readouterr()

    assert captured.out == ""
    assert "said" in captured.err
    assert "not said" not in captured.err
    assert captured.err.startswith("{") == (wanted is LogFormat.JSON)


def test_line_that_cannot_be_written_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.StringIO()
    monkeypatch.setattr(sys, "stderr", lines)
    with log_kept():
        configure(Logging())
        log = logging.getLogger("accelkit.test")
        log.warning("%d", "no number")
        log.warning("said")
        said = lines.getvalue()
        lines.close()
        log.warning("nobody reads this")

    assert [json.loads(line)["event"] for line in said.splitlines()] == ["said"]


def test_text_line_is_one_line_whatever_users_wrote() -> None:
    line = TextLines().format(record(reason="$.a\n2027-01-15 info    agent ended\x1b[2J"))

    assert line.endswith("device found reason=$.a; 2027-01-15 info    agent ended\ufffd[2J")
