"""A node without a driver, kept up for whoever writes one. Not here: checks."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import attrs

from accelkit.conformance.sims.api.files import port_of
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.dra.side import Cluster
from accelkit.conformance.sims.events import Event
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.scheduler.scheduler import SchedulerSim
from accelkit.conformance.stage import NODE, furnish

LOOK_S = 0.2
Tell = Callable[[str], object]


async def serve(directory: Path, release: str, tell: Tell) -> None:
    """Keep a kubelet, an API server and a scheduler up until cancelled.

    A kubeconfig that was written there keeps its port, so that a driver finds the server again.

    Args:
        directory: Stands for /var/lib/kubelet; CDI files are looked for in its ``cdi``.
        release: Of Kubernetes.
        tell: Told where everything is, then what happens.
    """
    config = directory / "kubeconfig"
    cluster = Cluster(
        api=ApiSim(release, port=port_of(config)), node=NODE, cdi=(directory / "cdi",)
    )
    kubelet = KubeletSim(directory, release=release, cluster=cluster)
    async with cluster.api as api, SchedulerSim(api), kubelet as sim:
        furnish(api, NODE, release)
        api.write_kubeconfig(config)
        tell(f"kubelet     {directory}")
        tell(f"kubeconfig  {config}")
        tell(f"CDI         {directory / 'cdi'}")
        tell(f"node        {NODE}")
        seen = 0
        while True:
            news = sim.log[seen:]
            seen += len(news)
            for event in news:
                tell(in_words(event))
            await asyncio.sleep(LOOK_S)


def in_words(event: Event) -> str:
    """What happened, in one line."""
    what = re.sub(r"(?<!^)(?=[A-Z])", " ", type(event).__name__).lower()
    fields = {f.name: getattr(event, f.name) for f in attrs.fields(type(event)) if f.repr}
    told = [f"{name}={value}" for name, value in fields.items() if name != "at" and value != ""]
    return " ".join((what, *told))
