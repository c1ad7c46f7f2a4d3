"""The kubelet's device plugin interface: devices as counted resources, through sockets."""

from accelkit.backends.kubelet.backend import create
from accelkit.backends.kubelet.document import BACKEND
from accelkit.core.backend import BackendFactory
from accelkit.core.hooks import hookimpl


@hookimpl
def accelkit_backends() -> list[BackendFactory]:
    """The one backend of this plugin."""
    return [BackendFactory(name=BACKEND, create=create)]
