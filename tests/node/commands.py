"""The program `accelkit` as people run it on a node of tests. Not here: its agent."""

import subprocess
import sys
from pathlib import Path

from attrs import frozen

from tests.node.cluster import Cluster

ACCELKIT = Path(sys.executable).with_name("accelkit")


@frozen
class Said:
    """How a command ended."""

    status: int
    out: str
    errors: str


def accelkit(cluster: Cluster, *argv: str) -> Said:
    """Run a command with the administrator's kubeconfig, to its end."""
    done = subprocess.run(
        [ACCELKIT, *argv],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**cluster.processes.environment(), "KUBECONFIG": str(cluster.kubeconfig)},
    )
    return Said(done.returncode, done.stdout, done.stderr)
