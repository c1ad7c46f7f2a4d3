"""Making, changing and ending objects as a server does. Not here: HTTP, lists and watches."""

import random
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from attrs import frozen

from accelkit.conformance.sims.api import garbage
from accelkit.conformance.sims.api.access import User
from accelkit.conformance.sims.api.bodies import WriteOptions
from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.gating import tidy
from accelkit.conformance.sims.api.kinds import NAMESPACES, Kind
from accelkit.conformance.sims.api.refusals import (
    Refused,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    wrong,
)
from accelkit.conformance.sims.api.store import Store
from accelkit.conformance.sims.api.strategies import (
    Context,
    admits_admins,
    faults,
    fill_in,
    prepare,
)
from accelkit.conformance.sims.api.values import number, part, put, text, texts
from accelkit.conformance.sims.gates import Dialect

_SUFFIX = 5
_LONGEST_PREFIX = 63 - _SUFFIX
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names: k8s.io/apimachinery, pkg/util/rand."""
POD_GRACE_S = 30
_FROM_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


@frozen(kw_only=True)
class Place:
    """Which object a request is about."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @property
    def missing(self) -> Refused:
        return not_found(self.kind.resource, self.name)


@frozen(kw_only=True)
class Removal:
    """How an object is to be deleted."""

    uid: str = ""
    version: str = ""
    grace_s: int | None = None
    dry_run: bool = False


