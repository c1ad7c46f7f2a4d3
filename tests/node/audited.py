"""Who asked the API server for what, as the server itself wrote it down."""

import json
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.node.certificates import client_certificate, write_kubeconfig
from tests.node.cluster import Cluster
from tests.node.control_plane import AUDITED

READING = frozenset({"get", "list", "watch"})


@attrs.frozen
class Asked:
    """One request that was answered."""

    user: str
    program: str
    """How its user agent begins."""
    verb: str
    resource: str
    name: str
    """Of the object; empty for a collection."""
    code: int
    dry: bool
    """Nothing was written, whatever the verb."""

    @property
    def writes(self) -> bool:
        return self.verb not in READING and not self.dry


class Audited:
    """A user of its own, as whom an agent asks; with all rights."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        pki = cluster.root / "pki"
        client_certificate(pki, user, "system:masters", AUDITED)
        self.kubeconfig = cluster.root / f"{user}.kubeconfig"
        write_kubeconfig(self.kubeconfig, pki, user, cluster.note.port)
        self._user = user
        self._log = Path(cluster.note.control_plane) / "audit.jsonl"
        self._from = 0

    def forget(self) -> None:
        """Tell only of what is asked from now on."""
        self._from = self._log.stat().st_size

    def asked(self) -> Iterator[Asked]:
        """What was asked and answered; a watch, as soon as it began."""
        with self._log.open("rb") as log:
            log.seek(self._from)
            for line in log.read().splitlines():
                entry = json.loads(line)
                if entry["user"]["username"] == self._user:
                    yield _asked(entry)


def _asked(entry: dict[str, object]) -> Asked:
    user, about, status = (entry.get(k) or {} for k in ("user", "objectRef", "responseStatus"))
    assert isinstance(user, dict)
    assert isinstance(about, dict)
    assert isinstance(status, dict)
    return Asked(
        user=str(user["username"]),
        program=str(entry.get("userAgent", "")).partition("/")[0],
        verb=str(entry["verb"]),
        resource=str(about.get("resource", "")),
        name=str(about.get("name", "")),
        code=int(status.get("code", 0)),
        dry="dryRun=All" in str(entry["requestURI"]),
    )
