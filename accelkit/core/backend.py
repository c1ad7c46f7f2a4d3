"""What a backend is, and all that it may ask of the agent."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Protocol, TypeVar

import attrs

from accelkit.core.allocation import Allocation, ClaimRef, Edits, Piece, PodRef, Prepared
from accelkit.core.claims import LedgerEntry
from accelkit.core.clock import Clock
from accelkit.core.kube import KubePort
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

    @property
    def kube(self) -> KubePort | None:
        """The API server; None: no access is configured."""
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

    async def prepared(self, claim: ClaimRef) -> Prepared | None:
        """The answer for a claim that is READY, whose CDI file is on disk when this returns.

        None: it has to be prepared. Calls nobody but the file system.

        Raises:
            LedgerError: Its record cannot be read, or its file cannot be written.
        """
        ...

    async def prepare(self, allocation: Allocation) -> Prepared:
        """Make a claim's devices usable; the same again gives the same answer.

        Waits up to 40 s for whatever can pass. A second call joins the one that runs; a caller
        that is cancelled leaves it running. What comes of it is counted, and told as an event.

        Raises:
            AccelkitError: It cannot be done; nothing is half done. The text is for users.
        """
        ...

    async def release(self, claim: str) -> None:
        """Undo what was done for the claim with this uid; unknown claims are fine.

        Waits for a preparation of the same claim, then undoes it. What comes of it is counted,
        and told as an event.

        Raises:
            AccelkitError: Something could not be undone yet; ask again.
        """
        ...

    def claims(self) -> Mapping[str, LedgerEntry]:
        """All claims of this boot by uid."""
        ...

    def tell(
        self,
        reason: str,
        text: str,
        *,
        claim: ClaimRef | None = None,
        pod: PodRef | None = None,
        warning: bool = True,
    ) -> None:
        """Emit a Kubernetes event: about *pod*, in the namespace of *claim*, or about the node.

        Limited and folded; without API access, or where events are off, it is only logged.
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
    wanted: Callable[[Policy], bool] = lambda _policy: False
    """Whether the policy needs it although no offer goes through it."""
