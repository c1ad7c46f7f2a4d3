"""Requests for resources, one verb each. Not here: who may, and what goes wrong on purpose."""

from collections.abc import AsyncIterator, Mapping

from attrs import define, field

from accelkit.conformance.sims.api.access import User
from accelkit.conformance.sims.api.applying import Owners
from accelkit.conformance.sims.api.bodies import Body, WriteOptions, decode, read_body
from accelkit.conformance.sims.api.documents import parse, write
from accelkit.conformance.sims.api.event_forms import shown, stored
from accelkit.conformance.sims.api.http import BODY_LIMIT, Answer, Reply, Request, Streamed
from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.listing import Wanted, read_page
from accelkit.conformance.sims.api.objects import Objects, Place, Removal
from accelkit.conformance.sims.api.patches import APPLY, patched
from accelkit.conformance.sims.api.refusals import (
    Refused,
    bad_request,
    invalid,
    required,
    succeeded,
    too_large,
    wrong,
)
from accelkit.conformance.sims.api.strategies import warnings
from accelkit.conformance.sims.api.values import text
from accelkit.conformance.sims.api.watching import Line, Watch

Object = Mapping[str, object]


def render(kind: Kind, item: Object) -> Object:
    """An object as it is sent."""
    head = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}
    return {**head, **shown(kind, item)}


@define(eq=False)
class Service:
    """Does what requests ask for."""

    objects: Objects
    bookmark_s: float
    watches: list[Watch] = field(factory=list)
    """Those that are open."""
    _owners: Owners = field(factory=Owners)

    def do(self, place: Place, verb: str, request: Request, user: User) -> Answer:
        """Answer a request.

        Raises:
            Refused: It is not done.
        """
        done = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_all,
        }
        return done[verb](place, request, user)

    def _get(self, place: Place, _request: Request, _user: User) -> Answer:
        return _reply(200, render(place.kind, self.objects.get(place)))

    def _list(self, place: Place, request: Request, _user: User) -> Answer:
        kind = place.kind
        wanted = Wanted.read(kind, request.query, watch=False)
        page = read_page(self.objects.store, kind, place.namespace, wanted)
        meta: dict[str, object] = {"resourceVersion": str(page.version)}
        if page.token:
            meta |= {"continue": page.token, "remainingItemCount": page.remaining}
        return _reply(200, _listed(kind, meta, page.items))

    def _watch(self, place: Place, request: Request, _user: User) -> Answer:
        wanted = Wanted.read(place.kind, request.query, watch=True)
        store = self.objects.store
        blank = decode({}, place.kind, self.objects.dialect, "Ignore").item
        watch = Watch(store, place.kind, place.namespace, wanted, self.bookmark_s, blank)
        watch.start()
        return Streamed(self._stream(watch))

    async def _stream(self, watch: Watch) -> AsyncIterator[bytes]:
        self.watches.append(watch)
        try:
            async for line in watch.lines():
                yield _line(watch.kind, line)
        finally:
            self.watches.remove(watch)

    def _create(self, place: Place, request: Request, user: User) -> Answer:
        agent = request.headers.get("user-agent", "")
        options = WriteOptions.read(request.query, agent, "CreateOptions")
        body = self._body(place, request, options)
        made = self.objects.create(place, body.item, user, options)
        if not options.dry_run:
            self._note_owner(place, options, {}, made)
        return _reply(201, render(place.kind, made), _noted(place, body, made))

    def _update(self, place: Place, request: Request, user: User) -> Answer:
        agent = request.headers.get("user-agent", "")
        options = WriteOptions.read(request.query, agent, "UpdateOptions")
        body = self._body(place, request, options)
        before = self.objects.store.get(place.kind, place.namespace, place.name) or {}
        made = self.objects.update(place, body.item, user, options)
        if not options.dry_run:
            self._note_owner(place, options, before, made)
        return _reply(200, render(place.kind, made), _noted(place, body, made))

    def _body(self, place: Place, request: Request, options: WriteOptions) -> Body:
        return read_body(request, place.kind, self.objects.dialect, options.validation)

    def _note_owner(
        self, place: Place, options: WriteOptions, before: Object, made: Object
    ) -> None:
        uid = text(made, "metadata", "uid")
        manager = options.manager, place.kind.resource.api_version
        self._owners.wrote(place.kind.struct, uid, manager, before, made)

    def _patch(self, place: Place, request: Request, user: User) -> Answer:
        agent = request.headers.get("user-agent", "")
        options = WriteOptions.read(request.query, agent, "PatchOptions")
        if request.body is None:
            raise too_large(BODY_LIMIT)
        if request.headers.get("content-type", "").partition(";")[0].strip() == APPLY:
            return self._apply(place, request, user, options)
        current = self.objects.get(place)
        content_type = request.headers.get("content-type", "")
        tree = patched(shown(place.kind, current), request.body, content_type)
        body = self._decoded(place, stored(place.kind, tree), options)
        made = self.objects.update(place, body.item, user, options, "patch")
        if not options.dry_run:
            self._note_owner(place, options, current, made)
        return _reply(200, render(place.kind, made), _noted(place, body, made))

    def _decoded(self, place: Place, tree: object, options: WriteOptions) -> Body:
        try:
            return decode(tree, place.kind, self.objects.dialect, options.validation)
        except Refused as refused:
            # A server shows the whole object here.
            why = str(refused).partition(": ")[2]
            raise invalid("", "", "", [wrong("patch", "<object>", why)]) from None

    def _apply(self, place: Place, request: Request, user: User, options: WriteOptions) -> Answer:
        if not request.query.get("fieldManager"):
            cause = required("fieldManager", "is required for apply patch")
            raise invalid("meta.k8s.io", "PatchOptions", "", [cause])
        kind = place.kind
        applied = _applied(request.body or b"")
        body = decode(applied, kind, self.objects.dialect, "Warn")
        if body.warnings:
            raise _not_declared(place, body.warnings)
        current = self.objects.store.get(kind, place.namespace, place.name)
        if current is None:
            return self._apply_new(place, body, user, options)
        uid = text(current, "metadata", "uid")
        sent = {name: value for name, value in body.item.items() if name in applied}
        tree = self._owners.apply(
            kind.struct, uid, current, sent, options.manager, force=options.force
        )
        item = decode(tree, kind, self.objects.dialect, "Ignore").item
        made = self.objects.update(place, item, user, options, "patch")
        if not options.dry_run:
            self._owners.claim(kind.struct, uid, options.manager, sent)
        return _reply(200, render(kind, made))

    def _apply_new(self, place: Place, body: Body, user: User, options: WriteOptions) -> Answer:
        if place.sub:
            raise place.missing
        sent = dict(body.item)
        made = self.objects.create(place, body.item, user, options)
        if not options.dry_run:
            uid = text(made, "metadata", "uid")
            self._owners.claim(place.kind.struct, uid, options.manager, sent)
        return _reply(201, render(place.kind, made))

    def _delete(self, place: Place, request: Request, _user: User) -> Answer:
        removal = _removal(request)
        gone = self.objects.delete(place, removal)
        if place.kind.shows_deleted or text(gone, "metadata", "deletionTimestamp"):
            return _reply(200, render(place.kind, gone))
        uid = text(gone, "metadata", "uid")
        return _reply(200, succeeded(place.kind.resource, place.name, uid))

    def _delete_all(self, place: Place, request: Request, _user: User) -> Answer:
        kind, store = place.kind, self.objects.store
        wanted = Wanted.read(kind, request.query, watch=False)
        page = read_page(store, kind, place.namespace, wanted)
        for item in page.items:
            one = Place(
                kind=kind,
                namespace=text(item, "metadata", "namespace"),
                name=text(item, "metadata", "name"),
            )
            self.objects.delete(one, _removal(request))
        meta = {"resourceVersion": str(page.version)}
        return _reply(200, _listed(kind, meta, page.items))


