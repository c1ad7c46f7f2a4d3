"""Every error that accelkit raises, by who must act. Not here: how an interface spells them."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar


class AccelkitError(Exception):
    """One thing that went wrong, said in one sentence, with the next action.

    Args:
        text: Which thing, what is wrong, what was found.
        remedy: What to do next; empty where nobody can do anything.
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, text: str, *, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword-only parts when an error is copied."""
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))


def _rebuild(
    kind: type[AccelkitError], args: tuple[object, ...], state: dict[str, object]
) -> AccelkitError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


# What the operator wrote.


class ConfigError(AccelkitError):
    """A flag, a file or the policy is wrong; all problems at once.

    Args:
        problems: (path, text) for each, the path as in ``$.offers[1].through``.
    """

    code = "config-invalid"

    def __init__(self, problems: Iterable[tuple[str, str]], *, remedy: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(f"{path}: {text}" for path, text in self.problems), remedy=remedy
        )


# What the author of a plugin wrote.


class PluginError(AccelkitError):
    """A plugin is not what it must be."""

    code = "plugin-bug"

    def __init__(self, text: str, *, plugin: str = "", remedy: str = "") -> None:
        super().__init__(text, remedy=remedy)
        self.plugin = plugin


class PluginLoadError(PluginError):
    """Importing or registering a plugin failed."""

    code = "plugin-load"


class PluginContractError(PluginError):
    """A plugin answered what its contract forbids."""

    code = "plugin-contract"


class ApiTooNew(PluginError):
    """The plugin was written for a later plugin API."""

    code = "api-too-new"


class ApiTooOld(PluginError):
    """The plugin was written for a plugin API that is no longer served."""

    code = "api-too-old"


class ModelError(AccelkitError):
    """Facts about a node contradict each other."""

    code = "model-contradiction"


# What hardware and drivers answered.


class SourceError(AccelkitError):
    """Something could not be known now."""

    code = "source-failed"
    retryable = True

    def __init__(
        self, text: str, *, vendor: str = "", operation: str = "", remedy: str = ""
    ) -> None:
        super().__init__(text, remedy=remedy)
        self.vendor = vendor
        self.operation = operation


class DriverNotReady(SourceError):
    """The hardware is there, its driver is not."""

    code = "driver-not-ready"


class AccessDenied(SourceError):
    """The process lacks a right."""

    code = "access-denied"


class NotThere(SourceError):
    """A file or directory does not exist."""

    code = "not-there"


class LibraryMissing(SourceError):
    """A C library or a Python binding cannot be loaded."""

    code = "library-missing"


class SourceTimeout(SourceError):
    """A call did not answer before its deadline."""

    code = "source-timeout"


class WorkerDied(SourceError):
    """The process that made vendor calls ended.

    Args:
        text: Which call, and how it ended.
        vendor: Whose process it was.
        operation: The call.
        remedy: What to do next.
        signal: That ended it; 0: none did.
    """

    code = "worker-died"

    def __init__(
        self,
        text: str,
        *,
        vendor: str = "",
        operation: str = "",
        remedy: str = "",
        signal: int = 0,
    ) -> None:
        super().__init__(text, vendor=vendor, operation=operation, remedy=remedy)
        self.signal = signal


class DriverUnresponsive(SourceError):
    """Processes that made vendor calls hang in the driver, and cannot be killed."""

    code = "driver-unresponsive"


class StartOver(SourceError):
    """The vendor's library must be loaded anew, by a fresh process."""

    code = "start-over"


# What partitioning could not do.


class PartitionError(AccelkitError):
    """A partition could not be made or unmade."""

    code = "partition-failed"

    def __init__(self, text: str, *, device: str = "", remedy: str = "") -> None:
        super().__init__(text, remedy=remedy)
        self.device = device


class Misfit(StrEnum):
    """Why a layout does not fit."""

    PROFILE = "profile"
    """It names a profile that the device does not have."""
    PINNED = "pinned"
    """Partitions that must stay are not in it."""
    LIMIT = "limit"
    """More of one profile than there can be at once."""
    COUNTER = "counter"
    """More of an engine than there is."""
    SLOTS = "slots"
    """More slots than there are."""
    GEOMETRY = "geometry"
    """Places that overlap."""
    MODE = "mode"
    """Profiles of different modes, or another number than comes with a mode."""
    UNDECIDED = "undecided"
    """Finding out takes too long."""


