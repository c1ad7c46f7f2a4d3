"""Machines on a node that show H100s, and what is known of them without asking an agent."""

from pathlib import Path
from tempfile import mkdtemp

from accelkit.testing.machines import Part
from accelkit.testing.simulate import simulate
from accelkit.vendors.nvidia.board import Board
from tests.node.cluster import Cluster

GPUS = 8
VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def machine_folder(cluster: Cluster) -> Path:
    """A new folder for a machine, where device nodes are device nodes."""
    return Path(mkdtemp(prefix="machine-", dir=cluster.root))


class Gpus:
    """Eight GPUs, of which 0 to 3 hang at one NUMA node and 4 to 7 at the other.

    An even one and the next share a PCIe switch. All of them are linked with each other alike.

    Args:
        seed: GPUs of machines with different ones are different GPUs.
    """

    halves = (frozenset(range(4)), frozenset(range(4, 8)))
    pairs = tuple(frozenset((first, first + 1)) for first in range(0, GPUS, 2))

    def __init__(self, cluster: Cluster, seed: int = 0) -> None:
        self.folder = machine_folder(cluster)
        folder = str(self.folder)
        part: Part = simulate("nvidia", "h100", GPUS, folder, seed=seed, device_nodes=True)
        self.uuids = Board(part).uuids
        """By minor number, as nobody has rebooted it."""

    def ids(self, minors: set[int] | frozenset[int]) -> set[str]:
        """What the kubelet calls these GPUs."""
        return {self.uuids[minor].lower() for minor in minors}
