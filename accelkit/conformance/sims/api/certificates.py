"""An authority and a certificate for 127.0.0.1, made with openssl. Not here: who trusts them."""

import ssl
import subprocess
from pathlib import Path

from attrs import frozen

_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
_DAYS = "30"


@frozen
class Tls:
    """Files of a server's certificate."""

    certificate: Path
    key: Path
    authority: Path
    """What clients trust."""

    def context(self) -> ssl.SSLContext:
        """The server's side."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_tls(directory: Path) -> Tls:
    """Make an authority and a certificate in *directory*.

    Raises:
        OSError: There is no openssl.
        subprocess.CalledProcessError: It failed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "server.ext").write_text(f"{_NAMES}\nextendedKeyUsage=serverAuth\n")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    authority = ("-keyout", "ca.key", "-out", "ca.crt", "-days", _DAYS, "-subj", "/CN=simulated")
    _openssl(directory, "req", "-x509", *new, *authority)
    request = ("-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=simulated-server")
    _openssl(directory, "req", *new, *request)
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", _DAYS)
    result = ("-out", "server.crt", "-extfile", "server.ext")
    _openssl(directory, "x509", "-req", "-in", "server.csr", *signed, *result)
    return Tls(directory / "server.crt", directory / "server.key", directory / "ca.crt")


def _openssl(directory: Path, *words: str) -> None:
    subprocess.run(
        ["openssl", *words],  # noqa: S607 - where it is differs between hosts
        check=True,
        capture_output=True,
        cwd=directory,
    )
