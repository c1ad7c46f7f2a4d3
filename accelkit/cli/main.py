"""Where the command begins: hands over, and turns errors into exit codes. Not here: any command."""

import contextlib
import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from accelkit.core.errors import (
    AccelkitError,
    BackendError,
    ConfigError,
    LedgerError,
    PluginError,
    SourceError,
)

NO = 1
"""The answer is no."""
BAD_INPUT = 2
"""A flag, a file or the policy."""
NOT_REACHED = 3
"""An agent, an API or a file."""
INTERRUPTED = 130
BROKE = 70
"""EX_SOFTWARE of sysexits.h."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Of a stream that takes no more."""

_CODES: tuple[tuple[type[AccelkitError], int], ...] = (
    (ConfigError, BAD_INPUT),
    (PluginError, BAD_INPUT),
    (SourceError, NOT_REACHED),
    (LedgerError, NOT_REACHED),
    (BackendError, NOT_REACHED),
    (AccelkitError, NO),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that *argv* names, by default that of this process.

    Returns:
        The exit code: 0 fine, 1 the answer is no, 2 bad input, 3 not reached, 70 broken.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        # The agent serves for months: it does without the human command line.
        if words[:1] == ["agent"]:
            # Told to read its policy again before it has, or to log, it must not end for that.
            for number in (signal.SIGHUP, signal.SIGUSR1):
                signal.signal(number, signal.SIG_IGN)
            return _agent(words[1:])
        return _human(words)
    except AccelkitError as error:
        _say(error)
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - exit codes have meanings, and 1 is not this one
        traceback.print_exc()
        return BROKE


def exit_code(error: AccelkitError) -> int:
    """What *error* ends the process with."""
    return next(code for kind, code in _CODES if isinstance(error, kind))


def _agent(words: Sequence[str]) -> int:
    # A tenth of its start would go to looking for garbage among what it loads and keeps; it
    # looks when it has settled.
    gc.disable()
    try:
        from accelkit.cli import agent  # noqa: PLC0415 - click is not loaded, see above

        return agent.main(words)
    finally:
        gc.enable()


def _human(words: Sequence[str]) -> int:
    import click  # noqa: PLC0415 - never loaded by the agent

    from accelkit.cli.root import cli  # noqa: PLC0415 - needs click

    try:
        code: object = cli.main(list(words), prog_name="accelkit", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except click.Abort:
        return INTERRUPTED
    except SystemExit:  # click's own: the reader, such as head, has seen enough of a help text
        return 0
    except OSError as error:
        if error.filename is not None:
            why = f"cannot be used: {error.strerror}"
            raise ConfigError([(str(error.filename), why)]) from error
        if error.errno not in _FULL:
            raise
        # The interpreter flushes again when it ends, and has nothing to add.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SourceError(f"standard output cannot be written: {error.strerror}") from error
    return code if isinstance(code, int) else 0


def _open_streams() -> None:
    """Let what nobody wants to hear go nowhere: Python has None for a stream that was closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the rest of the process; pathlib takes time to load


def _say(error: AccelkitError) -> None:
    from accelkit.core.foreign import printable  # noqa: PLC0415 - only errors need it

    if isinstance(error, ConfigError):  # keys of a file may hold anything, ends of lines, too
        lines = [f"{path}: {text}" for path, text in error.problems]
    else:
        lines = f"error: {error}".splitlines()
    lines = [printable(line) for line in lines]
    if error.remedy:
        lines.append(f"remedy: {error.remedy}")
    with contextlib.suppress(OSError):  # the exit code says it, too
        sys.stderr.write("\n".join((*lines, "")))
