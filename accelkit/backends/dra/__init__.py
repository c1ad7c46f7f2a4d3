"""Dynamic Resource Allocation: devices in slices, and the claims that got them."""

from accelkit.backends.dra.backend import check, create
from accelkit.backends.dra.listing import BACKEND
from accelkit.core.backend import BackendFactory
from accelkit.core.hooks import hookimpl


@hookimpl
def accelkit_backends() -> list[BackendFactory]:
    """The one backend of this plugin."""
    return [BackendFactory(name=BACKEND, create=create, check=check)]
