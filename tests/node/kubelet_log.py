"""What the kubelet writes about plugins and pods, and when. Not here: what it does."""

import re
from collections.abc import Iterator
from datetime import datetime

from attrs import frozen

from tests.node.cluster import Cluster

LISTED = '"State pushed for device plugin"'
"""Source: Kubernetes 1.37, pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go."""
ADMITTED = '"SyncLoop ADD"'
"""Source: the same, pkg/kubelet/kubelet.go; pods are admitted right after it."""

_STAMP = re.compile(r"[IWEF](\d{4} \d\d:\d\d:\d\d\.\d{6})")
"""Source: k8s.io/klog/v2, the header of a line."""


@frozen
class Line:
    at_s: float
    """Seconds; for differences alone, as a line does not tell the year."""
    text: str


class KubeletLog:
    """The lines that the kubelet wrote since this object was made."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._file = cluster.root / "kubelet.log"
        self._from = self._file.stat().st_size

    def lines(self, *words: str) -> Iterator[Line]:
        """Those that contain all *words*."""
        with self._file.open("rb") as log:
            log.seek(self._from)
            for text in log.read().decode(errors="replace").splitlines():
                stamp = _STAMP.match(text)
                if stamp and all(word in text for word in words):
                    yield Line(_seconds(stamp[1]), text)

    def wait_for(self, *words: str) -> Line:
        """Wait for the first such line."""
        what = f"the kubelet says {' '.join(words)}"
        return self._cluster.wait_for(what, lambda: next(self.lines(*words), None)) or Line(0, "")


def _seconds(stamp: str) -> float:
    # a leap year, so that every day exists
    return datetime.strptime(f"2024{stamp}+0000", "%Y%m%d %H:%M:%S.%f%z").timestamp()
