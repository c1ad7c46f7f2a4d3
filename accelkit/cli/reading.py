"""From what was asked on the command line to a look at the node. Not here: the look itself."""

import logging
from pathlib import Path

from accelkit.agent.logs import configure
from accelkit.cli.node import NodeReading, look_at
from accelkit.cli.options import Asked
from accelkit.core.policy import LogFormat, Logging, LogLevel


def look(asked: Asked, over: Path | None = None) -> NodeReading:
    """Read the node that *asked* names; with ``--trace`` the log goes to standard error.

    Args:
        asked: On the command line.
        over: A file whose keys go before those of the policy.

    Raises:
        ConfigError: The policy is wrong, or there is no such host.
    """
    set_log(trace=asked["trace"])
    trace = asked["trace"]
    return look_at(asked["host"], asked["policy"], asked["node"], trace=trace, over=over)


def set_log(*, trace: bool) -> None:
    """Let nothing be logged, as what a log would say is in the answer; or everything."""
    logging.getLogger("accelkit").addHandler(logging.NullHandler())
    if trace:
        configure(Logging(level=LogLevel.DEBUG, format=LogFormat.TEXT))
        logging.getLogger("asyncio").setLevel(logging.WARNING)
