"""Where the API server is and what shows it who we are. Not here: talking to it."""

import base64
import binascii
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from accelkit.core.errors import TransportError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its service account's token and the cluster's authority."""
_NEVER: tuple[int, ...] = ()
_IN_POD = "run in a pod with a service account, or set kube.config to a kubeconfig or to none"


@attrs.frozen
class Pem:
    """Certificates or a key: a file, which is read anew for every connection, or the text."""

    path: str = ""
    text: bytes = attrs.field(default=b"", repr=False)

    def __bool__(self) -> bool:
        return bool(self.path or self.text)

    def read(self) -> bytes:
        """The text.

        Raises:
            TransportError: The file cannot be read.
        """
        return read_file(Path(self.path)) if self.path else self.text


@attrs.frozen(kw_only=True)
class Access:
    """One API server, and the credentials for it."""

    server: str
    """Its URL; a path in it comes before every path."""
    authority: Pem = Pem()
    """Whom to trust; empty: whom the host trusts."""
    certificate: Pem = Pem()
    key: Pem = Pem()
    token: str = attrs.field(default="", repr=False)
    token_file: str = ""
    """Read again when it changes; goes before *token*."""
    server_name: str = ""
    """What its certificate is for; empty: its host."""
    insecure: bool = False
    """Whether anybody is believed to be it."""

    @property
    def secure(self) -> bool:
        return urlsplit(self.server).scheme == "https"

    @property
    def host(self) -> str:
        return urlsplit(self.server).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.server).port or (443 if self.secure else 80)


def in_cluster(environment: Mapping[str, str], account: Path = ACCOUNT) -> Access:
    """Access as a pod has it.

    Raises:
        TransportError: This is no pod, or it has no service account.
    """
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise TransportError(
            "no API server is known: KUBERNETES_SERVICE_HOST and _PORT are not set", remedy=_IN_POD
        )
    for name in ("token", "ca.crt"):
        if not (account / name).is_file():
            raise TransportError(f"no service account: {account / name} is missing", remedy=_IN_POD)
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        authority=Pem(str(account / "ca.crt")),
        token_file=str(account / "token"),
    )


class Token:
    """The token that is sent: from a file that may change, or the same for ever."""

    def __init__(self, access: Access) -> None:
        self._path = access.token_file
        self._text = access.token
        self._seen: tuple[int, ...] | None = _NEVER
        """What the file looked like when it was read last; None: it was not there."""

    def read(self) -> str:
        """The present token; empty: there is none.

        Raises:
            TransportError: The file was never readable. Later, the last token stays.
        """
        if self._path and (identity := _identity(self._path)) != self._seen:
            self._seen = identity
            try:
                self._text = read_file(Path(self._path)).decode().strip()
            except (TransportError, UnicodeDecodeError):
                if not self._text:
                    self.forget()
                    raise
        return self._text

    def forget(self) -> None:
        """Read the file again even if it looks as before."""
        self._seen = _NEVER


def tls_context(access: Access) -> ssl.SSLContext:
    """How a connection is made safe; made for each one, so that files may change.

    Raises:
        TransportError: A certificate or key cannot be read.
    """
    # Not `create_default_context`: since Python 3.13 it refuses authorities without identifiers
    # of their keys, which clusters have.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.authority:
        with _named("the certificate authority", access.authority):
            context.load_verify_locations(cadata=access.authority.read().decode())
    else:
        context.load_default_certs()
    if access.certificate:
        with _named("the client certificate", access.certificate), ExitStack() as files:
            certificate = files.enter_context(_as_file(access.certificate))
            key = files.enter_context(_as_file(access.key)) if access.key else None
            context.load_cert_chain(certificate, key)
    return context


def read_file(path: Path) -> bytes:
    """What is in a file of configuration.

    Raises:
        TransportError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise TransportError(
            f"{path} cannot be read: {error.strerror}", remedy="mount it, or correct kube.config"
        ) from error


def decoded(text: str, what: str) -> bytes:
    """What stands in a kubeconfig as base64.

    Raises:
        TransportError: It does not.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TransportError(f"{what} is not base64: {error}", remedy="correct it") from error


@contextmanager
def _as_file(pem: Pem) -> Iterator[str]:
    """A path where OpenSSL finds it, without writing a key to a disk."""
    if pem.path:
        yield pem.path
        return
    number = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(number, pem.text)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


@contextmanager
def _named(what: str, pem: Pem) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # SSLError is an OSError
        where = f"{what} {pem.path}".rstrip()
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise TransportError(
            f"{where} cannot be used: {reason}", remedy="give certificates and keys as PEM"
        ) from error


def _identity(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - looked at for every request
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
