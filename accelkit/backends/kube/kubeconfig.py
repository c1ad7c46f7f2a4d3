"""A kubeconfig's present context, as far as it needs no program to be run. Not here: using it.

Source:
    https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

from collections.abc import Mapping
from pathlib import Path

import attrs

from accelkit.backends.kube.access import Access, Pem, decoded, read_file
from accelkit.backends.kube.reading import is_mapping
from accelkit.core.errors import TransportError

_ELSEWHERE: Mapping[str, str] = {
    "exec": "runs a program for credentials (exec)",
    "auth-provider": "uses an auth-provider",
    "username": "uses a password",
    "proxy-url": "goes through a proxy (proxy-url)",
}
"""What only the `kubernetes` package does."""


@attrs.frozen(kw_only=True)
class Context:
    """What the present context of a kubeconfig names."""

    path: Path
    cluster: Mapping[str, object]
    user: Mapping[str, object]

    def text(self, where: Mapping[str, object], key: str) -> str:
        """The text under *key*; empty: there is none."""
        found = where.get(key)
        if found is not None and not isinstance(found, str):
            raise _wrong(self.path, f"{key} is not a text")
        return found or ""

    def file(self, where: Mapping[str, object], key: str) -> str:
        """The path under *key*, which counts from the kubeconfig's folder."""
        found = self.text(where, key)
        return str(self.path.parent / found) if found else ""

    def pem(self, where: Mapping[str, object], key: str) -> Pem:
        """What ``KEY-data`` has, else the file that *key* names."""
        if data := self.text(where, f"{key}-data"):
            return Pem(text=decoded(data, f"kubeconfig {self.path}: {key}-data"))
        return Pem(self.file(where, key))


def read_kubeconfig(path: Path) -> Context:
    """Read the present context.

    Raises:
        TransportError: It cannot be read, names what is not there, or asks to act as another
            user, which nobody here can do.
    """
    import yaml  # noqa: PLC0415 - an agent in a cluster does not need it

    path = path.expanduser().absolute()
    try:
        tree: object = yaml.safe_load(read_file(path))
    except (yaml.YAMLError, ValueError) as error:
        raise _wrong(path, f"not YAML: {' '.join(str(error).split())}") from error
    if not is_mapping(tree):
        raise _wrong(path, "not a mapping")
    current = _named(path, tree, "context", tree.get("current-context"))
    cluster = _named(path, tree, "cluster", current.get("cluster"))
    user = _named(path, tree, "user", current["user"]) if current.get("user") else {}
    if acts_as := next((key for key in user if key == "as" or key.startswith("as-")), None):
        raise _wrong(path, f"asks to act as another user ({acts_as}), which is not possible")
    return Context(path=path, cluster=cluster, user=user)


def static_access(context: Context) -> Access:
    """Access by what stands in a kubeconfig.

    Raises:
        TransportError: It needs more than that.
    """
    for key, does in _ELSEWHERE.items():
        if context.user.get(key) or context.cluster.get(key):
            raise TransportError(
                f"kubeconfig {context.path} {does}, which the lean client does not",
                remedy="set kube.client: official, and install accelkit[kubernetes]",
            )
    server = context.text(context.cluster, "server").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise _wrong(context.path, f"server {server!r} is not a URL")
    return Access(
        server=server,
        authority=context.pem(context.cluster, "certificate-authority"),
        certificate=context.pem(context.user, "client-certificate"),
        key=context.pem(context.user, "client-key"),
        token=context.text(context.user, "token"),
        token_file=context.file(context.user, "tokenFile"),
        server_name=context.text(context.cluster, "tls-server-name"),
        insecure=context.cluster.get("insecure-skip-tls-verify") is True,
    )


def _named(path: Path, tree: Mapping[str, object], kind: str, name: object) -> Mapping[str, object]:
    """The entry of that name in a list of entries."""
    entries = tree.get(f"{kind}s")
    for entry in entries if isinstance(entries, list) else []:
        if is_mapping(entry) and entry.get("name") == name and is_mapping(entry.get(kind)):
            found = entry[kind]
            if is_mapping(found):
                return found
    raise _wrong(path, f"there is no {kind} {name!r}")


def _wrong(path: Path, what: str) -> TransportError:
    return TransportError(f"kubeconfig {path}: {what}", remedy="correct the file, or kube.config")
