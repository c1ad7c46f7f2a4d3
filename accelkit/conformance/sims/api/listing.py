"""Whole collections, in pages if asked for. Not here: changes to come.

A page goes on from a token that names the version of the first page, so that all pages together
show one moment; a token from before the history is too old.
"""

import base64
import json
from collections.abc import Mapping

from attrs import frozen

from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.refusals import (
    Cause,
    bad_request,
    denied,
    expired_page,
    invalid,
    unsupported,
    version_too_large,
)
from accelkit.conformance.sims.api.selectors import Chosen, by_fields, by_labels
from accelkit.conformance.sims.api.store import Store
from accelkit.conformance.sims.api.values import names_of

Object = Mapping[str, object]
_MATCHES = ("Exact", "NotOlderThan", "")


@frozen(kw_only=True)
class Wanted:
    """What a query of a list or a watch asks for."""

    chosen: Chosen
    limit: int
    token: str
    version: str
    match: str
    initial: bool | None
    """``sendInitialEvents``; None: not said."""
    bookmarks: bool
    timeout_s: float | None
    watch: bool

    @classmethod
    def read(cls, kind: Kind, query: Mapping[str, str], *, watch: bool) -> "Wanted":
        """Read a query.

        Raises:
            Refused: It cannot be understood.
        """
        fields = by_fields(kind, query.get("fieldSelector", ""))
        labels = by_labels(query.get("labelSelector", ""))
        initial = query.get("sendInitialEvents")
        wanted = cls(
            chosen=lambda item: fields(item) and labels(item),
            limit=_number(query, "limit"),
            token=query.get("continue", ""),
            version=query.get("resourceVersion", ""),
            match=query.get("resourceVersionMatch", ""),
            initial=None if initial is None else initial == "true",
            bookmarks=query.get("allowWatchBookmarks") in {"1", "true"},
            timeout_s=_number(query, "timeoutSeconds") or None,
            watch=watch,
        )
        if causes := list(_faults(wanted)):
            raise invalid("meta.k8s.io", "ListOptions", "", causes)
        return wanted


def _number(query: Mapping[str, str], name: str) -> int:
    said = query.get(name, "") or "0"
    try:
        return int(said)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{said}": invalid syntax') from None


def _faults(wanted: Wanted) -> list[Cause]:
    path, causes = "resourceVersionMatch", []
    if wanted.initial is not None and not wanted.watch:
        causes.append(denied("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if wanted.match not in _MATCHES:
        causes.append(unsupported(path, wanted.match, _MATCHES))
    elif wanted.watch and wanted.match and wanted.initial is None:
        what = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(denied(path, what))
    elif wanted.watch and wanted.initial is not None and wanted.match != "NotOlderThan":
        what = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(denied(path, what))
    elif not wanted.watch and wanted.match and not wanted.version:
        what = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(denied(path, what))
    elif wanted.match == "Exact" and wanted.version == "0":
        what = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(denied(path, what))
    return causes


@frozen(kw_only=True)
class Page:
    """Some objects of a collection."""

    items: list[Object]
    version: int
    token: str = ""
    remaining: int = 0


def read_page(store: Store, kind: Kind, namespace: str, wanted: Wanted) -> Page:
    """The objects that a list shows.

    Raises:
        Refused: The token or the version is not one to go by.
    """
    after: tuple[str, str] | None = None
    version = store.version
    if wanted.token:
        if wanted.version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        at, after = _read_token(wanted.token)
        if at is not None and at < store.oldest:
            raise expired_page(_token(None, after))
        version = version if at is None else at
    elif (asked := _version(wanted.version)) > store.version:
        raise version_too_large(asked, store.version)
    elif wanted.match == "Exact":
        if asked < store.oldest:
            raise expired_page("")
        version = asked
    found = [item for item in store.items(kind, namespace, version) if wanted.chosen(item)]
    # A list from the cache is never cut.
    cut = wanted.limit > 0 and not (wanted.version == "0" and not wanted.token)
    left = [item for item in found if after is None or names_of(item) > after]
    if not cut or len(left) <= wanted.limit:
        return Page(items=left, version=version)
    shown = left[: wanted.limit]
    return Page(
        items=shown,
        version=version,
        token=_token(version, names_of(shown[-1])),
        remaining=len(left) - wanted.limit,
    )


def _version(text: str) -> int:
    if text and not text.isdigit():
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": '
            f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text or 0)


def _token(version: int | None, after: tuple[str, str]) -> str:
    written = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": list(after)})
    return base64.urlsafe_b64encode(written.encode()).decode()


def _read_token(token: str) -> tuple[int | None, tuple[str, str]]:
    try:
        read = json.loads(base64.urlsafe_b64decode(token))
        namespace, name = read["start"]
        return read["rv"], (str(namespace), str(name))
    except (ValueError, LookupError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None
