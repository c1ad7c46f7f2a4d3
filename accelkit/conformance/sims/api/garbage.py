"""Objects whose owners are gone go, too. Not here: owners.

A real cluster's collector needs a moment; here it is done at once. It also ends what was made with
an owner that never was: a slice that names a node with a wrong uid.
"""

from collections.abc import Iterator, Mapping

from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.store import Store
from accelkit.conformance.sims.api.values import part, parts, text, texts


def collect(store: Store, kinds: tuple[Kind, ...], stamp: str) -> None:
    """Remove, until there is none, each object of which no owner exists; mark what may not go.

    Args:
        store: Of the objects.
        kinds: Owners of other kinds are taken to exist.
        stamp: The time of their end.
    """
    while found := list(_orphans(store, kinds)):
        for kind, item in found:
            meta = part(item, "metadata")
            if texts(meta, "finalizers"):
                marks = {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 0}
                store.put(kind, {**item, "metadata": {**meta, **marks}})
            else:
                store.remove(kind, item)


def _orphans(store: Store, kinds: tuple[Kind, ...]) -> Iterator[tuple[Kind, Mapping[str, object]]]:
    known = {(kind.resource.api_version, kind.resource.kind) for kind in kinds}
    alive = {text(item, "metadata", "uid") for item in store.all()}
    for kind in (kind for kind in kinds if not kind.stored_as):
        for item in store.items(kind):
            owners = parts(item, "metadata", "ownerReferences")
            seen = all((text(o, "apiVersion"), text(o, "kind")) in known for o in owners)
            gone = seen and not alive & {text(owner, "uid") for owner in owners}
            if owners and gone and not text(item, "metadata", "deletionTimestamp"):
                yield kind, item