class Objects:
    """The objects of a cluster, and the rules by which they change.

    Args:
        store: Where they are.
        kinds: All that are served.
        dialect: Of the server.
        now: The time.
        rng: Makes names and uids.
    """

    def __init__(
        self,
        store: Store,
        kinds: tuple[Kind, ...],
        dialect: Dialect,
        *,
        now: Callable[[], datetime],
        rng: random.Random,
    ) -> None:
        self.store = store
        self.kinds = kinds
        self.dialect = dialect
        self._now = now
        self._rng = rng
        self._namespaces = next(kind for kind in kinds if kind.resource == NAMESPACES)

    def get(self, place: Place) -> Mapping[str, object]:
        """The object.

        Raises:
            Refused: It is not there.
        """
        found = self.store.get(place.kind, place.namespace, place.name)
        if found is None:
            raise place.missing
        return found

    def create(
        self, place: Place, item: Object, user: User, options: WriteOptions
    ) -> Mapping[str, object]:
        """Keep a new object, which was decoded.

        Raises:
            Refused: It is not made.
        """
        kind = place.kind
        self._check_namespace(place, item)
        meta = part(item, "metadata")
        for name in (*_FROM_SERVER, "generation"):
            meta.pop(name, None)
        if not text(meta, "name") and (prefix := text(meta, "generateName")):
            meta["name"] = prefix[:_LONGEST_PREFIX] + "".join(
                self._rng.choices(_LETTERS, k=_SUFFIX)
            )
        context = self._context(place, user, "create")
        meta["uid"] = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        if kind.generations:
            meta["generation"] = 1
        meta["creationTimestamp"] = context.stamp
        fill_in(item, context)
        prepare(item, None, context)
        self._judge(item, None, context)
        self._tidy(kind, item)
        if self.store.get(kind, place.namespace, text(meta, "name")):
            raise already_exists(kind.resource, text(meta, "name"))
        if options.dry_run:
            return item
        meta.pop("resourceVersion", None)
        stored = self.store.put(kind, item)
        self._collect()
        return stored

    def _check_namespace(self, place: Place, item: Object) -> None:
        meta = part(item, "metadata")
        said = text(meta, "namespace")
        if not place.kind.resource.namespaced:
            meta.pop("namespace", None)
            return
        if said and said != place.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        if self.store.get(self._namespaces, "", place.namespace) is None:
            raise not_found(NAMESPACES, place.namespace)
        meta["namespace"] = place.namespace

    def update(
        self, place: Place, item: Object, user: User, options: WriteOptions, verb: str = "update"
    ) -> Mapping[str, object]:
        """Write an object over the one that is there; one that is equal changes nothing.

        Raises:
            Refused: It is not written.
        """
        _check_name(place, item)
        old = self.get(place)
        fresh, stored = part(item, "metadata"), part(old, "metadata")
        self._check_preconditions(place, fresh, stored, verb)
        for name in _FROM_SERVER:
            if name != "uid" or not text(fresh, "uid"):
                put(fresh, name, stored.get(name))
        if "namespace" in stored:
            fresh.setdefault("namespace", stored["namespace"])
        before = dict(old)
        context = self._context(place, user, verb)
        fill_in(item, context)
        prepare(item, before, context)
        self._judge(item, before, context)
        self._tidy(place.kind, item)
        meta = part(item, "metadata")
        if place.kind.generations:
            changed = item.get("spec") != old.get("spec")
            meta["generation"] = number(stored, "generation") + changed
        return self._replace(place, item, old, options)

    def _replace(
        self, place: Place, item: Object, old: Mapping[str, object], options: WriteOptions
    ) -> Mapping[str, object]:
        kind, meta = place.kind, part(item, "metadata")
        meta["resourceVersion"] = part(old, "metadata")["resourceVersion"]
        if options.dry_run or item == old:
            return item
        ending = meta.get("deletionTimestamp") and kind.struct != "Pod"
        if ending and not texts(meta, "finalizers"):
            self.store.remove(kind, old)
            self._collect()
            return item
        return self.store.put(kind, item)

    def _check_preconditions(self, place: Place, fresh: Object, stored: Object, verb: str) -> None:
        resource, uid = place.kind.resource, text(stored, "uid")
        said, version = text(fresh, "uid"), text(fresh, "resourceVersion")
        if said and said != uid and verb == "update":
            why = (
                "StorageError: invalid object, Code: 4, Key: /registry/"
                f"{'/'.join(filter(None, (resource.plural, place.namespace, place.name)))}, "
                "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                f"UID in precondition: {said}, UID in object meta: {uid}"
            )
            raise conflict(resource, place.name, why)
        if not version and verb == "update" and not place.kind.unconditional:
            cause = wrong("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.group, resource.plural, place.name, [cause])
        if version and not version.isdigit():
            message = f'strconv.ParseUint: parsing "{version}": invalid syntax'
            raise Refused(500, "", message)
        if version and version != "0" and version != text(stored, "resourceVersion"):
            raise conflict(resource, place.name)

    def _judge(self, item: Object, old: Object | None, context: Context) -> None:
        causes = list(faults(item, old, context))
        if causes:
            resource, name = context.kind.resource, text(item, "metadata", "name")
            group = "" if resource.kind == "Event" else resource.group
            raise invalid(group, resource.kind, name, causes)

    def _tidy(self, kind: Kind, item: Object) -> None:
        tidy(kind.struct, item)
        if kind.struct == "ResourceSlice" and self.dialect.lists_are_null:
            part(item, "spec").setdefault("devices", None)

    def _collect(self) -> None:
        garbage.collect(self.store, self.kinds, self._now().strftime("%Y-%m-%dT%H:%M:%SZ"))

    def _context(self, place: Place, user: User, verb: str) -> Context:
        return Context(
            kind=place.kind,
            dialect=self.dialect,
            user=user,
            verb=verb,
            sub=place.sub,
            now=self._now(),
            admin_namespace=admits_admins(self.store, self._namespaces, place.namespace),
        )

    def delete(self, place: Place, how: Removal) -> Mapping[str, object]:
        """End an object; one with finalizers, or a pod on a node, is only marked.

        Returns:
            Its last state.

        Raises:
            Refused: It is not there, or not the one that was meant.
        """
        old = self.get(place)
        meta = part(old, "metadata")
        if how.uid and how.uid != text(meta, "uid"):
            why = (
                f"the UID in the precondition ({how.uid}) does not match the UID in record "
                f"({text(meta, 'uid')}). The object might have been deleted and then recreated"
            )
            raise conflict(place.kind.resource, place.name, why, kind=place.kind.struct)
        if how.version and how.version != text(meta, "resourceVersion"):
            why = (
                f"the ResourceVersion in the precondition ({how.version}) does not match the "
                f"ResourceVersion in record ({text(meta, 'resourceVersion')}). "
                "The object might have been modified"
            )
            raise conflict(place.kind.resource, place.name, why, kind=place.kind.struct)
        if how.dry_run:
            return old
        grace_s = _grace_s(place.kind, old, how.grace_s)
        if texts(meta, "finalizers") or grace_s:
            return self._mark(place, old, grace_s)
        removed = self.store.remove(place.kind, old)
        self._collect()
        return removed

    def _mark(self, place: Place, old: Mapping[str, object], grace_s: int) -> Mapping[str, object]:
        meta = part(old, "metadata")
        shorter = grace_s < number(meta, "deletionGracePeriodSeconds")
        if meta.get("deletionTimestamp") and not shorter:
            return old
        end = self._now() + timedelta(seconds=grace_s)
        marked: Object = {
            **meta,
            "deletionTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "deletionGracePeriodSeconds": grace_s,
        }
        if "generation" in meta:
            marked["generation"] = number(meta, "generation") + 1
        return self.store.put(place.kind, {**old, "metadata": marked})


def _grace_s(kind: Kind, old: Mapping[str, object], asked: int | None) -> int:
    """How long a pod may take to end: nothing if it is on no node or is over."""
    if kind.struct != "Pod" or not text(old, "spec", "nodeName"):
        return 0
    if text(old, "status", "phase") in {"Succeeded", "Failed"}:
        return 0
    own = number(old, "spec", "terminationGracePeriodSeconds") or POD_GRACE_S
    return own if asked is None else asked


def _check_name(place: Place, item: Object) -> None:
    name = text(item, "metadata", "name")
    if not name:
        raise bad_request(
            f"the name of the object ({place.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != place.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({place.name})"
        )
    said = text(item, "metadata", "namespace")
    if said and said != place.namespace:
        raise bad_request(
            f"the namespace of the object ({said}) does not match the namespace on the URL "
            f"({place.namespace})"
        )
