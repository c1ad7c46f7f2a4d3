"""From the body of a request to an object: what is read, warned of, refused. Not here: storing."""

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from accelkit.conformance.sims.api.decoding import Decoder, Object, Undecodable
from accelkit.conformance.sims.api.documents import parse
from accelkit.conformance.sims.api.event_forms import stored
from accelkit.conformance.sims.api.http import BODY_LIMIT, JSON, Request
from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.refusals import (
    Cause,
    Refused,
    bad_request,
    invalid,
    too_large,
    unsupported,
    unsupported_body,
)
from accelkit.conformance.sims.gates import Dialect

_LEVELS = ("", "Ignore", "Strict", "Warn")


@frozen(kw_only=True)
class WriteOptions:
    """What the query of a writing request says."""

    dry_run: bool = False
    validation: str = "Warn"
    manager: str = ""
    """Who owns the fields; a server takes it from the user agent where it is not said."""
    force: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str], agent: str, what: str) -> "WriteOptions":
        """Read a query.

        Args:
            query: Of the request.
            agent: The user agent.
            what: How the options are called: ``CreateOptions``.

        Raises:
            Refused: An option has a value that it cannot have.
        """
        causes: list[Cause] = []
        if (dry := query.get("dryRun", "")) not in {"", "All"}:
            causes.append(unsupported("dryRun", [dry], ("All",)))
        if (level := query.get("fieldValidation", "")) not in _LEVELS:
            causes.append(unsupported("fieldValidation", level, _LEVELS))
        if causes:
            raise invalid("meta.k8s.io", what, "", causes)
        return cls(
            dry_run=bool(dry),
            validation=level or "Warn",
            manager=query.get("fieldManager") or re.split(r"[/ ]", agent)[0] or "unknown",
            force=query.get("force") == "true",
        )


@frozen
class Body:
    """An object as it was sent."""

    item: Object
    """Decoded, with empty lists where they were sent."""
    warnings: tuple[str, ...]


def read_tree(request: Request, kind: str) -> Mapping[str, object]:
    """A body that is a JSON object.

    Raises:
        Refused: It is not; of protobuf and YAML a real server reads, too.
    """
    return _parsed(request, kind)[0]


def read_body(request: Request, kind: Kind, dialect: Dialect, validation: str) -> Body:
    """Decode a whole object.

    Raises:
        Refused: It is none of that kind.
    """
    tree, duplicates = _parsed(request, kind.resource.kind)
    _check_type(tree, kind)
    return decode(stored(kind, tree), kind, dialect, validation, duplicates)


def decode(
    tree: object,
    kind: Kind,
    dialect: Dialect,
    validation: str,
    duplicates: Sequence[str] = (),
) -> Body:
    """Decode what was parsed.

    Raises:
        Refused: It has the wrong types, or strange fields where those are not let through.
    """
    decoder = Decoder(dialect.knows)
    try:
        item = decoder.read(kind.struct, tree)
    except Undecodable as error:
        raise bad_request(f"{_cannot(kind)}: {error}") from None
    notes = [f'unknown field "{path}"' for path in decoder.unknown]
    notes += [f'duplicate field "{path}"' for path in duplicates]
    if notes and validation == "Strict":
        raise bad_request(f"{_cannot(kind)}: strict decoding error: {', '.join(notes)}")
    return Body(item, tuple(notes) if validation == "Warn" else ())


def _cannot(kind: Kind) -> str:
    resource = kind.resource
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def _parsed(request: Request, kind: str) -> tuple[Mapping[str, object], Sequence[str]]:
    if request.body is None:
        raise too_large(BODY_LIMIT)
    if request.headers.get("content-type", JSON).partition(";")[0].strip() not in {"", JSON}:
        raise unsupported_body()
    shown = request.body.decode("utf-8", "replace") or "<empty>"
    try:
        parsed = parse(request.body.decode())
    except ValueError as error:
        why = str(error) if request.body else "unexpected end of JSON input"
        raise _unrecognized(kind, f"{why} ({shown})") from None
    if not isinstance(parsed.tree, dict):
        raise _unrecognized(kind, f"it is not an object ({shown})")
    return parsed.tree, parsed.duplicates


def _unrecognized(kind: str, why: str) -> Refused:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): "
        f"couldn't get version/kind; json parse error: {why}"
    )


def _check_type(tree: Mapping[str, object], kind: Kind) -> None:
    resource = kind.resource
    version, name = tree.get("apiVersion"), tree.get("kind")
    if version and version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if name and name != resource.kind:
        raise bad_request(
            f'{name} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"converting ({resource.version}.{name}) to ({resource.group.split('.')[0]}."
            f"{resource.kind}): unknown conversion"
        )
