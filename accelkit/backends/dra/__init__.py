"""Dynamic Resource Allocation: devices in slices, and the claims that got them."""

from accelkit.backends.dra.backend_policy import NAME, check
from accelkit.core.backend import Backend, BackendFactory
from accelkit.core.hooks import hookimpl
from accelkit.core.policy import Policy


@hookimpl
def accelkit_backends() -> list[BackendFactory]:
    """The one backend of this plugin."""
    return [BackendFactory(name=NAME, create=_create, check=check)]


def _create(policy: Policy) -> Backend[object]:
    from accelkit.backends.dra.backend import create  # noqa: PLC0415 - most policies need none

    return create(policy)
