"""Objects of one API server: asked for, listed, watched, written. Not here: how it is reached."""

import http.client
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from urllib.parse import quote

from accelkit.backends.kube.asking import Asking, Count
from accelkit.backends.kube.reading import is_mapping, meta
from accelkit.backends.kube.refusals import api_error, message_of
from accelkit.backends.kube.transport import JSON, MERGE, Request, Transport
from accelkit.core.clock import Clock, RealClock
from accelkit.core.errors import ApiError, TransportError
from accelkit.core.kube import Change, ChangeKind, Json, Listing, Resource

PAGE = 16
"""Objects in one answer: a megabyte of the largest slices, decoded in some ten milliseconds."""
FRESH_STARTS = 3
"""Of a list whose pages expire before all are read; then it is asked for whole."""
IDLE_S = 90.0
"""Longest silence of a watch.

A bookmark comes every minute if an object of the kind changed meanwhile, on whatever node
(k8s.io/apiserver, storage/cacher); where none did, the watch begins anew.
"""
WATCH_S = (300.0, 600.0)
"""A watch ends by itself after some time between these, so that all do not begin at once."""
REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
)
_REAL = RealClock()


class Objects:
    """A `KubePort` over a transport, which the first question opens.

    Args:
        open_transport: Called in a thread.
        timeout_s: Of each answer.
        count: Told of every request.
        idle_s: Longest silence of a watch.
        watch_s: Between these a watch ends by itself.
    """

    def __init__(
        self,
        open_transport: Callable[[], Transport],
        *,
        timeout_s: float,
        count: Count = lambda _verb, _resource, _code: None,
        clock: Clock = _REAL,
        idle_s: float = IDLE_S,
        watch_s: tuple[float, float] = WATCH_S,
    ) -> None:
        self._asking = Asking(open_transport, timeout_s=timeout_s, count=count, clock=clock)
        self._idle_s = idle_s
        self._watch_s = watch_s

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Json:
        path = _object(resource, name, namespace)
        return await self._asking.ask(_request("get", resource, path))

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        fields: str = "",
        labels: str = "",
        version: str = "",
    ) -> Listing:
        path = _collection(resource, namespace)
        query = {"fieldSelector": fields, "labelSelector": labels, "resourceVersion": version}
        for _ in range(FRESH_STARTS):
            found = await self._pages(resource, path, {**query, "limit": str(PAGE)})
            if found is not None:
                return found
        whole = await self._asking.ask(_request("list", resource, path, query=query))
        return Listing(items=_items(whole, resource), version=meta(whole, "resourceVersion"))

    async def watch(
        self,
        resource: Resource,
        *,
        version: str,
        namespace: str = "",
        fields: str = "",
        labels: str = "",
    ) -> AsyncGenerator[Change, None]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(random.uniform(*self._watch_s))),  # noqa: S311 - spreads clients
            "fieldSelector": fields,
            "labelSelector": labels,
        }
        request = _request("watch", resource, _collection(resource, namespace), query=query)
        stream = await self._asking.stream(request)
        try:
            while lines := await self._asking.next(stream, self._idle_s):
                for line in lines:
                    yield _change(line, request)
        finally:
            self._asking.drop(stream)

    async def create(
        self, resource: Resource, item: Json, *, namespace: str = "", dry_run: bool = False
    ) -> Json:
        path = _collection(resource, namespace or meta(item, "namespace"))
        query = {"dryRun": "All" if dry_run else ""}
        return await self._asking.ask(_request("create", resource, path, query=query, item=item))

    async def replace(
        self, resource: Resource, item: Json, *, namespace: str = "", subresource: str = ""
    ) -> Json:
        within = namespace or meta(item, "namespace")
        path = _object(resource, meta(item, "name"), within, subresource)
        return await self._asking.ask(_request("update", resource, path, item=item))

    async def patch(
        self,
        resource: Resource,
        name: str,
        item: Json,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> Json:
        path = _object(resource, name, namespace, subresource)
        return await self._asking.ask(_request("patch", resource, path, item=item))

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", version: str = ""
    ) -> None:
        path = _object(resource, name, namespace)
        condition = {"preconditions": {"resourceVersion": version}} if version else {}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", **condition}
        try:
            await self._asking.ask(_request("delete", resource, path, item=options))
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    async def version(self) -> str:
        request = Request(method="GET", path="/version", verb="get", resource="version")
        found = (await self._asking.ask(request)).get("gitVersion")
        return found if isinstance(found, str) else ""

    async def can_i(self, verb: str, resource: Resource, *, namespace: str = "") -> bool:
        plural, _, part = resource.plural.partition("/")
        wanted = {
            "verb": verb,
            "group": resource.group,
            "version": resource.version,
            "resource": plural,
            "subresource": part,
            "namespace": namespace,
        }
        review = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "spec": {"resourceAttributes": wanted},
        }
        status = (await self.create(REVIEWS, review)).get("status")
        return is_mapping(status) and status.get("allowed") is True

    async def close(self) -> None:
        await self._asking.close()

    async def _pages(
        self, resource: Resource, path: str, query: Mapping[str, str]
    ) -> Listing | None:
        """The whole list, page by page; None: its pages expired meanwhile."""
        found: list[Json] = []
        query = dict(query)
        while True:
            try:
                page = await self._asking.ask(_request("list", resource, path, query=query))
            except ApiError as error:
                if found and error.status == http.client.GONE:
                    return None
                raise
            found += _items(page, resource)
            token = meta(page, "continue")
            if not token:
                return Listing(items=tuple(found), version=meta(page, "resourceVersion"))
            # The token says which version it goes on with; both would be refused.
            query |= {"continue": token, "resourceVersion": ""}


