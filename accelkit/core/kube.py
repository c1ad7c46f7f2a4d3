"""Kubernetes objects as plain JSON mappings, and all that may be asked of an API server.

Not here: how it is reached.
"""

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Protocol, TypeAlias

import attrs

Json: TypeAlias = Mapping[str, object]


@attrs.frozen(kw_only=True)
class Resource:
    """A kind of object as it stands in paths."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of the collection, or of one object; all namespaces without *namespace*."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")


SLICES = Resource(
    group="resource.k8s.io", version="v1", plural="resourceslices", kind="ResourceSlice"
)
CLASSES = Resource(
    group="resource.k8s.io", version="v1", plural="deviceclasses", kind="DeviceClass"
)
CLAIMS = Resource(
    group="resource.k8s.io",
    version="v1",
    plural="resourceclaims",
    kind="ResourceClaim",
    namespaced=True,
)
NODES = Resource(group="", version="v1", plural="nodes", kind="Node")
PODS = Resource(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
EVENTS = Resource(
    group="events.k8s.io", version="v1", plural="events", kind="Event", namespaced=True
)


class ChangeKind(StrEnum):
    """What a watch tells of an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@attrs.frozen(kw_only=True)
class Change:
    """One line of a watch."""

    kind: ChangeKind
    item: Json = attrs.field(hash=False)
    """The object; of a bookmark only its resource version."""


@attrs.frozen(kw_only=True)
class Listing:
    """A whole collection at one moment."""

    items: tuple[Json, ...] = attrs.field(hash=False)
    version: str
    """Where a watch goes on."""


class KubePort(Protocol):
    """Talks to one API server; every call has a timeout, none blocks the loop.

    Errors of every method:
        ApiError: The server refused; ``status`` says how: 403 and 422 mean missing rights or an
            object that it does not accept, 404 not there, 409 a conflict, 410 a version that is
            too old.
        TransportError: It cannot be reached, or did not answer in time; the text names TLS faults.
        Throttling (429, 503 with Retry-After) is waited for within the timeout, then an ApiError.
    """

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Json:
        """One object."""
        ...

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        fields: str = "",
        labels: str = "",
        version: str = "",
    ) -> Listing:
        """All of them, page by page. *version* ``0``: the server's cache will do."""
        ...

    def watch(
        self,
        resource: Resource,
        *,
        version: str,
        namespace: str = "",
        fields: str = "",
        labels: str = "",
    ) -> AsyncIterator[Change]:
        """Every change after *version*, bookmarks too, until the server ends the stream."""
        ...

    async def create(
        self, resource: Resource, item: Json, *, namespace: str = "", dry_run: bool = False
    ) -> Json:
        """Make an object; returns it as the server keeps it."""
        ...

    async def replace(
        self, resource: Resource, item: Json, *, namespace: str = "", subresource: str = ""
    ) -> Json:
        """Write an object whole; its resource version must be the present one."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        item: Json,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> Json:
        """Merge *item* into an object (RFC 7386)."""
        ...

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", version: str = ""
    ) -> None:
        """Remove an object, if it still has *version*; one that is not there is fine."""
        ...

    async def version(self) -> str:
        """Of the server: v1.37.2."""
        ...

    async def can_i(self, verb: str, resource: Resource, *, namespace: str = "") -> bool:
        """Whether we may."""
        ...

    async def close(self) -> None:
        """Drop connections; may be called twice."""
        ...
