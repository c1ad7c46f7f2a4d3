"""A machine with devices of several makers, and what is known of them without asking an agent."""

import json
from collections.abc import Mapping
from pathlib import Path

from accelkit.testing.faults import Fault
from accelkit.testing.simulate import set_faults, simulate
from tests.node.cluster import Cluster
from tests.node.commands import accelkit
from tests.node.simulated import machine_folder

NVIDIA, AMD, TPU = "nvidia", "amd", "tpu"
RESOURCES: Mapping[str, str] = {NVIDIA: "nvidia.com/gpu", AMD: "amd.com/gpu", TPU: "google.com/tpu"}
DRIVERS: Mapping[str, str] = {maker: f"{maker}.accelkit.dev" for maker in RESOURCES}
PRODUCTS: Mapping[str, str] = {NVIDIA: "h100", AMD: "mi300x", TPU: "v5e"}
COUNT = 4
"""Devices of each maker."""
LIE = "run/lie"
"""In which words an agent of `tests.node.lying_agent` lies, below the machine's folder."""
OFTEN = 1_000_000


class Makers:
    """Devices of NVIDIA, AMD and Google in one machine."""

    def __init__(self, cluster: Cluster) -> None:
        self.folder = machine_folder(cluster)
        for maker, product in PRODUCTS.items():
            simulate(maker, product, COUNT, str(self.folder), device_nodes=True)
        printed = accelkit(cluster, "devices", f"--host={self.folder}", "--output=json")
        found = json.loads(printed.out)["items"]
        self.nodes: Mapping[str, str] = {
            str(one["id"]).partition("/")[2]: self._node(str(one["locality"]["pciAddress"]))
            for one in found
        }
        """The file below /dev that is a device's own, by the device's name."""

    def _node(self, address: str) -> str:
        """As the drivers themselves tell it."""
        function = self.folder / "sys/bus/pci/devices" / address
        nvidia = self.folder / f"proc/driver/nvidia/gpus/{address}/information"
        if nvidia.exists():
            lines = dict(line.partition(":")[::2] for line in nvidia.read_text().splitlines())
            return f"nvidia{lines['Device Minor'].strip()}"
        if (group := function / "iommu_group").is_symlink():
            return f"vfio/{Path(group.readlink()).name}"
        (render,) = (function / "drm").glob("renderD*")
        return f"dri/{render.name}"

    def fail(self, *faults: Fault) -> None:
        """Let the machine have these faults; none: it is as new."""
        set_faults(str(self.folder), faults)

    def lie(self, words: str) -> None:
        """What the agent shall lie; empty: nothing."""
        file = self.folder / LIE
        file.parent.mkdir(exist_ok=True)
        file.write_text(words)

    def mend(self) -> None:
        self.fail()
        self.lie("")


def own_nodes(cluster: Cluster, pod: str) -> tuple[set[str], dict[str, str]]:
    """Files below /dev that are devices' own, and the environment, as a pod's container sees it."""
    look = "cd /dev; ls -d nvidia[0-9]* dri/renderD* vfio/[0-9]* 2>/dev/null; echo =; env"
    files, _, rest = cluster.exec_in_pod(pod, "sh", "-c", look).partition("=\n")
    return set(files.split()), dict(line.partition("=")[::2] for line in rest.splitlines())


def others(maker: str) -> list[str]:
    return [name for name in RESOURCES if name != maker]
