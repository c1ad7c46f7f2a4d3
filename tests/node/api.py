"""The API server of a cluster, over connections that are kept. Not here: what it is asked."""

import http.client
import json
import threading
from pathlib import Path

from tests.node.control_plane import trust
from tests.node.objects import Document
from tests.node.processes import NodeError

TIMEOUT_S = 10.0
JSON, MERGE, APPLY = (
    "application/json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
"""What a body is."""
EVERYWHERE = frozenset({"Namespace", "Node", "DeviceClass", "ResourceSlice"})
"""Kinds of objects that are in no namespace."""


def path_of(manifest: Document) -> str:
    """Where an object is, or will be."""
    version, kind, meta = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    place = "" if kind in EVERYWHERE else f"/namespaces/{meta.get('namespace', 'default')}"
    return f"/{'apis' if '/' in version else 'api'}/{version}{place}/{plural}/{meta['name']}"


class Api:
    """The API server as the administrator sees it; each thread has a connection of its own."""

    def __init__(self, root: Path, port: int) -> None:
        self._root = root
        self._port = port
        self._kept = threading.local()
        self._opened: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Close the connections of all threads; they are opened again when they are used."""
        for connection in self._opened:
            connection.close()

    def ask(
        self, method: str, path: str, body: Document | None = None, content: str = JSON
    ) -> Document:
        """Ask once, and return the answer.

        Raises:
            NodeError: The API server refuses.
            OSError: There is no answer.
        """
        if method == "GET":
            try:
                return self._answer(method, path, body, content)
            except OSError:
                self._connection.close()  # it may have ended since it was last asked
        else:
            self._connection.close()  # what changes something is not asked twice
        return self._answer(method, path, body, content)

    def _answer(self, method: str, path: str, body: Document | None, content: str) -> Document:
        text = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, text, {"Content-Type": content})
            answer = self._connection.getresponse()
            told = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ConnectionError(f"{path}: {error!r}") from error
        if answer.status >= http.client.BAD_REQUEST:
            raise NodeError(f"{path}: {answer.status}: {told.decode()}")
        document: Document = json.loads(told)
        return document

    @property
    def _connection(self) -> http.client.HTTPSConnection:
        """Opened when it is used."""
        if not hasattr(self._kept, "connection"):
            self._kept.connection = http.client.HTTPSConnection(
                "127.0.0.1", self._port, context=trust(self._root), timeout=TIMEOUT_S
            )
            self._opened.append(self._kept.connection)
        connection: http.client.HTTPSConnection = self._kept.connection
        return connection
