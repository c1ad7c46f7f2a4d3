"""Keys, certificates and kubeconfigs of a test cluster; valid for 30 days, made with openssl."""

import json
import shutil
import subprocess
from pathlib import Path

API_SERVER_NAMES = (
    "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,"
    "DNS:kubernetes.default,DNS:kubernetes.default.svc"
)
CLIENT = "extendedKeyUsage=clientAuth"


def _openssl(pki: Path, *argv: str) -> None:
    subprocess.run(["openssl", *argv], check=True, capture_output=True, cwd=pki)


def _leaf(pki: Path, name: str, subject: str, extensions: str) -> None:
    (pki / f"{name}.ext").write_text(extensions)
    request = ("-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    _openssl(pki, "req", *request, "-subj", subject)
    authority = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
    result = ("-out", f"{name}.crt", "-days", "30", "-extfile", f"{name}.ext")
    _openssl(pki, "x509", "-req", "-in", f"{name}.csr", *authority, *result)


def cluster_certificates(pki: Path) -> None:
    """Make the authority of a cluster and what its API server and administrator need."""
    pki.mkdir()
    authority = ("-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt")
    _openssl(pki, "req", "-x509", *authority, "-days", "30", "-subj", "/CN=test-ca")
    server = f"subjectAltName={API_SERVER_NAMES}\nextendedKeyUsage=serverAuth"
    _leaf(pki, "apiserver", "/CN=kube-apiserver", server)
    client_certificate(pki, "admin", "system:masters")
    _openssl(pki, "genrsa", "-out", "sa.key", "2048")
    _openssl(pki, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")


def client_certificate(pki: Path, user: str, *groups: str) -> None:
    """Make what a user of these groups needs, ``USER.crt`` and ``USER.key``."""
    _leaf(pki, user, "".join(f"/O={group}" for group in groups) + f"/CN={user}", CLIENT)


def node_certificate(pki: Path, node: str, join: Path | None) -> None:
    """Make the kubelet's certificate; with *join*, signed by the authority found in that folder."""
    if join:
        shutil.copytree(join, pki)
    # the name is what the API server's Node authorizer goes by
    _leaf(pki, "kubelet", f"/O=system:nodes/CN=system:node:{node}", CLIENT)


def write_kubeconfig(path: Path, pki: Path, user: str, port: int) -> None:
    certificate, key = str(pki / f"{user}.crt"), str(pki / f"{user}.key")
    server = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority": str(pki / "ca.crt"),
    }
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": server}],
                "users": [
                    {"name": user, "user": {"client-certificate": certificate, "client-key": key}}
                ],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            }
        )
    )
