"""What a server says when it refuses, as Status objects. Not here: when it does.

Source:
    Bodies seen from kube-apiserver 1.37.2; k8s.io/apimachinery v0.37.2, pkg/api/errors/errors.go.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from accelkit.conformance.sims.api.documents import write
from accelkit.core.kube import Resource

EXPIRED_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Refused(Exception):
    """A request that is not done.

    Args:
        code: Of HTTP.
        reason: As in a Status; empty for none.
        message: For people.
        details: Of the Status.
        retry_s: When to ask again, for the header as well.
        token: Where a list may go on all the same.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        retry_s: int | None = None,
        token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_s = retry_s
        self._details = details
        self._reason = reason
        self._token = token

    @property
    def status(self) -> dict[str, object]:
        """The body of the answer."""
        details = dict(self._details) if self._details is not None else None
        if self.retry_s is not None:
            details = {**(details or {}), "retryAfterSeconds": self.retry_s}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self._token} if self._token else {},
            "status": "Failure",
            "message": str(self),
            **({"reason": self._reason} if self._reason else {}),
            **({"details": details} if details is not None else {}),
            "code": self.code,
        }


class Crashed(Exception):
    """A server fell over a request: the connection ends without an answer."""


def succeeded(resource: Resource, name: str, uid: str) -> dict[str, object]:
    """What follows a deletion that leaves nothing to show."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(name, resource.group, resource.plural), "uid": uid},
    }


def _details(name: str, group: str, kind: str) -> dict[str, object]:
    found = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in found.items() if value}


def full_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


# Refusals of whole requests.


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def not_found(resource: Resource, name: str) -> Refused:
    message = f'{full_name(resource)} "{name}" not found'
    return Refused(
        404, "NotFound", message, details=_details(name, resource.group, resource.plural)
    )


def no_such_path() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource", details={})


def no_such_method() -> Refused:
    message = "the server does not allow this method on the requested resource"
    return Refused(405, "MethodNotAllowed", message, details={})


def already_exists(resource: Resource, name: str) -> Refused:
    message = f'{full_name(resource)} "{name}" already exists'
    return Refused(
        409, "AlreadyExists", message, details=_details(name, resource.group, resource.plural)
    )


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(resource: Resource, name: str, why: str = MODIFIED, *, kind: str = "") -> Refused:
    """A write that comes too late; a failed precondition of a deletion names the *kind*."""
    what = f"{kind}.{resource.group}" if kind and resource.group else kind or full_name(resource)
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    details = _details(name, resource.group, kind or resource.plural)
    return Refused(409, "Conflict", message, details=details)


def unauthorized() -> Refused:
    return Refused(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> Refused:
    what = f"{plural}.{group}" if group else plural
    quoted = f' "{name}"' if name else ""
    message = f"{what}{quoted} is forbidden: {why}"
    return Refused(403, "Forbidden", message, details=_details(name, group, plural))


def unsupported_body() -> Refused:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    return Refused(415, "UnsupportedMediaType", message)


def unsupported_patch() -> Refused:
    return Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def not_acceptable() -> Refused:
    message = "406: Not Acceptable\n\nAvailable representations: application/json"
    return Refused(406, "NotAcceptable", message, details={})


def too_large(limit: int) -> Refused:
    message = f"Request entity too large: limit is {limit}"
    return Refused(413, "RequestEntityTooLarge", message)


def too_many(retry_s: int = 1) -> Refused:
    message = "Too many requests, please try again later."
    return Refused(429, "TooManyRequests", message, retry_s=retry_s)


def expired(version: int, oldest: int) -> Refused:
    """A watch from a version that is forgotten."""
    return Refused(410, "Expired", f"too old resource version: {version} ({oldest})")


def expired_page(token: str) -> Refused:
    return Refused(410, "Expired", EXPIRED_PAGE, token=token)


def version_too_large(version: int, current: int) -> Refused:
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Refused(504, "Timeout", message, details={"causes": [cause]}, retry_s=1)


# Refusals of single fields.


@frozen(order=True)
class Cause:
    """What is wrong with one field."""

    path: str
    reason: str
    message: str

    def as_json(self) -> dict[str, object]:
        return {"reason": self.reason, "message": self.message, "field": self.path}


def _shown(value: object) -> str:
    """*value* as a server quotes it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return write(value).decode()


def required(path: str, detail: str = "") -> Cause:
    return Cause(path, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def wrong(path: str, value: object, detail: str) -> Cause:
    return Cause(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def denied(path: str, detail: str) -> Cause:
    return Cause(path, "FieldValueForbidden", f"Forbidden: {detail}")


def repeated(path: str, value: object) -> Cause:
    return Cause(path, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def too_long(path: str, limit: int) -> Cause:
    return Cause(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many_items(path: str, count: int, limit: int) -> Cause:
    message = f"Too many: {count}: must have at most {limit} items"
    return Cause(path, "FieldValueTooMany", message)


def unsupported(path: str, value: object, supported: Sequence[str]) -> Cause:
    known = ", ".join(f'"{text}"' for text in supported)
    message = f"Unsupported value: {_shown(value)}: supported values: {known}"
    return Cause(path, "FieldValueNotSupported", message)


def invalid(group: str, kind: str, name: str, causes: Iterable[Cause]) -> Refused:
    """An object that is refused for its fields."""
    found = list(causes)
    texts = [f"{cause.path}: {cause.message}" for cause in found]
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    what = f"{kind}.{group}" if group else kind
    details = {**_details(name, group, kind), "causes": [cause.as_json() for cause in found]}
    return Refused(422, "Invalid", f'{what} "{name}" is invalid: {said}', details=details)
