"""The transport of the `kubernetes` package: its configuration and its connections, no more.

Its typed classes are slow and drop what they do not know, its `Watch` loses its place.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.api_client import ApiClient
from kubernetes.config import load_incluster_config, load_kube_config
from kubernetes.config.config_exception import ConfigException
from urllib3 import HTTPConnectionPool
from urllib3.util.ssl_ import create_urllib3_context

from accelkit.backends.kube import IN_CLUSTER
from accelkit.backends.kube.call import Call
from accelkit.backends.kube.faults import innermost_first
from accelkit.backends.kube.kubeconfig import read_kubeconfig
from accelkit.backends.kube.reading import Stream, read_body
from accelkit.backends.kube.transport import Answer, Request
from accelkit.core.errors import TransportError


class _Now(threading.local):
    """The call that this thread makes; urllib3 has no other way to tell which socket it uses."""

    call: Call | None = None
    sock: socket.socket | None = None
    """What it reads from: TLS itself, where *call* holds what is below it."""


_NOW = _Now()


class Official:
    """Connections as the package makes them: through proxies, with credentials of programs.

    Args:
        config: in-cluster, or the path of a kubeconfig.
        user_agent: How requests call their client.
    """

    def __init__(self, config: str, user_agent: str) -> None:
        self._config = config
        self._user_agent = user_agent
        self._client = _load(config)

    @property
    def server(self) -> str:
        return str(self._client.configuration.host)

    def exchange(self, request: Request, call: Call) -> Answer | Stream:
        _NOW.call = call
        call.kept = False
        try:
            return self._exchange(request, call)
        except urllib3.exceptions.HTTPError as error:
            raise _cause(error) from error
        finally:
            _NOW.call = _NOW.sock = None
            call.let_go()

    def renew(self) -> None:
        old, self._client = self._client, _load(self._config)
        _close(old)

    def close(self) -> None:
        _close(self._client)

    def _exchange(self, request: Request, call: Call) -> Answer | Stream:
        call.stage = "connecting, or waiting for an answer"
        response = self._client.rest_client.pool_manager.urlopen(
            request.method,
            f"{self.server}{request.target}",
            body=request.body(),
            headers={"User-Agent": self._user_agent, **self._credentials(), **request.headers()},
            timeout=urllib3.Timeout(connect=call.left(), read=call.left()),
            preload_content=False,
            redirect=False,
            retries=False,
        )
        done = False
        try:
            # urllib3 would wait where there is nothing to read.
            assert isinstance(response, urllib3.HTTPResponse)
            raw = response._original_response  # noqa: SLF001 - see above
            assert isinstance(raw, http.client.HTTPResponse)
            sock = _NOW.sock
            assert sock is not None
            if request.streaming and response.status == HTTPStatus.OK:
                stream = Stream(raw, sock, response.close)
                done = True
                return stream
            body = read_body(raw, sock, call)
            done = True
            response.release_conn()
            return Answer(response.status, body, response.headers.get("Retry-After", ""))
        finally:
            if not done:
                response.close()

    def _credentials(self) -> dict[str, str]:
        found = self._client.configuration.auth_settings().get("BearerToken")
        value = str(found["value"] or "").strip() if found else ""
        return {"Authorization": value} if value else {}


class _Noted:
    """What a connection does besides: it tells the thread's call which socket it uses."""

    sock: socket.socket | None

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]  # of the class beside it
        self._tell()

    def request(self, *args: object, **options: object) -> None:
        if self.sock is not None and _NOW.call is not None:
            _NOW.call.kept = True
            self._tell()
        super().request(*args, **options)  # type: ignore[misc]  # of the class beside it

    def _tell(self) -> None:
        if _NOW.call is not None and self.sock is not None:
            _NOW.sock = self.sock
            # TLS to a server through TLS to a proxy is no socket, but has one
            _NOW.call.hold(getattr(self.sock, "socket", self.sock))


def _relax(pool: urllib3.PoolManager) -> None:
    """Believe authorities without key identifiers or usages, which clusters have.

    By default urllib3 does so before Python 3.13 only.
    """
    given = pool.connection_pool_kw
    context = create_urllib3_context(cert_reqs=given["cert_reqs"])
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not given.get("ca_certs") and not given.get("ca_cert_data"):
        context.load_default_certs()
    given["ssl_context"] = context


def _note(pool: urllib3.PoolManager) -> None:
    """Let every connection of *pool* be one that tells of itself."""
    kinds: dict[str, type[HTTPConnectionPool]] = pool.pool_classes_by_scheme
    pool.pool_classes_by_scheme = {scheme: _noted(kind) for scheme, kind in kinds.items()}


def _noted(kind: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    connection = type("Noted", (_Noted, kind.ConnectionCls), {})
    return type(kind.__name__, (kind,), {"ConnectionCls": connection})


def _load(config: str) -> ApiClient:
    """A client as the package configures it.

    Raises:
        TransportError: It cannot, or a program gave no credentials.
    """
    found = Configuration()
    try:
        if config == IN_CLUSTER:
            load_incluster_config(found)
        else:
            _load_kubeconfig(Path(config), found)
    except (ConfigException, OSError, ValueError) as error:
        raise TransportError(
            f"kube.config {config}: {error}", remedy="correct it, or set kube.client: lean"
        ) from error
    if not found.verify_ssl:
        # It is what the kubeconfig asks for; urllib3 would say so for every request.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    client = ApiClient(found)
    _relax(client.rest_client.pool_manager)
    _note(client.rest_client.pool_manager)
    return client


def _close(client: ApiClient) -> None:
    client.close()
    client.rest_client.pool_manager.clear()  # older releases leave connections open


def _load_kubeconfig(path: Path, found: Configuration) -> None:
    context = read_kubeconfig(path)  # says better what is wrong with it
    load_kube_config(str(context.path), client_configuration=found, persist_config=False)
    program = context.user.get("exec")
    if isinstance(program, Mapping) and not found.api_key and not found.cert_file:
        # The package only logs what went wrong, and would go on as nobody.
        raise TransportError(
            f"kubeconfig {path}: {program.get('command')} gave no credentials",
            remedy="run it by hand; what it said is in the log",
        )


def _cause(error: urllib3.exceptions.HTTPError) -> Exception:
    """What urllib3 has wrapped."""
    for inner in innermost_first(error):
        if isinstance(inner, (OSError, http.client.HTTPException)):
            return inner
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return TimeoutError(str(error))
    return ConnectionError(str(error))
