"""The hooks that plugins implement, and the marker that they use."""

import pluggy

from accelkit.core.backend import BackendFactory
from accelkit.core.vendor import Vendor

GROUP = "accelkit"
"""Entry-point group, and pluggy's project name."""

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def accelkit_vendors() -> list[type[Vendor]]:  # type: ignore[empty-body]  # a specification
    """Vendor classes, not objects: another process must be able to name and build them."""


@hookspec
def accelkit_backends() -> list[BackendFactory]:  # type: ignore[empty-body]  # a specification
    """Backends that this plugin brings."""
