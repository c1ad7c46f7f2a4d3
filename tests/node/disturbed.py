"""A node whose programs end at any time, the pods that come and go on it, and what must be left.

Not here: what ends when.
"""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tests.node.agents import Agents, NodeAgent
from tests.node.claims import DRA, DRIVER, claim, claim_config, config, described, request
from tests.node.cluster import Cluster
from tests.node.objects import Document
from tests.node.observer import Observer
from tests.node.processes import NodeError
from tests.node.releases import has
from tests.node.simulated import Gpus
from tests.node.traffic import Traffic, lost_claims

COUNT = 3
CUTS = has("DRAPartitionableDevices")
SHARED = 2
"""Minor number of the GPU that pods share."""
SHARES = 3 if has("DRAConsumableCapacity") else 1
SHARING: Document = {
    "shares": 3,
    "divide": "equal",
    "enforce": "library",
    "claimsMayAsk": ["timeslice"],
}
RUN = "run"
PROGRAMS = ("kubelet", "containerd", "kube-apiserver", "etcd")
"""What may end beside agents."""
EFFECTS = (
    "write entry",
    "rename entry",
    "nvmlDeviceSetMigMode",
    "nvmlDeviceCreateGpuInstance",
    "nvmlGpuInstanceCreateComputeInstance",
    "run nvidia-smi",
    "make scratch",
    "write cdi",
    "rename cdi",
    "remove cdi",
    "nvmlComputeInstanceDestroy",
    "nvmlGpuInstanceDestroy",
    "remove scratch",
    "remove entry",
)
"""How the names begin of all that an agent does for claims here."""
PATIENCE_S = 60.0
UNDONE_S = 180.0


def machine(cluster: Cluster) -> Gpus:
    """GPUs to be cut, and one to be shared by means of a library."""
    return Gpus(cluster, count=COUNT, options={"hamiCore": "/usr/local/vgpu"})


def make_templates(cluster: Cluster) -> Sequence[str]:
    """Make a template of claims for all that can be had; returns their names."""

    def of(offer: str, profile: str) -> str:
        return " && ".join(
            f'device.attributes["{DRIVER}"].{key} == "{value}"'
            for key, value in (("offer", offer), ("profile", profile))
        )

    small, large = of("all", "1g.10gb"), of("all", "3g.40gb")
    requests: dict[str, Sequence[Document]] = {
        "whole": [request(where=of("all", "whole"))],
        "small": [request(where=small)],
        "large": [request(where=large), request("more", where=small)],
        "share": [request(where=of("shared", "whole"))],
    }
    if not CUTS:
        del requests["small"], requests["large"]
    long = config(claim_config(sharing={"timeslice": "long"}))
    for name, several in requests.items():
        configs = [long] if name == "share" else []
        claim(cluster, name, *several, configs=configs, kind="ResourceClaimTemplate")
    return [*requests]


class Disturbed:
    """An agent and pods, and whatever ends under them.

    Args:
        cluster: The node.
        agents: Starts agents.
        gpus: Its machine.
        traffic: Goes on while something is waited for.
        observer: Of the node; reads the record of claims.
    """

    def __init__(
        self, cluster: Cluster, agents: Agents, gpus: Gpus, traffic: Traffic, observer: Observer
    ) -> None:
        self.cluster = cluster
        self.traffic = traffic
        self.lost: dict[str, None] = {}
        """What was missing of claims whose pods ran, a sentence each."""
        self._agents = agents
        self._gpus = gpus
        self._observer = observer
        self.agent = self.start()

    def start(self, before: str | None = None, number: int = 0) -> NodeAgent:
        """Start an agent; told an effect for claims, it ends before the one with that number."""
        whole = list(self._gpus.whole)
        crashing = ("-m", "tests.node.crashing_agent", f"--before={before}", f"--number={number}")
        self.agent = self._agents.start(
            self._gpus.folder,
            {**DRA, "name": "shared", "select": {"name": whole[SHARED]}, "sharing": SHARING},
            DRA,
            dra={},
            run=RUN,
            program=None if before is None else (sys.executable, *crashing),
            partitioning=[{"select": {"name": whole[:SHARED]}, "how": "dynamic"}],
        )
        return self.agent

    def step(self) -> None:
        """Let a pod come or go, and start again what has ended by itself.

        An API server ends if etcd is away when it starts, and so does a kubelet without containerd.
        """
        self.traffic.step()
        for program in PROGRAMS:
            self.cluster.start(program)

    def go_on(self, seconds: float) -> None:
        """Let pods come and go, and see that those that run have their claims."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()
        with suppress(NodeError, OSError):  # the API server is away
            self.lost.update(dict.fromkeys(lost_claims(self.cluster, self._observer.entries)))

    def kill(self, program: str) -> None:
        """Kill a program, and let it be started again."""
        self.cluster.processes.stop(program, signal.SIGKILL)
        self.cluster.start(program)

    def kill_agent(self) -> None:
        self.agent.end(signal.SIGKILL)
        self.start()

    def end_before(self, effect: str, number: int = 0) -> None:
        """Let an agent end before an effect for claims, and start the next one.

        Raises:
            NodeError: No agent came to it.
        """
        self.agent.end(signal.SIGKILL)
        begun = time.monotonic()
        agent = self.start(effect, number)
        while agent.runs:
            if time.monotonic() > begun + PATIENCE_S:
                raise NodeError(f"no agent came to {effect!r}; see {agent.log}")
            self.step()
        if f"ends before: {effect}" not in agent.log.read_text():
            raise NodeError(f"an agent ended by itself; see {agent.log}")
        self.start()

    def replace_agent(self) -> None:
        """Start the next agent beside the one that runs, which is told to end then."""
        older, newer = self.agent, self.start()
        while not newer.registered:
            self.step()
        older.tell(signal.SIGTERM)
        while older.runs:
            self.step()

    def wait_undone(self) -> None:
        """Wait until nothing is left on the node of claims that are gone.

        A kubelet that was killed looks for them once a minute.

        Raises:
            NodeError: Something stays; it names it.
        """

        def undone() -> bool:
            if left := list(self._left()):
                raise NodeError(f"left: {left}")
            return True

        self.cluster.wait_for("all undone", undone, UNDONE_S)

    def _left(self) -> Iterator[str]:
        for minor in range(COUNT):
            for part in self._gpus.parts(minor):
                yield f"GPU {minor} has a partition {part}"
            if self._gpus.time_slice(minor):
                yield f"GPU {minor} has a time slice"
        yield from (f"a CDI file: {name}" for name in described(self.cluster))
        for kind in ("claims/*.json", "claims/.*.tmp", "scratch/*", "quarantine/*"):
            for path in self.cluster.root.glob(f"{RUN}/*/{kind}"):
                yield f"in the run directory: {path.relative_to(self.cluster.root)}"
