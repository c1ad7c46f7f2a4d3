"""Certificates with one fault each, made by openssl."""

import shutil
import subprocess
from pathlib import Path

import pytest


def _openssl(folder: Path, *argv: str) -> None:
    subprocess.run(["openssl", *argv], check=True, capture_output=True, cwd=folder)


class Certificates:
    """An authority in *folder* and what it signs."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl makes the certificates, and is not installed")
        self.folder = folder
        self.ca = self.authority("ca")

    def authority(self, name: str) -> Path:
        """Make one; returns the path of its certificate."""
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
        _openssl(self.folder, "req", "-x509", *key, *files, "-days", "2", "-subj", f"/CN={name}")
        return self.folder / f"{name}.crt"

    def leaf(
        self, name: str, *, names: str = "IP:127.0.0.1,DNS:localhost", days: int = 2, by: str = "ca"
    ) -> tuple[Path, Path]:
        """Make a certificate for *names*; returns its path and its key's.

        Args:
            days: Until it expires; negative: since.
        """
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={names}")
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        files = ("-keyout", f"{name}.key", "-out", f"{name}.csr")
        _openssl(self.folder, "req", *key, *files, "-subj", f"/O=testers/CN={name}")
        authority = ("-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-CAcreateserial")
        result = ("-out", f"{name}.crt", "-days", str(days), "-extfile", f"{name}.ext")
        _openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", *authority, *result)
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"
