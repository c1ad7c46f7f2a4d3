"""One process that is one agent: signals, exit codes, the end. Not here: the agent."""

import asyncio
import contextlib
import faulthandler
import gc
import logging
import os
import signal
import sys
import time
from typing import NoReturn

from accelkit.agent.agent import Agent, Parts
from accelkit.agent.unhandled import Unhandled

log = logging.getLogger(__name__)

BROKE = 70
"""EX_SOFTWARE of sysexits.h: the loop broke, and whoever started us should start us again."""
LAST_S = 9.5
"""So long after preparations have ended the process ends, whatever still runs."""
LEAST_S = 1.0
"""The same where preparations took all the time until it is killed."""
HUNG_S = 0.4
"""So much later it ends even if its loop hangs, and says where."""
SWITCH_S = 0.001
"""How long a thread may keep the interpreter while an RPC waits for it."""


def run(parts: Parts) -> NoReturn:
    """Run an agent of *parts* until SIGTERM or SIGINT, then leave the process.

    Raises:
        ConfigError: It cannot start as the policy says; nothing was started.
    """
    asyncio.run(_main(Agent(parts), parts.grace_s))
    raise AssertionError("the process has ended by now")


async def _main(agent: Agent, grace_s: float) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(Unhandled())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, agent, grace_s)
    loop.add_signal_handler(signal.SIGHUP, agent.reload)
    loop.add_signal_handler(signal.SIGUSR1, agent.dump)
    loop.call_later(1.0, _settle)
    code = 0
    try:
        await agent.run()
    except Exception:
        log.exception("the loop broke")
        code = BROKE
    _leave(code)


def _settle() -> None:
    """Make pauses short, now that everything long-lived is there."""
    gc.enable()
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_S)


def _end(agent: Agent, grace_s: float) -> None:
    agent.stop()
    _ENDING.add(asyncio.ensure_future(_give_up(agent, time.monotonic() + grace_s)))


_ENDING: set[asyncio.Future[None]] = set()
"""Kept, for nobody else does."""


async def _give_up(agent: Agent, killed_at_s: float) -> None:
    await agent.finished.wait()
    left_s = killed_at_s - time.monotonic() - 2 * HUNG_S
    wait_s = min(LAST_S, max(LEAST_S, left_s))
    # By a thread that needs nothing of Python. Standard error may be closed.
    told = sys.__stderr__ or os.open(os.devnull, os.O_WRONLY)
    faulthandler.dump_traceback_later(wait_s + HUNG_S, exit=True, file=told)
    await asyncio.sleep(wait_s)
    log.error("the agent did not end in time")
    agent.dump()
    _leave(BROKE)


def _leave(code: int) -> NoReturn:
    # Not sys.exit: threads that hang in a driver would keep the interpreter from ending.
    with contextlib.suppress(Exception):  # whatever they are, or were when they were closed
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
