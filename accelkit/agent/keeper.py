"""The keeper of claims: what was promised is written down before it is done. Not here: files."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.hardware import Hardware
from accelkit.agent.ledger import Ledger
from accelkit.core.allocation import Allocation, ClaimRef, PodRef, Prepared
from accelkit.core.claims import LedgerEntry
from accelkit.core.clock import Clock
from accelkit.core.model import DeviceId, Holding, Problem
from accelkit.core.view import View


class Tell(Protocol):
    """Emits an event, as a port's ``tell`` does."""

    def __call__(
        self,
        reason: str,
        text: str,
        *,
        claim: ClaimRef | None = None,
        pod: PodRef | None = None,
        warning: bool = True,
    ) -> None: ...


class Keeper:
    """Prepares claims, releases them, and loses none, whenever a process ends.

    Several keepers may share one run directory; each sees what the others wrote.

    Args:
        ledger: The record of claims.
        files: The claims' files in the CDI directory.
        hardware: The vendors.
        view: The newest view.
        drivers: Names of our DRA drivers now: whose CDI files without a claim are ours to remove.
        give_up_after_s: How long a release may fail before it is answered as done.
        changed: Called when holdings, *made* or *stuck* may be other than before.
        touched: Called with a vendor's name when its hardware was changed: read it again.
        tell: Emits events.
        observe: Notes seconds: metric, seconds, labels.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        files: ClaimFiles,
        hardware: Hardware,
        view: Callable[[], View],
        clock: Clock,
        drivers: Callable[[], Collection[str]],
        give_up_after_s: Callable[[], float],
        changed: Callable[[], None],
        touched: Callable[[str], None],
        tell: Tell,
        observe: Callable[[str, float, Sequence[str]], None],
    ) -> None:
        raise NotImplementedError

    @property
    def entries(self) -> Mapping[str, LedgerEntry]:
        """All claims of this boot that can be read, by uid; as of the last look."""
        raise NotImplementedError

    async def load(self) -> None:
        """Read the record; nothing is undone here. To be called once, before anything else.

        What cannot be read is set aside, and what is not on disk of the CDI files is made again.

        Raises:
            LedgerError: The run directory cannot be read or written.
        """
        raise NotImplementedError

    async def prepare(self, allocation: Allocation) -> Prepared:
        """Make a claim's devices usable; see :meth:`NodePort.prepare`."""
        raise NotImplementedError

    async def prepared(self, claim: ClaimRef) -> Prepared | None:
        """The answer for a claim that is READY; see :meth:`NodePort.prepared`."""
        raise NotImplementedError

    async def release(self, uid: str) -> None:
        """Undo what was done for a claim; see :meth:`NodePort.release`."""
        raise NotImplementedError

    async def mend(self) -> None:
        """Look at the directories, and make again what is missing or other than written.

        To be called every second. Never raises.
        """
        raise NotImplementedError

    async def retry(self) -> None:
        """Go on with releases that failed and are due, each in a task of its own.

        To be called every second; returns at once. Never raises.
        """
        raise NotImplementedError

    async def reconcile(self, gone: Collection[str], used: Collection[tuple[str, str]]) -> None:
        """Release what nobody needs any more: by the leader alone.

        Args:
            gone: Uids of claims that the API server does not have (by name: gone, or other uid).
            used: Namespace and name of every claim that the kubelet lists for a pod.

        A claim is released when it is *gone* and not *used* in two calls in a row; a CDI file of
        ours without a claim is removed when two calls in a row found it. Never raises.
        """
        raise NotImplementedError

    def holdings(self) -> tuple[Holding, ...]:
        """What claims hold, whatever their state, of unreadable ones as far as it is known."""
        raise NotImplementedError

    @property
    def made(self) -> frozenset[DeviceId]:
        """Partitions that were made for a claim, or are about to be."""
        raise NotImplementedError

    @property
    def stuck(self) -> frozenset[DeviceId]:
        """Devices of claims that could not be undone."""
        raise NotImplementedError

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the record, its directories, or a release; by code and subject."""
        raise NotImplementedError

    async def settle(self) -> None:
        """Return when no preparation and no release runs in this process."""
        raise NotImplementedError