class UnsatisfiableLayout(PartitionError):
    """No arrangement of the device holds the layout.

    Args:
        text: Which device, and why not.
        why: The same as a word.
        largest: The largest part of the layout that does fit: partitions by profile.
        device: Its id.
        remedy: What to do next.
    """

    code = "unsatisfiable-layout"

    def __init__(
        self,
        text: str,
        *,
        why: Misfit = Misfit.GEOMETRY,
        largest: Mapping[str, int] | None = None,
        device: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(text, device=device, remedy=remedy)
        self.why = why
        self.largest: Mapping[str, int] = largest or {}


class UnknownMode(PartitionError):
    """The device has no such mode."""

    code = "unknown-mode"


class PlaceOccupied(PartitionError):
    """Another partition is in that place."""

    code = "place-occupied"


class PartitionInUse(PartitionError):
    """Somebody uses the partition."""

    code = "partition-in-use"
    retryable = True


class NeedsReset(PartitionError):
    """Only a reset of the device would do it, and resets are not made here."""

    code = "needs-reset"


class ModeBusy(PartitionError):
    """The mode cannot change while devices are in use."""

    code = "mode-busy"
    retryable = True


# What orchestrators and users asked for.


class AllocationError(AccelkitError):
    """An allocation cannot be served."""

    code = "allocation-failed"

    def __init__(self, text: str, *, claim: str = "", remedy: str = "") -> None:
        super().__init__(text, remedy=remedy)
        self.claim = claim


class UnknownDevice(AllocationError):
    """No such device is offered here."""

    code = "unknown-device"


class DeviceUnavailable(AllocationError):
    """The device is known but not to be had now."""

    code = "device-unavailable"


class AlreadyAllocated(AllocationError):
    """Another claim has the device."""

    code = "already-allocated"


class ClaimMismatch(AllocationError):
    """The claim is not the one that was allocated."""

    code = "claim-mismatch"


class ConfigRefused(AllocationError):
    """The user's configuration block cannot be accepted."""

    code = "config-refused"


class SplitSet(AllocationError):
    """One container would get parts of a set that its vendor can only describe whole."""

    code = "split-set"


class IllegalSet(AllocationError):
    """The vendor cannot run this set of devices together."""

    code = "illegal-set"


class ConflictingSetting(AllocationError):
    """Two allocations want different settings of one device."""

    code = "conflicting-setting"


class MissingParts(AllocationError):
    """A device node or a driver file that a container needs is not there."""

    code = "missing-parts"
    retryable = True


class PrepareFailed(AllocationError):
    """A claim's devices could not be made usable."""

    code = "prepare-failed"
    retryable = True


# What the node's own record of claims could not do.


class LedgerError(AccelkitError):
    """The record of claims cannot be read or written."""

    code = "ledger-failed"


class LedgerBusy(LedgerError):
    """Another process holds the lock."""

    code = "ledger-busy"
    retryable = True


class LedgerEntry(LedgerError):
    """One entry cannot be read."""

    code = "ledger-entry"


class LedgerNewer(LedgerError):
    """An entry was written by a later version."""

    code = "ledger-newer"


class NoSpace(LedgerError):
    """The disk is full."""

    code = "no-space"
    retryable = True


# What a backend could not hand over.


class BackendError(AccelkitError):
    """A backend cannot serve; its supervisor starts it again."""

    code = "backend-failed"

    def __init__(self, text: str, *, backend: str = "", remedy: str = "") -> None:
        super().__init__(text, remedy=remedy)
        self.backend = backend


class RenderError(BackendError):
    """A view does not fit what the interface allows."""

    code = "render-failed"

    def __init__(
        self, text: str, *, backend: str = "", remedy: str = "", limit: int = 0, actual: int = 0
    ) -> None:
        super().__init__(text, backend=backend, remedy=remedy)
        self.limit = limit
        self.actual = actual


class RegistrationRejected(BackendError):
    """The kubelet refused a registration."""

    code = "registration-rejected"


class TransportError(BackendError):
    """A socket or connection failed."""

    code = "transport-failed"
    retryable = True


class ApiError(BackendError):
    """The API server refused a request."""

    code = "api-refused"

    def __init__(self, text: str, *, backend: str = "", remedy: str = "", status: int = 0) -> None:
        super().__init__(text, backend=backend, remedy=remedy)
        self.status = status
