"""What an API server refuses, in words. Not here: what keeps a client from it."""

from collections.abc import Mapping
from http import HTTPStatus

from accelkit.backends.kube.reading import NotJson, mapping_of
from accelkit.backends.kube.transport import Answer, Request
from accelkit.core.errors import ApiError
from accelkit.core.kube import Json

_TEXT_LIMIT = 1000
_REMEDIES: Mapping[int, str] = {
    401: "look whether the token or client certificate has expired, or the account was removed",
    409: "read the object again, and repeat the change",
    410: "list again, and watch from there",
    413: "make the object smaller",
    422: "correct the object as the message says, or what an admission policy refuses",
    429: "ask less often, or give the client more room in flow control",
}


def refusal(request: Request, answer: Answer) -> ApiError:
    """The error for an *answer* that is none of success."""
    try:
        text = message_of(mapping_of(answer.body))
    except NotJson:
        text = answer.body[:_TEXT_LIMIT].decode(errors="replace").strip()
    return api_error(request, answer.status, text)


def api_error(request: Request, status: int, text: str) -> ApiError:
    """The error for *status*, whoever told it."""
    remedy = _REMEDIES.get(status, "")
    if status == HTTPStatus.FORBIDDEN:
        remedy = f"grant {request.verb} on {request.resource} to our account"
    elif status == HTTPStatus.NOT_FOUND:
        remedy = "look whether it exists, and whether the server serves this version of the API"
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        remedy = "look at the API server's log"
    said = " ".join(text.split())[:_TEXT_LIMIT]
    return ApiError(
        f"{request.verb} {request.path}: {status} {_phrase(status)}"
        + (f": {said}" if said else ""),
        remedy=remedy,
        status=status,
    )


def message_of(status: Json) -> str:
    """What a Status object says."""
    found = status.get("message")
    return found if isinstance(found, str) else ""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "of an unknown kind"
