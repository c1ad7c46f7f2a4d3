"""A simulated API server on a real socket, as far as drivers of devices can tell the difference.

What it imitates was seen on real servers of Kubernetes 1.34 to 1.37. Not here: a scheduler, and
what a real server has besides slices, claims, templates, classes, taint rules, namespaces, nodes,
pods and events. It speaks JSON alone; clients that prefer protobuf accept that.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

from accelkit.conformance.sims import events
from accelkit.conformance.sims.api import direct, discovery, files, reviews
from accelkit.conformance.sims.api.access import (
    ADMIN,
    ANONYMOUS,
    Act,
    User,
    require,
    require_path,
)
from accelkit.conformance.sims.api.certificates import Tls
from accelkit.conformance.sims.api.documents import write
from accelkit.conformance.sims.api.faults import Faults, Trouble
from accelkit.conformance.sims.api.http import (
    Answer,
    HttpServer,
    Raw,
    Reply,
    Request,
    Streamed,
)
from accelkit.conformance.sims.api.journal import Asked, Journal
from accelkit.conformance.sims.api.kinds import Kind, kinds
from accelkit.conformance.sims.api.objects import Objects, Place
from accelkit.conformance.sims.api.refusals import (
    Crashed,
    Refused,
    no_such_method,
    no_such_path,
    not_acceptable,
    unauthorized,
)
from accelkit.conformance.sims.api.routing import Target, token
from accelkit.conformance.sims.api.service import Service
from accelkit.conformance.sims.api.store import Store
from accelkit.conformance.sims.gates import Dialect

log = logging.getLogger(__name__)

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_READS = {"GET", "HEAD"}
_NOT_FOUND = Reply(404, b"404 page not found\n", "text/plain; charset=utf-8")


class ApiSim(direct.Direct):
    """An API server that can be started, taken away, restarted and disturbed.

    ``async with ApiSim() as sim`` starts it and stops it. What a test does itself goes past HTTP:
    `create`, `get`, `replace` and so on have all rights and are in no log.

    Args:
        kubernetes: The release to imitate, 1.34 to 1.37.
        gates: Feature gates that differ from the release's defaults.
        tls: With it the server speaks TLS.
        users: Who has a token; without any, everybody may do everything.
        history: How many changes a watch may lag behind before it has to start anew.
        bookmark_s: Between two bookmarks of a watch.
        seed: Decides uids and generated names.
        port: Where it listens; 0: anywhere.
    """

    def __init__(
        self,
        kubernetes: str = "1.37",
        gates: Mapping[str, bool] | None = None,
        *,
        tls: Tls | None = None,
        users: Sequence[User] = (),
        history: int = 1000,
        bookmark_s: float = 60.0,
        seed: int = 0,
        port: int = 0,
    ) -> None:
        dialect = Dialect.of(kubernetes, gates or {})
        self.faults = Faults()
        self.journal = Journal()
        rng = random.Random(seed)  # noqa: S311 - a simulation repeats with its seed
        store = Store(history)
        objects = Objects(store, kinds(dialect), dialect, now=lambda: datetime.now(UTC), rng=rng)
        super().__init__(objects)
        self.tls = tls
        self.users = tuple(users)
        self._service = Service(objects, bookmark_s)
        self._http = HttpServer(self._handle, tls.context() if tls else None, port=port)
        self._broken: list[Exception] = []
        for name in NAMESPACES:
            self.create(direct.NAMESPACES, {"metadata": {"name": name}})

    # The server's life.

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def dialect(self) -> Dialect:
        """What its release and its gates make of the API."""
        return self._objects.dialect

    def become(self, kubernetes: str, gates: Mapping[str, bool] | None = None) -> None:
        """Be of another release, or have other gates: what is stored stays as it is."""
        self._objects.dialect = Dialect.of(kubernetes, gates or {})
        self._objects.kinds = kinds(self.dialect)

    async def start(self) -> None:
        """Listen; a second time on the same port."""
        await self._http.listen()

    async def stop(self) -> None:
        """Go away: refuse connections, end those that are open; the objects stay.

        Raises:
            Exception: A request could not be served; a simulation that broke must not look fine.
        """
        await self._http.close()
        broken, self._broken = self._broken, []
        for error in broken:
            raise error

    async def restart(self) -> None:
        """Stop and start: watches from before have to start anew."""
        await self.stop()
        self.store.forget()
        await self.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def cut_watches(self, plural: str = "") -> int:
        """Break off the open watches of a resource, or all; returns how many there were."""
        chosen = [w for w in self._service.watches if plural in {"", w.kind.resource.plural}]
        for watch in chosen:
            watch.cut()
        return len(chosen)

    def expire(self) -> None:
        """Forget the history: each watch and each list in pages has to start anew (410)."""
        self.store.forget()

    def watching(self, plural: str = "") -> int:
        """How many watches of a resource are open."""
        return sum(plural in {"", w.kind.resource.plural} for w in self._service.watches)

    async def wait_for(self, predicate: Callable[[], object], patience_s: float = 10.0) -> None:
        """Wait until *predicate* holds, however it comes about.

        Raises:
            TimeoutError: It did not within *patience_s*; the text has the last requests.
        """
        await events.until(predicate, patience_s, lambda: {"asked": self.journal.asked[-10:]})

    # How clients find it.

    def write_kubeconfig(self, path: Path, user: User | None = None) -> None:
        """Write a kubeconfig for *user*; without one, for whoever may do everything."""
        authority = self.tls.authority if self.tls else None
        found = user.token if user else ""
        files.write_kubeconfig(path, self.url, token=found, authority=authority)

    def write_in_cluster(
        self, directory: Path, user: User, namespace: str = "default"
    ) -> Mapping[str, str]:
        """Write the files of a pod's service account; returns a pod's variables.

        Raises:
            ValueError: The server has no TLS, which clients in a cluster insist on.
        """
        if self.tls is None:
            raise ValueError("give ApiSim tls=make_tls(directory): pods speak TLS only")
        return files.write_in_cluster(
            directory,
            self.port,
            token=user.token,
            authority=self.tls.authority,
            namespace=namespace,
        )

    # Requests.

    async def _handle(self, request: Request) -> Answer:
        target = Target.of(request.path)
        asked = _noted(request, target)
        self.journal.note(asked)
        trouble = self.faults.next(asked)
        if trouble:
            await asyncio.sleep(trouble.delay_s)
            if trouble.raw and not trouble.after:
                return trouble.raw
        answer = self._answer(request, target, asked, trouble)
        if isinstance(answer, Reply | Streamed):
            asked.status = answer.status if isinstance(answer, Reply) else 200
        return trouble.raw if trouble and trouble.raw else answer

    def _answer(
        self, request: Request, target: Target | None, asked: Asked, trouble: Trouble | None
    ) -> Answer:
        if trouble and trouble.refusal:
            return _refusal(trouble.refusal)
        try:
            user = self._user(request)
            asked.user = user.name
            return self._serve(request, target, asked, user)
        except Refused as refused:
            return _refusal(refused)
        except Crashed:
            return Raw()
        except Exception as error:
            log.exception("request failed", extra={"path": request.path})
            self._broken.append(error)
            return Reply(500, b"the simulation broke", "text/plain")

    def _user(self, request: Request) -> User:
        if not self.users:
            return ADMIN
        said = token(request)
        if not said:
            return ANONYMOUS
        for user in self.users:
            if user.token == said:
                return user
        raise unauthorized()

    def _serve(self, request: Request, target: Target | None, asked: Asked, user: User) -> Answer:
        accept = request.headers.get("accept", "*/*")
        if request.path in reviews.PATHS:
            return self._review(request, user)
        if target is None:
            require_path(user, request.path)
            found = discovery.describe(request.path, accept, self._objects.kinds, self.dialect)
            return found or _NOT_FOUND
        _check_rights(user, target, asked, request.method)
        kind = target.kind(self._objects.kinds)
        if kind is None:
            if any(k.resource.group == target.group for k in self._objects.kinds):
                raise no_such_path()
            return _NOT_FOUND
        _check_fit(request.method, target, kind)
        if not any(word in accept for word in ("json", "*/*", "application/*")):
            raise not_acceptable()
        place = Place(kind=kind, namespace=target.namespace, name=target.name, sub=target.sub)
        return self._service.do(place, asked.verb, request, user)

    def _review(self, request: Request, user: User) -> Answer:
        if request.method != "POST":
            raise no_such_method()
        return Reply(201, write(reviews.answer(request, user)))


def _refusal(refused: Refused) -> Reply:
    retry = refused.retry_s
    headers = () if retry is None else (("Retry-After", str(retry)),)
    return Reply(refused.code, write(refused.status), headers=headers)


def _check_rights(user: User, target: Target, asked: Asked, method: str) -> None:
    plural = f"{target.plural}/{target.sub}" if target.sub else target.plural
    act = Act(
        verb=asked.verb or method.lower(),
        group=target.group,
        plural=plural,
        name=target.name,
        namespace=target.namespace,
    )
    require(user, act)


def _check_fit(method: str, target: Target, kind: Kind) -> None:
    """Let only those pass that a path has.

    Raises:
        Refused: There is no such subresource, or the method does not fit.
    """
    if target.sub and not (kind.status and target.sub == "status"):
        raise no_such_path()
    alone = not kind.resource.namespaced or bool(target.namespace)
    if target.sub:
        fitting = _READS | {"PUT", "PATCH"}
    elif target.name:
        fitting = _READS | {"PUT", "PATCH", "DELETE"} if alone else set()
    else:
        fitting = _READS | {"POST", "DELETE"} if alone else _READS
    if method not in fitting:
        raise no_such_method()


def _noted(request: Request, target: Target | None) -> Asked:
    agent = request.headers.get("user-agent", "")
    asked = Asked(
        verb=request.method.lower(),
        path=request.path,
        agent=agent,
        dry_run=request.query.get("dryRun") == "All",
        query=urlencode(request.query),
    )
    if target is None:
        return asked
    asked.verb = target.verb(request.method, request.query)
    asked.group, asked.plural, asked.sub = target.group, target.plural, target.sub
    asked.namespace, asked.name = target.namespace, target.name
    return asked
