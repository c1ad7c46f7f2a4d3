"""A collection kept up to date, whatever the server does. Not here: single questions."""

import http.client
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

from accelkit.backends.kube.faults import Closed, Silent
from accelkit.backends.kube.reading import meta
from accelkit.core.clock import Clock, RealClock
from accelkit.core.errors import ApiError, BackendError, TransportError
from accelkit.core.kube import Change, ChangeKind, Json, KubePort, Resource

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 5.0
"""Before the server is tried again; each client waits some time between nothing and this."""
REFUSED_PAUSE_S = 30.0
"""The same where the server refuses: first somebody has to do something."""
_REAL = RealClock()


async def follow(
    kube: KubePort,
    resource: Resource,
    *,
    namespace: str = "",
    fields: str = "",
    labels: str = "",
    cached: bool = False,
    told: Callable[[BackendError | None], None] = lambda _error: None,
    clock: Clock = _REAL,
) -> AsyncGenerator[Mapping[Key, Json], None]:
    """The whole collection: as it is listed, and again after every change.

    A watch that ends goes on where it was. Where it cannot, because the server is away, has
    forgotten that version or falls silent, there is a list again. So each map is how the server
    had it at one moment, and whoever skips some misses nothing that lasts. *told* is told of every
    failure but of a lost watch that goes on, and with None of every list. *cached*: lists may be
    of some moments ago, which costs the server next to nothing.

    Raises:
        Closed: *kube* was closed; nothing else ends this.
    """
    held: dict[Key, Json] = {}
    version, failures = "", 0
    where = {"namespace": namespace, "fields": fields, "labels": labels}
    while True:
        error: BackendError | None = None
        try:
            if not version:
                listing = await kube.list(resource, **where, version="0" if cached else "")
                held, version = {key_of(item): item for item in listing.items}, listing.version
                told(None)
                yield dict(held)
            async with _closing(kube.watch(resource, version=version, **where)) as changes:
                async for change in changes:
                    failures = 0
                    version = meta(change.item, "resourceVersion") or version
                    if _changed(held, change):
                        yield dict(held)
        except Closed:
            raise
        except BackendError as caught:
            error = caught
        if error is not None and (failures or not _goes_on(error)):
            version = ""
            if not _forgotten(error):
                told(error)
        failures += 1
        await clock.sleep(_pause(error, failures))


def key_of(item: Json) -> Key:
    """By what an object is known among those of its kind."""
    return meta(item, "namespace"), meta(item, "name")


def _changed(held: dict[Key, Json], change: Change) -> bool:
    """Do to *held* what was done to the collection; False: nothing was."""
    match change.kind:
        case ChangeKind.BOOKMARK:
            return False
        case ChangeKind.DELETED:
            held.pop(key_of(change.item), None)
        case ChangeKind.ADDED | ChangeKind.MODIFIED:
            held[key_of(change.item)] = change.item
    return True


def _goes_on(error: BackendError) -> bool:
    """Whether the connection is all that was lost."""
    return isinstance(error, TransportError) and not isinstance(error, Silent)


def _forgotten(error: BackendError) -> bool:
    return isinstance(error, ApiError) and error.status == http.client.GONE


def _pause(error: BackendError | None, failures: int) -> float:
    """Seconds: by chance, so that all who lost one server do not come back at once."""
    refused = isinstance(error, ApiError) and 400 <= error.status < 500 and not _forgotten(error)
    longest = REFUSED_PAUSE_S if refused else LONGEST_PAUSE_S
    return random.uniform(0.0, min(longest, FIRST_PAUSE_S * 2.0 ** (failures - 1)))  # noqa: S311 - spreads clients


@asynccontextmanager
async def _closing(changes: AsyncIterator[Change]) -> AsyncIterator[AsyncIterator[Change]]:
    """End the watch with its reader, not when somebody collects what is left of it."""
    try:
        yield changes
    finally:
        if isinstance(changes, AsyncGenerator):
            await changes.aclose()
