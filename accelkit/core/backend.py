"""What a backend is, and all that it may ask of the agent."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import ClassVar, Protocol, TypeVar

import attrs

from accelkit.core.allocation import Edits, Piece
from accelkit.core.clock import Clock
from accelkit.core.policy import Paths, Policy
from accelkit.core.view import View

Document_co = TypeVar("Document_co", covariant=True)


class Flag(Protocol):
    """Something that is true or false now, and can be waited for."""

    @property
    def now(self) -> bool: ...

    async def wait(self) -> None:
        """Return when the flag is true."""
        ...

    async def changed(self) -> None:
        """Return at the next change."""
        ...


@attrs.frozen(kw_only=True)
class BackendStatus:
    """What a backend says about itself."""

    backend: str
    registered: bool = False
    published: bool = False
    detail: str = ""
    since: datetime | None = attrs.field(default=None, eq=False)


class Meter(Protocol):
    """Where a backend counts; names and labels are those of the metrics list."""

    def count(self, metric: str, labels: Sequence[str] = (), by: int = 1) -> None: ...

    def observe(self, metric: str, seconds: float, labels: Sequence[str] = ()) -> None: ...

    def set(self, metric: str, value: float, labels: Sequence[str] = ()) -> None: ...


class NodePort(Protocol):
    """All that a backend may ask of the agent."""

    @property
    def node(self) -> str: ...

    @property
    def paths(self) -> Paths: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def meter(self) -> Meter: ...

    @property
    def leading(self) -> Flag:
        """Is this instance the leader?"""
        ...

    @property
    def closing(self) -> Flag:
        """Has the agent been told to end?"""
        ...

    def views(self) -> AsyncIterator[View]:
        """The current view, then newer ones; slow readers skip."""
        ...

    def view(self) -> View:
        """The newest view."""
        ...

    def answered(self) -> bool:
        """Whether a view with at least one vendor's answer, and its edits, is there."""
        ...

    async def admit(self, offer: str, pieces: Sequence[Piece]) -> Edits:
        """Check that *pieces* may be handed out under *offer* now, and say what containers need.

        Notes a pending holding. Calls a vendor only if its edits may describe a set.

        Raises:
            UnknownDevice: No such device in the offer.
            DeviceUnavailable: Unhealthy, leaving, or another backend's.
            IllegalSet: The vendor cannot run this set.
            MissingParts: A node or driver file is not there.
            SourceTimeout: The vendor did not answer in time.
        """
        ...

    def report(self, status: BackendStatus) -> None:
        """Say how the backend is; the agent's readiness follows from it."""
        ...

    def problem(self, code: str, subject: str, reason: str, remedy: str = "") -> None:
        """Note what keeps the backend from its work; the same (code, subject) replaces."""
        ...

    def solved(self, code: str, subject: str) -> None:
        """Take a problem back."""
        ...


class Backend(Protocol[Document_co]):
    """A projection of views for one orchestrator interface."""

    name: ClassVar[str]

    def render(self, view: View) -> Document_co:
        """The document for *view*: pure, total, deterministic; plain values only."""
        ...

    async def serve(self, node: NodePort) -> None:
        """Serve until cancelled.

        Raises:
            BackendError: The supervisor starts the backend again.
        """
        ...


@attrs.frozen(kw_only=True)
class BackendFactory:
    """How a backend is made from the policy."""

    name: str
    create: Callable[[Policy], Backend[object]]
    check: Callable[[Policy], tuple[tuple[str, str], ...]] = lambda _policy: ()
    """What the backend refuses of a policy: (path, text) for each problem."""
