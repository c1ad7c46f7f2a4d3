"""The transport of the standard library: no proxies, no programs that give credentials."""

import http.client
import select
import socket
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from accelkit.backends.kube.access import Access, Token, tls_context
from accelkit.backends.kube.call import Call
from accelkit.backends.kube.reading import Stream, read_body
from accelkit.backends.kube.transport import Answer, Request


class _Connection:
    """One connection: the socket, and who speaks HTTP over it."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.http = http.client.HTTPConnection("")
        self.http.sock = sock
        self.http.auto_open = 0  # it would connect in its own way

    @property
    def silent(self) -> bool:
        """Whether nothing has come unasked: the server says nothing but that it ends."""
        # not select(): that cannot look at sockets beyond the 1024th file
        look = select.poll()
        look.register(self.socket, select.POLLIN)
        return not look.poll(0)

    def close(self) -> None:
        self.http.close()
        self.socket.close()


class Lean:
    """Kept connections for calls, as many as were needed at once, and one for each stream."""

    def __init__(self, access: Access, user_agent: str) -> None:
        self.server = access.server
        self._access = access
        self._token = Token(access)
        self._user_agent = user_agent
        url = urlsplit(access.server)
        self._host, self._prefix = url.netloc, url.path.rstrip("/")
        self._kept: list[_Connection] = []
        """A list, because taking from it cannot be done by two threads at once."""

    def exchange(self, request: Request, call: Call) -> Answer | Stream:
        headers = {"Host": self._host, **self._credentials(), **request.headers()}
        connection = self._connection(request, call)
        keep = False
        try:
            with call.holding(connection.socket):
                response = self._ask(connection, request, headers, call)
                if request.streaming and response.status == http.client.OK:
                    stream = Stream(response, connection.socket, connection.close)
                    keep = True
                    return stream
                body = read_body(response, connection.socket, call)
            keep = not (response.will_close or request.streaming)
            if keep:
                self._kept.append(connection)
            return Answer(response.status, body, response.getheader("Retry-After") or "")
        finally:
            if not keep:
                connection.close()

    def renew(self) -> None:
        self._token.forget()
        self.close()

    def close(self) -> None:
        with suppress(IndexError):
            while True:
                self._kept.pop().close()

    def _ask(
        self, connection: _Connection, request: Request, headers: Mapping[str, str], call: Call
    ) -> http.client.HTTPResponse:
        call.stage = "sending the request"
        connection.socket.settimeout(call.left())
        target = self._prefix + request.target
        connection.http.request(request.method, target, request.body(), headers)
        call.stage = "waiting for an answer"
        connection.socket.settimeout(call.left())
        return connection.http.getresponse()

    def _credentials(self) -> dict[str, str]:
        found = {"User-Agent": self._user_agent}
        if token := self._token.read():
            found["Authorization"] = f"Bearer {token}"
        return found

    def _connection(self, request: Request, call: Call) -> _Connection:
        """The kept connection if it is still good, else a new one; taken out while it is used."""
        while not request.streaming and self._kept:
            kept = self._kept.pop()
            if kept.silent:
                call.kept = True
                return kept
            kept.close()
        call.kept = False
        return _Connection(self._connect(call))

    def _connect(self, call: Call) -> socket.socket:
        if not self._access.secure:
            return self._reach(call)
        context = tls_context(self._access)
        sock = self._reach(call)
        call.stage = "in the TLS handshake"
        try:
            name = self._access.server_name or self._access.host
            # This takes the socket's descriptor over, even if it fails.
            sock = context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)
            with call.holding(sock):
                sock.settimeout(call.left())
                sock.do_handshake()
        except BaseException:
            sock.close()
            raise
        return sock

    def _reach(self, call: Call) -> socket.socket:
        """Connect to the first of the host's addresses that answers."""
        call.stage = "looking up its host name"
        host, port = self._access.host, self._access.port
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        call.stage = "connecting"
        failed: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
        for tried, (family, kind, protocol, _, address) in enumerate(found):
            sock = socket.socket(family, kind, protocol)
            try:
                with call.holding(sock):
                    sock.settimeout(call.left() / (len(found) - tried))
                    sock.connect(address)
                # A request's head and body are two packets, the second must not wait.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            except OSError as error:
                sock.close()
                failed = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise failed
