"""The kubelet backend: its document, and its service while this instance leads.

Loads gRPC when it serves, not before. Not here: how one resource is served.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from accelkit.backends.kubelet.document import BACKEND, Document, catalog_of, document, fit
from accelkit.backends.kubelet.settings import Patience, Settings, Way
from accelkit.backends.kubelet.writer import Writer
from accelkit.backends.leading import while_leading
from accelkit.core.backend import BackendStatus, NodePort
from accelkit.core.policy import Policy
from accelkit.core.view import View


class KubeletBackend:
    """Lists devices as resources, and hands them out.

    Args:
        settings: Where the kubelet is, and how to make ourselves known.
    """

    name: ClassVar[str] = BACKEND

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._way = Way(settings.register)
        self._writer = Writer[Mapping[str, str]]()

    def render(self, view: View) -> Document:
        """The list of each resource, by name; what the kubelet cannot take is left out."""
        return document(fit(catalog_of(view), view))

    async def serve(self, node: NodePort) -> None:
        """Serve while this instance leads: there is one registrant of a name on a node.

        Raises:
            ExceptionGroup: Of what nobody foresaw.
        """
        from accelkit.backends.kubelet.serving import Term  # noqa: PLC0415 - loads gRPC

        while True:
            if not node.leading.now:
                node.report(BackendStatus(backend=BACKEND, detail="another instance leads"))
            await node.leading.wait()
            term = Term(node, self.settings, self._way, self._writer)
            await while_leading(node, term.run())


def create(policy: Policy, patience: Patience = Patience()) -> KubeletBackend:  # noqa: B008 - a frozen value
    """The backend that *policy* describes.

    Args:
        policy: Of the node.
        patience: How long things may take.
    """
    told = policy.backends.kubelet
    return KubeletBackend(
        Settings(
            plugins=Path(told.directory or f"{policy.paths.kubelet}/device-plugins"),
            registry=Path(policy.paths.plugins_registry),
            pod_resources=Path(policy.paths.pod_resources_socket),
            cdi=Path(policy.paths.cdi),
            register=told.register,
            patience=patience,
        )
    )
