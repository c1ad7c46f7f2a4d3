"""What goes wrong with an API server, by script. Not here: requests that are wrong themselves."""

import random
from collections.abc import Callable

from attrs import define, field, frozen

from accelkit.conformance.sims.api.http import Raw
from accelkit.conformance.sims.api.journal import Asked
from accelkit.conformance.sims.api.refusals import Refused, too_many

Which = Callable[[Asked], bool]


def any_request(_asked: Asked) -> bool:
    return True


def asks(verb: str = "", plural: str = "", agent: str = "") -> Which:
    """Requests with this verb, resource and beginning of a user agent; empty for all."""
    return lambda asked: (
        verb in {"", asked.verb} and plural in {"", asked.plural} and asked.agent.startswith(agent)
    )


def writes(asked: Asked) -> bool:
    """Requests that change something, or would without ``dryRun``."""
    return asked.writes


@frozen(kw_only=True)
class Trouble:
    """What happens to a request."""

    which: Which = any_request
    refusal: Refused | None = None
    raw: Raw | None = None
    """Sent instead of an answer."""
    delay_s: float = 0.0
    after: bool = False
    """Whether the request is done before its answer is lost."""


@define
class Faults:
    """The script: each of its lines is for so many requests, the oldest line first."""

    _lines: list[tuple[int | None, Trouble]] = field(factory=list)

    def fail(
        self,
        count: int | None = 1,
        *,
        status: int = 500,
        reason: str = "InternalError",
        message: str = "Internal error occurred: it was asked for",
        which: Which = any_request,
    ) -> None:
        """Refuse the next *count* requests; None: all until `mend`."""
        refusal = Refused(status, reason, message)
        self._lines.append((count, Trouble(which=which, refusal=refusal)))

    def throttle(
        self, count: int | None = 1, *, retry_s: int = 1, which: Which = any_request
    ) -> None:
        """Answer 429 with Retry-After."""
        self._lines.append((count, Trouble(which=which, refusal=too_many(retry_s))))

    def delay(self, seconds: float, count: int | None = 1, *, which: Which = any_request) -> None:
        """Answer later."""
        self._lines.append((count, Trouble(which=which, delay_s=seconds)))

    def hang_up(
        self, count: int | None = 1, *, after: bool = False, which: Which = any_request
    ) -> None:
        """Close the connection instead of answering; *after*: when the request is done."""
        self._lines.append((count, Trouble(which=which, raw=Raw(), after=after)))

    def garble(self, count: int | None = 1, *, seed: int = 0, which: Which = any_request) -> None:
        """Answer with bytes that mean nothing."""
        noise = random.Random(seed).randbytes(64)  # noqa: S311 - it repeats with its seed
        self._lines.append((count, Trouble(which=which, raw=Raw(noise))))

    def truncate(self, count: int | None = 1, *, which: Which = any_request) -> None:
        """Answer 200 with JSON that breaks off."""
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n"
        self._lines.append((count, Trouble(which=which, raw=Raw(head + b'{"kind":"Li'))))

    def mend(self) -> None:
        """Forget the whole script."""
        self._lines.clear()

    def next(self, asked: Asked) -> Trouble | None:
        """What happens to this request; it is used up."""
        for index, (count, trouble) in enumerate(self._lines):
            if trouble.which(asked):
                if count is not None and count <= 1:
                    del self._lines[index]
                elif count is not None:
                    self._lines[index] = (count - 1, trouble)
                return trouble
        return None
