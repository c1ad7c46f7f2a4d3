"""Log lines for machines and for people. Not here: who decides which."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TextIO

from accelkit.core.foreign import one_line
from accelkit.core.policy import LogFormat, Logging

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The event's keys."""
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD}


def traceback_of(record: logging.LogRecord) -> str:
    """Empty where there is none."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return "".join(traceback.format_exception(record.exc_info[1])).rstrip()


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, event, then the event's keys."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **fields_of(record),
        }
        if text := traceback_of(record):
            line["traceback"] = text
        return json.dumps(line, default=str, ensure_ascii=False)


class TextLines(logging.Formatter):
    """Time, level and event, then ``key=value``; a traceback on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        keys = "".join(f" {key}={one_line(str(value))}" for key, value in fields_of(record).items())
        line = f"{_time(record)} {record.levelname.lower():7} {one_line(record.getMessage())}{keys}"
        return "\n".join(filter(None, (line, traceback_of(record))))


class _Lines(logging.StreamHandler[TextIO]):
    """Whatever is wrong with a line, or with where it goes, is no reason to end the agent."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of logging
        """Do without the line."""


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def configure(wanted: Logging) -> None:
    """Log to standard error as *wanted* says, whatever was set up before."""
    handler = _Lines(sys.stderr)
    handler.setFormatter(JsonLines() if wanted.format is LogFormat.JSON else TextLines())
    logging.basicConfig(handlers=[handler], level=wanted.level.upper(), force=True)
