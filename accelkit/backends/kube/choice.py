"""Which transport carries requests, and with which credentials. Not here: carrying them."""

import logging
import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from accelkit.backends.kube import IN_CLUSTER
from accelkit.backends.kube.access import Access, in_cluster
from accelkit.backends.kube.kubeconfig import read_kubeconfig, static_access
from accelkit.backends.kube.transport import Transport
from accelkit.core.errors import TransportError
from accelkit.core.policy import Kube, KubeClient

log = logging.getLogger(__name__)


def choose(kube: Kube, user_agent: str) -> Transport:
    """The transport that the policy names, or that suits where it runs.

    Raises:
        TransportError: There are no credentials, or the package is not installed.
    """
    agent = user_agent or f"accelkit/{version('accelkit')}"
    if _official(kube):
        from accelkit.backends.kube.official import Official  # noqa: PLC0415 - loads a lot

        return Official(kube.config, agent)
    from accelkit.backends.kube.lean import Lean  # noqa: PLC0415 - only if it is wanted

    return Lean(_access(kube.config), agent)


def _official(kube: Kube) -> bool:
    """Whether the `kubernetes` package is to be used.

    Raises:
        TransportError: It is wanted and not there.
    """
    installed = find_spec("kubernetes") is not None
    match kube.client:
        case KubeClient.LEAN:
            return False
        case KubeClient.OFFICIAL:
            if not installed:
                raise TransportError(
                    "kube.client is official, and the package kubernetes is not installed",
                    remedy="install accelkit[kubernetes], or set kube.client: lean",
                )
            return True
        case KubeClient.AUTO:
            if kube.config != IN_CLUSTER and not installed:
                log.warning(
                    "package kubernetes not installed, only static credentials are used",
                    extra={"kubeconfig": kube.config, "remedy": "install accelkit[kubernetes]"},
                )
            return installed and kube.config != IN_CLUSTER


def _access(config: str) -> Access:
    if config == IN_CLUSTER:
        return in_cluster(os.environ)
    return static_access(read_kubeconfig(Path(config)))
