"""An API server in memory, behind the port that the agent has."""

from collections.abc import AsyncIterator, Mapping

from accelkit.core.errors import ApiError, TransportError
from accelkit.core.kube import Change, Json, Listing, Resource


class Api:
    """Keeps objects by resource, namespace and name; can be down, and can refuse."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.asked: list[str] = []
        """Verb, resource and name of every call."""
        self.down = False
        self.refuse: ApiError | None = None

    def put(self, resource: Resource, item: Json) -> None:
        """Let the server have *item*."""
        self.objects[_key(resource, item)] = item

    def drop(self, resource: Resource, name: str, namespace: str = "") -> None:
        del self.objects[resource.plural, namespace, name]

    def all(self, resource: Resource) -> list[Json]:
        """Every object of *resource*, in the order in which they came."""
        return [item for key, item in self.objects.items() if key[0] == resource.plural]

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Json:
        self._ask("get", resource, name)
        return self._there(resource, name, namespace)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        fields: str = "",
        labels: str = "",
        version: str = "",
    ) -> Listing:
        self._ask("list", resource, f"{namespace}{fields}{labels}{version}")
        return Listing(items=tuple(self.all(resource)), version="1")

    async def watch(
        self,
        resource: Resource,
        *,
        version: str,
        namespace: str = "",
        fields: str = "",
        labels: str = "",
    ) -> AsyncIterator[Change]:
        self._ask("watch", resource, f"{namespace}{fields}{labels}{version}")
        nothing: tuple[Change, ...] = ()
        for change in nothing:
            yield change

    async def create(
        self, resource: Resource, item: Json, *, namespace: str = "", dry_run: bool = False
    ) -> Json:
        self._ask("create", resource, _name(item))
        if _key(resource, item) in self.objects:
            raise ApiError("already exists", status=409)
        assert _key(resource, item)[1] == namespace
        if not dry_run:
            self.put(resource, item)
        return item

    async def replace(
        self, resource: Resource, item: Json, *, namespace: str = "", subresource: str = ""
    ) -> Json:
        self._ask("replace", resource, _name(item) + namespace + subresource)
        self.put(resource, item)
        return item

    async def patch(
        self,
        resource: Resource,
        name: str,
        item: Json,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> Json:
        self._ask("patch", resource, name + subresource)
        merged = {**self._there(resource, name, namespace), **item}
        self.put(resource, merged)
        return merged

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", version: str = ""
    ) -> None:
        self._ask("delete", resource, name + version)
        self.objects.pop((resource.plural, namespace, name), None)

    async def version(self) -> str:
        return "v1.37.2"

    async def can_i(self, verb: str, resource: Resource, *, namespace: str = "") -> bool:
        self._ask("can", resource, verb + namespace)
        return True

    async def close(self) -> None:
        self.asked.append("close")

    def _there(self, resource: Resource, name: str, namespace: str) -> Json:
        try:
            return self.objects[resource.plural, namespace, name]
        except KeyError:
            raise ApiError(f"{resource.plural} {name} not found", status=404) from None

    def _ask(self, verb: str, resource: Resource, name: str) -> None:
        self.asked.append(f"{verb} {resource.plural} {name}")
        if self.down:
            raise TransportError("the API server is away")
        if self.refuse is not None:
            raise self.refuse


def _meta(item: Json) -> Mapping[str, object]:
    meta = item["metadata"]
    assert isinstance(meta, Mapping)
    return meta


def _name(item: Json) -> str:
    return str(_meta(item)["name"])


def _key(resource: Resource, item: Json) -> tuple[str, str, str]:
    return (resource.plural, str(_meta(item).get("namespace", "")), _name(item))