def _reply(status: int, document: object, warnings: tuple[str, ...] = ()) -> Reply:
    noted = tuple(("Warning", f'299 - "{_quoted(warning)}"') for warning in warnings)
    return Reply(status, write(document), headers=noted)


def _noted(place: Place, body: Body, made: Object) -> tuple[str, ...]:
    return (*body.warnings, *warnings(place.kind, made))


def _quoted(text_of: str) -> str:
    return text_of.replace("\\", "\\\\").replace('"', '\\"')


def _listed(kind: Kind, meta: Object, items: list[Object]) -> Object:
    resource = kind.resource
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": meta,
        "items": [shown(kind, item) for item in items],
    }


def _line(kind: Kind, line: Line) -> bytes:
    item = line.object if line.type == "ERROR" else render(kind, line.object)
    return write({"type": line.type, "object": item}) + b"\n"


def _removal(request: Request) -> Removal:
    """How to delete, from the query and the body."""
    try:
        found = parse(request.body.decode()).tree if request.body else {}
    except ValueError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    options = found if isinstance(found, dict) else {}
    said = request.query.get("gracePeriodSeconds", options.get("gracePeriodSeconds"))
    dry = request.query.get("dryRun") or options.get("dryRun")
    return Removal(
        uid=text(options, "preconditions", "uid"),
        version=text(options, "preconditions", "resourceVersion"),
        grace_s=None if said is None else int(str(said)),
        dry_run=bool(dry),
    )


def _applied(body: bytes) -> dict[str, object]:
    try:
        tree = parse(body.decode()).tree
    except ValueError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(tree, dict) or not tree.get("kind") or not tree.get("apiVersion"):
        raise bad_request("invalid object type: /, Kind=")
    return tree


def _not_declared(place: Place, warnings: tuple[str, ...]) -> Refused:
    resource = place.kind.resource
    path = warnings[0].partition('"')[2].rstrip('"')
    what = f"{place.namespace}/{place.name}; {resource.api_version}, Kind={resource.kind}"
    message = f"failed to create typed patch object ({what}): .{path}: field not declared in schema"
    return Refused(500, "", message)
