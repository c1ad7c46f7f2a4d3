"""What keeps a client from its server, in words. Not here: what a server refuses."""

import errno
import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from accelkit.core.errors import TransportError

_REFUSED = "the server does not accept our client certificate"
_RENEW = "renew the client certificate of the kubeconfig"
_TIME = "look at the node's clock, and renew the API server's certificate"
_AUTHORITY = "give the authority that signed the API server's certificate: ca.crt of the service "
_AUTHORITY += "account, or certificate-authority of the kubeconfig"
_NAME = "use a name or address that the certificate has, or set tls-server-name in the kubeconfig"

_CERTIFICATES: Mapping[int, tuple[str, str]] = {
    9: ("its certificate is not valid yet", _TIME),
    10: ("its certificate has expired", _TIME),
    18: ("its certificate is signed by itself", _AUTHORITY),
    19: ("its certificate comes from an unknown authority", _AUTHORITY),
    20: ("its certificate comes from an unknown authority", _AUTHORITY),
    62: ("its certificate is for another host name", _NAME),
    64: ("its certificate is for another address", _NAME),
}
"""By the number of the fault. Source: openssl/x509_vfy.h, X509_V_ERR_*."""

_TLS: Mapping[str, tuple[str, str]] = {
    "WRONG_VERSION_NUMBER": ("it does not speak TLS", "look at the port, or write http://"),
    "HTTP_REQUEST": ("it does not speak TLS", "look at the port, or write http://"),
    "UNSUPPORTED_PROTOCOL": ("it speaks only old versions of TLS", "let it speak TLS 1.2"),
    "TLSV1_ALERT_PROTOCOL_VERSION": ("it wants another version of TLS", "let it speak TLS 1.2"),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "it wants a client certificate",
        "give client-certificate and client-key in the kubeconfig",
    ),
    "TLSV1_ALERT_UNKNOWN_CA": (_REFUSED, _RENEW),
    "SSLV3_ALERT_BAD_CERTIFICATE": (_REFUSED, _RENEW),
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": (_REFUSED, _RENEW),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": ("our client certificate has expired", _RENEW),
}
"""By OpenSSL's reason."""

_Kinds: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]
_KINDS: tuple[tuple[_Kinds, tuple[str, str]], ...] = (
    (socket.gaierror, ("its host name is not known", "look at the name, and at the node's DNS")),
    (ConnectionRefusedError, ("nobody listens there", "look whether the API server runs")),
    (
        (ConnectionError, ssl.SSLEOFError),
        ("it ended the connection", "look whether the API server runs"),
    ),
    (http.client.IncompleteRead, ("its answer broke off", "look whether the API server runs")),
)
_PLACES = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL})


class Closed(TransportError):
    """Our side has closed; asking again is no use."""

    def __init__(self) -> None:
        super().__init__("the client of the API server was closed")


class Silent(TransportError):
    """A watch brought nothing for too long."""

    def __init__(self) -> None:
        super().__init__("a watch brought nothing, not even a bookmark: its connection is dead")


def transport_error(error: BaseException, server: str, stage: str) -> TransportError:
    """Name what *error* means for the connection to *server*.

    Args:
        error: What was raised; what it wraps is looked at, too.
        server: What it is called.
        stage: What was being done, for errors of time.
    """
    if isinstance(error, TransportError):
        return error
    for inner in innermost_first(error):
        if known := _known(inner, stage):
            what, remedy = known
            return TransportError(f"{server}: {what}", remedy=remedy)
    return TransportError(
        f"{server}: {type(error).__name__}: {error}",
        remedy="look whether an API server answers there",
    )


def innermost_first(error: BaseException) -> Iterator[BaseException]:
    """*error* and all that it wraps."""
    found: list[BaseException] = []
    todo: list[object] = [error]
    while todo:
        one = todo.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            # urllib3 keeps what it wraps in one of these
            todo += [one.__cause__, getattr(one, "reason", None), *one.args]
    return reversed(found)


def _known(error: BaseException, stage: str) -> tuple[str, str] | None:
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return _tls(error)
    if isinstance(error, TimeoutError):
        return f"no answer in time, {stage}", "look whether the API server is overloaded"
    if isinstance(error, OSError) and error.errno in _PLACES:
        return "there is no way to it", "look at the address, and at the node's network"
    for kind, words in _KINDS:
        if isinstance(error, kind):
            return words
    if isinstance(error, http.client.HTTPException):
        text = f"it does not speak as an API server does: {type(error).__name__}: {error}"
        return text, "look at the address and the port"
    return None


def _tls(error: ssl.SSLError) -> tuple[str, str]:
    if isinstance(error, ssl.SSLCertVerificationError):
        default = (f"its certificate cannot be trusted: {error.verify_message}", _AUTHORITY)
        return _CERTIFICATES.get(error.verify_code, default)
    reason = getattr(error, "reason", None) or ""  # only what OpenSSL told has one
    default = (f"TLS failed: {reason or error}", "look whether an API server answers there")
    return _TLS.get(reason, default)
