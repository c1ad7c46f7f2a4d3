"""Asking an API server, real or simulated, and reducing its answers to what can be compared."""

import http.client
import json
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

Document = dict[str, Any]  # type: ignore[explicit-any]  # whatever JSON a server answers

JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
_PASSING = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RUN = re.compile(r"(\w)\1{40,}")
_VERSION = re.compile(r"(?<=\()\d+(?=\))|(?<=version: )\d+|(?<=current: )\d+")


@frozen
class Step:
    """One request; ``$uid`` and ``$version`` in it are those of the last object seen.

    ``$first`` is the version of the first one.
    """

    method: str
    path: str
    body: object = None
    """JSON; a string is sent as it is."""
    content_type: str = JSON


@frozen
class Probe:
    """Requests of which every answer is compared, with others before and after them."""

    name: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()


@frozen
class Server:
    """Where to ask."""

    port: int
    trust: ssl.SSLContext | None = None

    def connect(self) -> http.client.HTTPConnection:
        if self.trust:
            return http.client.HTTPSConnection(
                "127.0.0.1", self.port, context=self.trust, timeout=30
            )
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(
        self, method: str, path: str, body: object = None, kind: str = JSON
    ) -> tuple[int, Document]:
        """One request: its status and what was answered."""
        connection = self.connect()
        try:
            sent = _written(body, {})
            connection.request(method, path, sent and sent.encode(), {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, _read(answer.read().decode())
        finally:
            connection.close()

    def probe(self, probe: Probe) -> list[Document]:
        """What comes of the steps of *probe*."""
        connection = self.connect()
        known: dict[str, str] = {}
        try:
            for step in probe.before:
                _asked(connection, step, known)
            found = [_asked(connection, step, known) for step in probe.steps]
            for step in probe.after:
                _asked(connection, step, known)
            return found
        finally:
            connection.close()


def _asked(connection: http.client.HTTPConnection, step: Step, known: dict[str, str]) -> Document:
    body = _written(step.body, known)
    path = _written(step.path, known)
    assert path
    connection.request(
        step.method, path, body and body.encode(), {"Content-Type": step.content_type}
    )
    try:
        answer = connection.getresponse()
    except http.client.RemoteDisconnected:
        return {"status": 0}
    text = answer.read().decode()
    document = _read(text)
    meta = document.get("metadata") or {}
    if "uid" in meta:
        version = meta.get("resourceVersion", "")
        known |= {"uid": meta["uid"], "version": version, "first": known.get("first", version)}
    return _reduced(answer.status, document, answer.headers.get_all("Warning") or ())


def _read(text: str) -> Document:
    """A document; of a watch its lines."""
    if not text.startswith("{"):
        return {"text": text}
    if text.startswith('{"type":'):
        return {"lines": [json.loads(line) for line in text.splitlines()]}
    document: Document = json.loads(text)
    return document


def _written(body: object, known: Mapping[str, str]) -> str | None:
    text = body if isinstance(body, str | None) else json.dumps(body, separators=(",", ":"))
    for name, value in known.items():
        text = text and text.replace(f"${name}", value)
    return text


def _reduced(status: int, document: Document, warnings: Sequence[str]) -> Document:
    if document.get("kind") == "Status":
        seen: Document = {"status": status, "reason": document.get("reason")}
        causes = (document.get("details") or {}).get("causes")
        if causes:
            # Several are told in no certain order.
            seen["causes"] = sorted(f"{c.get('field')}: {c['message']}" for c in causes)
        else:
            seen["message"] = document.get("message")
        details = {k: v for k, v in (document.get("details") or {}).items() if k != "causes"}
        seen["details"] = details
    else:
        seen = {"status": status, "document": _settled(document)}
    if warnings:
        seen["warnings"] = sorted(warnings)
    text = _UID.sub("UID", json.dumps(seen, sort_keys=True, ensure_ascii=False))
    short = _RUN.sub(lambda run: f"{run[1]}*{len(run[0])}", _VERSION.sub("N", text))
    reduced: Document = json.loads(short)
    return reduced


def _settled(item: object) -> object:
    """*item* without what differs from one time to the next."""
    if isinstance(item, list):
        return [_settled(each) for each in item]
    if not isinstance(item, dict):
        return item
    return {
        name: "now" if name == "timeAdded" and str(value) > "2026-10" else _settled(value)
        for name, value in item.items()
        if name not in _PASSING
    }


def differences(
    expected: Mapping[str, list[Document]], found: Mapping[str, list[Document]]
) -> dict[str, tuple[list[Document], list[Document]]]:
    """Probes of which the answers differ."""
    return {
        name: (answers, found[name]) for name, answers in expected.items() if answers != found[name]
    }


def loosely(answers: list[Document]) -> list[Document]:
    """*answers* without words: those of older releases differ."""
    return [_without_words(answer) for answer in answers]


def _without_words(answer: Document) -> Document:
    causes = {".".join(re.findall(r"\w+", cause)[:2]) for cause in answer.get("causes", ())}
    kept = {name: answer[name] for name in ("status", "reason", "document") if name in answer}
    return kept | ({"causes": sorted(causes)} if causes else {})
