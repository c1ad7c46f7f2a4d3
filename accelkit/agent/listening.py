"""Where the agent is asked: a port for probes and metrics, a socket for this node."""

import logging
from pathlib import Path

from accelkit.agent.endpoints import Answers
from accelkit.agent.http import HttpServer, address, reason
from accelkit.agent.problems import AGENT, Problems
from accelkit.core.clock import Clock
from accelkit.core.errors import ConfigError

log = logging.getLogger(__name__)

SOCKET = "agent.sock"
REBIND_S = 5.0
"""Between two tries to have a port that somebody else has."""


class Listening:
    """Binds what can be bound; what cannot is a problem and stops nothing else.

    Args:
        listen: ``host:port`` or ``:port``; empty: no port.
        directory: Where the socket goes.
        answers: What is answered.

    Raises:
        ConfigError: *listen* is no address.
    """

    def __init__(
        self, listen: str, directory: Path, answers: Answers, problems: Problems, clock: Clock
    ) -> None:
        self.port: int | None = None
        """Where probes and metrics are served; None: nowhere, or not yet."""
        self._listen = listen
        try:
            self._address = address(listen) if listen else None
        except ValueError as error:
            raise ConfigError([("$.http.listen", str(error))]) from error
        self._path = directory / SOCKET
        self._answers = answers
        self._problems = problems
        self._clock = clock
        self._tcp = HttpServer(answers.public)
        self._local = HttpServer(answers.local, answers.post)

    async def serve_port(self) -> None:
        """Try until the port is ours."""
        while self._address is not None and self.port is None:
            try:
                self.port = await self._tcp.listen(*self._address)
            except OSError as error:
                self._problems.note(
                    AGENT,
                    "http-listen",
                    self._listen,
                    f"metrics and probes cannot be served on {self._listen}: {reason(error)}",
                    "end what uses the address, or choose another $.http.listen and restart",
                )
                await self._clock.sleep(REBIND_S)
            else:
                self._problems.solve(AGENT, "http-listen", self._listen)
                log.info("metrics and probes are served", extra={"port": self.port})

    async def serve_socket(self) -> None:
        """Have the socket, unless it is in place."""
        if self._local.in_place:
            return
        await self._local.close()
        self._local = HttpServer(self._answers.local, self._answers.post)
        try:
            await self._local.listen_unix(self._path)
        except OSError as error:
            self._problems.note(
                AGENT,
                "agent-socket",
                str(self._path),
                f"{self._path} cannot be served: {reason(error)}",
                "choose another $.paths.run: the path of a socket may have 107 bytes",
            )
        else:
            self._problems.solve(AGENT, "agent-socket", str(self._path))

    async def close_socket(self) -> None:
        """Unlink the socket, if it is still ours."""
        await self._local.close()

    async def close_port(self) -> None:
        await self._tcp.close()
