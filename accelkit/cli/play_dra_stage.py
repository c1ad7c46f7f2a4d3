"""What the play of claims needs: a simulated cluster of one node, and an agent as a process.

Not here: what happens on it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from accelkit.cli.play_stage import NODE, RELEASE, TIMING, Stage, place
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.values import parts, text
from accelkit.conformance.sims.dra.side import Cluster
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.scheduler.scheduler import SchedulerSim
from accelkit.core.kube import CLASSES, NODES, PODS, SLICES
from accelkit.testing.simulate import simulate

GPUS = 4
DRIVER = "nvidia.accelkit.dev"
NAMESPACE = "default"
HASTY = attrs.evolve(
    TIMING,
    prepare_again_s=0.5,
    unprepare_again_s=0.1,
    create_again_s=0.1,
    health_again_s=0.1,
)
"""A kubelet that tries again sooner than a real one."""

_POLICY = """\
apiVersion: accelkit.dev/v1
kind: NodePolicy
partitioning:
- select: {{pci: "*:03:*"}}       # the first GPU
  how: dynamic                  # is cut as claims ask
offers:
- name: parts                   # partitions that are made
  select: {{partition: true}}
  through: dra
- name: shared                  # the last GPU: memory as asked
  select: {{pci: "*:14:*"}}
  through: dra
  sharing: {{divide: requested}}
- name: whole                   # the others: nvidia.com/gpu
  select: {{not: {{pci: "*:03:*"}}}}
  through: dra
  extendedResource: nvidia.com/gpu
read: {{health: 1s}}
health: {{recoverAfter: 0s, flap: {{changes: 1000}}}}
paths:
  host: {root}/machine
  kubelet: {root}/kubelet
  cdi: {root}/cdi
  run: {root}/run
kube: {{client: lean, config: {root}/kubeconfig}}
http: {{listen: ""}}
logging: {{format: text}}
"""


class DraStage(Stage):
    """A stage with an API server.

    Args:
        root: A directory of its own.
        sim: Runs already, in the cluster of *api*.
        api: Runs already, with a scheduler beside it.
    """

    def __init__(self, root: Path, sim: KubeletSim, api: ApiSim) -> None:
        super().__init__(root, sim)
        self.api = api

    def has(self) -> str:
        """What is published, and the pods."""
        slices = self.api.raws(SLICES)
        devices = sum(len(parts(one, "spec", "devices")) for one in slices)
        pods = (
            f"{text(pod, 'metadata', 'name')} {text(pod, 'status', 'phase') or 'Pending'}"
            for pod in self.api.raws(PODS)
        )
        return " · ".join((f"slices: {devices} devices", *pods))


@asynccontextmanager
async def stage() -> AsyncIterator[DraStage]:
    """Make everything but the agent; at the end nothing of it is left, the agent included.

    Raises:
        ConfigError: There is no directory for it.
    """
    with place() as root:
        simulate("nvidia", "h100", GPUS, str(root / "machine"))
        (root / "policy.yaml").write_text(_POLICY.format(root=root))
        (root / "cdi").mkdir()
        async with ApiSim(RELEASE) as api:
            api.write_kubeconfig(root / "kubeconfig")
            api.create(NODES, {"metadata": {"name": NODE}})
            for offer in ("parts", "shared"):
                api.create(CLASSES, _class_of(offer))
            cluster = Cluster(api=api, node=NODE, cdi=(root / "cdi",))
            kubelet = KubeletSim(root / "kubelet", release=RELEASE, timing=HASTY, cluster=cluster)
            async with SchedulerSim(api), kubelet as sim:
                made = DraStage(root, sim, api)
                try:
                    yield made
                finally:
                    if made.pid is not None:
                        await made.stop_agent()


def _class_of(offer: str) -> dict[str, object]:
    """A class as an administrator writes it: the devices of one offer."""
    ours = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].offer == "{offer}"'
    selectors = [{"cel": {"expression": ours}}]
    return {"metadata": {"name": offer}, "spec": {"selectors": selectors}}
