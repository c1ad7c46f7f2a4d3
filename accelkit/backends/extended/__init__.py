"""Extended resources through DRA: device classes that map a resource name to devices."""

from accelkit.backends.extended.backend import check, create, wanted
from accelkit.core.backend import BackendFactory
from accelkit.core.hooks import hookimpl


@hookimpl
def accelkit_backends() -> list[BackendFactory]:
    """The one backend of this plugin; no offer goes through it, it goes with those through dra."""
    return [BackendFactory(name="extended", create=create, check=check, wanted=wanted)]
