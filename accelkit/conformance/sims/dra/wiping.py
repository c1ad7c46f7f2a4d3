"""The slices that a simulated kubelet removes. Not here: when.

Source:
    kubernetes v1.37.2, pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go (wipeResourceSlices).
"""

from collections.abc import Iterator

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.values import text
from accelkit.core.kube import SLICES


def wipe(api: ApiSim, node: str, driver: str = "") -> Iterator[str]:
    """Remove the slices of *node*, or those of one *driver*; yields their names."""
    for item in api.items(SLICES):
        mine = text(item, "spec", "nodeName") == node
        if mine and driver in {"", text(item, "spec", "driver")}:
            name = text(item, "metadata", "name")
            api.delete(SLICES, name)
            yield name