_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}
"""By the verb that permissions go by."""


def _request(
    verb: str,
    resource: Resource,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    item: Json | None = None,
) -> Request:
    return Request(
        method=_METHODS[verb],
        path=path,
        query=query or {},
        item=item,
        content=MERGE if verb == "patch" else JSON,
        streaming=verb == "watch",
        verb=verb,
        resource=resource.plural,
    )


def _collection(resource: Resource, namespace: str) -> str:
    return resource.path(quote(namespace, safe=""))


def _object(resource: Resource, name: str, namespace: str, subresource: str = "") -> str:
    """The path of one object.

    Raises:
        ApiError: It is not named: the path would be that of all of them.
    """
    if not name or (resource.namespaced and not namespace):
        raise ApiError(
            f"{resource.kind} {namespace}/{name}: one object has a name, "
            "and a namespace if its kind is namespaced",
            status=http.client.UNPROCESSABLE_ENTITY,
        )
    inside = namespace if resource.namespaced else ""
    path = resource.path(quote(inside, safe=""), quote(name, safe=""))
    return f"{path}/{subresource}" if subresource else path


def _items(listed: Json, resource: Resource) -> tuple[Json, ...]:
    """What is in a list, each with its kind, as it has elsewhere."""
    items = listed.get("items")
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    found = items if isinstance(items, list) else []
    return tuple({**kind, **item} for item in found if is_mapping(item))


def _change(line: Json, request: Request) -> Change:
    """Read one line of a watch.

    Raises:
        ApiError: It tells that the watch has failed.
        TransportError: It is no line of a watch.
    """
    kind, item = line.get("type"), line.get("object")
    if is_mapping(item) and kind in ChangeKind.__members__:
        return Change(kind=ChangeKind(str(kind)), item=item)
    if is_mapping(item) and kind == "ERROR":
        code = item.get("code")
        raise api_error(request, code if isinstance(code, int) else 0, message_of(item))
    raise TransportError(
        f"watch {request.path}: a line that tells no change, but {str(line)[:80]}",
        remedy="look whether an API server answers there",
    )
