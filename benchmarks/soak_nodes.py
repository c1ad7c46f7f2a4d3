"""Real nodes for long runs, which go down with them. Not here: what happens on them."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.node.cluster import Cluster
from tests.node.programs import programs_folder, require_host


@contextmanager
def nodes(count: int) -> Iterator[list[Cluster]]:
    """So many nodes of one cluster; the first has the control plane."""
    require_host()
    signal.signal(signal.SIGTERM, _interrupt)  # so that they go down
    # tests take down what is called like this and was left
    root = Path(tempfile.gettempdir()) / f"akn-{os.getpid()}"
    with ExitStack() as end:
        up: list[Cluster] = []
        for name in ("", "second")[:count]:
            join = up[0] if up else None
            up.append(Cluster.up(root / name, programs_folder(), join=join))
            end.callback(up[-1].down, remove=True)
        yield up


def _interrupt(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(f"signal {number}")
