"""The files by which clients find a server. Not here: the server."""

import json
from collections.abc import Mapping
from pathlib import Path

_SERVICE_ACCOUNT = ("token", "ca.crt", "namespace")


def write_kubeconfig(
    path: Path, url: str, *, token: str = "", authority: Path | None = None
) -> None:
    """Write a kubeconfig; it is JSON, which every reader of YAML reads."""
    trust = {"certificate-authority": str(authority)} if authority else {}
    user = {"token": token} if token else {}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "simulated",
        "clusters": [{"name": "simulated", "cluster": {"server": url, **trust}}],
        "users": [{"name": "simulated", "user": user}],
        "contexts": [
            {"name": "simulated", "context": {"cluster": "simulated", "user": "simulated"}}
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1))


def port_of(path: Path) -> int:
    """The port of the server in a kubeconfig that was written here; 0: there is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return int(document["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0


def write_in_cluster(
    directory: Path, port: int, *, token: str, authority: Path, namespace: str
) -> Mapping[str, str]:
    """Write what a pod finds in /var/run/secrets/kubernetes.io/serviceaccount into *directory*.

    Returns:
        The variables that a pod has; its server must speak TLS.
    """
    directory.mkdir(parents=True, exist_ok=True)
    contents = (token, authority.read_text(), namespace)
    for name, content in zip(_SERVICE_ACCOUNT, contents, strict=True):
        (directory / name).write_text(content)
    return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
