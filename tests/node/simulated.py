"""Machines on a node that show H100s, and what is known of them without asking an agent."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

from accelkit.testing.machines import Part, State
from accelkit.testing.shared import Shared
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.nvidia import instances, states
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
        count: Fewer of them.
        options: Of the machine.
    """

    halves = (frozenset(range(4)), frozenset(range(4, 8)))
    pairs = tuple(frozenset((first, first + 1)) for first in range(0, GPUS, 2))

    def __init__(
        self,
        cluster: Cluster,
        seed: int = 0,
        count: int = GPUS,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = machine_folder(cluster)
        folder = str(self.folder)
        part: Part = simulate(
            "nvidia", "h100", count, folder, seed=seed, device_nodes=True, options=options
        )
        self.uuids = Board(part).uuids
        """By minor number, as nobody has rebooted it."""
        self.whole = tuple(uuid.lower() for uuid in self.uuids)
        """Names of the GPUs as devices, by minor number."""
        self._shared = Shared(folder)

    def ids(self, minors: set[int] | frozenset[int]) -> set[str]:
        """What the kubelet calls these GPUs."""
        return {self.whole[minor] for minor in minors}

    def let(self, *words: str) -> None:
        """Let one verb happen to the machine."""
        set_state(str(self.folder), words)

    def parts(self, minor: int = 0) -> list[tuple[str, int]]:
        """Profile and first slot of each GPU instance that there is on a GPU."""
        found = instances.instances(self._state, f"gpu-{minor}")
        return sorted((one["profile"], one["start"]) for one in found if one["until"] is None)

    def cut(self, minor: int = 0) -> bool:
        """Whether a GPU is in MIG mode."""
        return states.mig(self._state, f"gpu-{minor}")

    def part_nodes(self) -> frozenset[int]:
        """Minor numbers of the nodes of partitions, as the driver shows them now."""
        names = (path.name for path in (self.folder / "dev" / "nvidia-caps").glob("nvidia-cap*"))
        return frozenset(int(name.removeprefix("nvidia-cap")) for name in names)

    def time_slice(self, minor: int) -> int:
        """The time slice of a GPU as its driver numbers it; 0: its own."""
        return states.number(states.of(self._state, f"gpu-{minor}"), "timeslice")

    @property
    def _state(self) -> State:
        return self._shared.record().state
