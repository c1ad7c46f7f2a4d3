"""The DRA backend: what it publishes, and its service. Loads gRPC when it serves, not before.

Not here: how one driver is served, and what is in its pool.
"""

from pathlib import Path
from typing import ClassVar

from accelkit.backends.dra import document
from accelkit.backends.dra.document import Document
from accelkit.backends.dra.listing import BACKEND
from accelkit.backends.dra.node_settings import Patience, Settings
from accelkit.core.backend import NodePort
from accelkit.core.policy import DraPolicy, Policy
from accelkit.core.view import View


class DraBackend:
    """Publishes devices in slices, and prepares the claims that got them.

    Args:
        policy: What drivers are called.
        settings: Where the kubelet is, and what goes with claims.
    """

    name: ClassVar[str] = BACKEND

    def __init__(self, policy: DraPolicy, settings: Settings) -> None:
        self.policy = policy
        self.settings = settings

    def render(self, view: View) -> Document:
        """The pools of the node, for a server that keeps everything."""
        return document.render(view, self.policy)

    async def serve(self, node: NodePort) -> None:
        """Serve every driver, leading or not: the kubelet calls whichever registered last.

        Raises:
            ExceptionGroup: Of what nobody foresaw.
        """
        from accelkit.backends.dra.node_drivers import Drivers  # noqa: PLC0415 - loads gRPC

        await Drivers(node, self.policy, self.settings).run()


def create(policy: Policy, patience: Patience = Patience()) -> DraBackend:  # noqa: B008 - a frozen value
    """The backend that *policy* describes.

    Args:
        policy: Of the node.
        patience: How long things may take.
    """
    told = policy.backends.dra
    settings = Settings(
        registry=Path(policy.paths.plugins_registry),
        metadata=told.metadata,
        status_devices=told.status_devices,
        patience=patience,
    )
    return DraBackend(told, settings)
