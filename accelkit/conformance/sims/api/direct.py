"""Reading and changing a simulated cluster without HTTP. Not here: requests of clients."""

import json
from collections.abc import Mapping

from accelkit.conformance.sims.api import patches
from accelkit.conformance.sims.api.access import ADMIN
from accelkit.conformance.sims.api.bodies import WriteOptions, decode
from accelkit.conformance.sims.api.documents import write
from accelkit.conformance.sims.api.event_forms import shown, stored
from accelkit.conformance.sims.api.kinds import NAMESPACES, Kind
from accelkit.conformance.sims.api.objects import Objects, Place, Removal
from accelkit.conformance.sims.api.store import Store
from accelkit.core.kube import Json, Resource

__all__ = ["NAMESPACES", "Direct"]
_STRICTLY = WriteOptions(validation="Strict", manager="test")


class Direct:
    """What a test does to a cluster, with all rights; errors are `Refused`.

    Objects are plain JSON; strange fields are refused.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @property
    def store(self) -> Store:
        return self._objects.store

    def items(self, resource: Resource, namespace: str = "") -> list[Json]:
        """All objects of a kind, by namespace and name."""
        kind = self._kind(resource)
        return [_plain(kind, item) for item in self.store.items(kind, namespace)]

    def get(self, resource: Resource, name: str, namespace: str = "") -> Json:
        kind = self._kind(resource)
        found = self._objects.get(Place(kind=kind, namespace=namespace, name=name))
        return _plain(kind, found)

    def raw(self, resource: Resource, name: str, namespace: str = "") -> Json:
        """An object as it is stored: the parameters of a claim with every space."""
        kind = self._kind(resource)
        return self._objects.get(Place(kind=kind, namespace=namespace, name=name))

    def raws(self, resource: Resource) -> list[Json]:
        """All objects of a kind as they are stored."""
        return [*self.store.items(self._kind(resource))]

    def has(self, resource: Resource, name: str, namespace: str = "") -> bool:
        return self.store.get(self._kind(resource), namespace, name) is not None

    def create(self, resource: Resource, item: Json, namespace: str = "") -> Json:
        """Make an object; returns it as it is kept."""
        kind = self._kind(resource)
        place = Place(kind=kind, namespace=namespace)
        made = self._objects.create(place, self._decoded(kind, item), ADMIN, _STRICTLY)
        return _plain(kind, made)

    def replace(self, resource: Resource, item: Json, *, sub: str = "") -> Json:
        """Write an object, or its status, over the one that has its name."""
        kind = self._kind(resource)
        decoded = self._decoded(kind, item)
        meta = decoded["metadata"]
        assert isinstance(meta, dict)
        place = Place(
            kind=kind, namespace=str(meta.get("namespace", "")), name=str(meta["name"]), sub=sub
        )
        return _plain(kind, self._objects.update(place, decoded, ADMIN, _STRICTLY))

    def patch(
        self, resource: Resource, name: str, patch: Json, namespace: str = "", *, sub: str = ""
    ) -> Json:
        """Merge *patch* into an object."""
        kind = self._kind(resource)
        place = Place(kind=kind, namespace=namespace, name=name, sub=sub)
        body = json.dumps(patch).encode()
        tree = patches.patched(self._objects.get(place), body, patches.MERGE)
        made = self._objects.update(place, self._decoded(kind, tree), ADMIN, _STRICTLY, "patch")
        return _plain(kind, made)

    def delete(
        self, resource: Resource, name: str, namespace: str = "", *, grace_s: int | None = None
    ) -> None:
        """End an object; a pod on a node with *grace_s* 0 at once."""
        place = Place(kind=self._kind(resource), namespace=namespace, name=name)
        self._objects.delete(place, Removal(grace_s=grace_s))

    def _kind(self, resource: Resource) -> Kind:
        for kind in self._objects.kinds:
            if kind.resource == resource:
                return kind
        known = ", ".join(k.resource.plural for k in self._objects.kinds)
        raise ValueError(
            f"{resource.plural} {resource.api_version} is not served; there are {known}"
        )

    def _decoded(self, kind: Kind, item: Json) -> dict[str, object]:
        return decode(stored(kind, _copied(item)), kind, self._objects.dialect, "Strict").item


def _copied(item: object) -> object:
    """JSON that shares nothing with *item*; raw parts stay as they are."""
    match item:
        case Mapping():
            return {str(key): _copied(value) for key, value in item.items()}
        case list() | tuple():
            return [_copied(value) for value in item]
        case _:
            return item


def _plain(kind: Kind, item: Mapping[str, object]) -> Json:
    head = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}
    read: Json = json.loads(write({**head, **shown(kind, item)}))
    return read
