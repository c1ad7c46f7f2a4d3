"""From what was asked on the command line to a look at the node. Not here: the look itself."""

import logging

from accelkit.agent.logs import configure
from accelkit.cli.node import NodeReading, look_at
from accelkit.cli.options import Asked
from accelkit.core.policy import LogFormat, Logging, LogLevel


def look(asked: Asked) -> NodeReading:
    """Read the node that *asked* names; with ``--trace`` the log goes to standard error.

    Raises:
        ConfigError: The policy is wrong, or there is no such host.
    """
    # What a log would say is in the answer; it is for those who want to know more.
    logging.getLogger("accelkit").addHandler(logging.NullHandler())
    if asked["trace"]:
        configure(Logging(level=LogLevel.DEBUG, format=LogFormat.TEXT))
        logging.getLogger("asyncio").setLevel(logging.WARNING)
    return look_at(asked["host"], asked["policy"], asked["node"], trace=asked["trace"])
