"""Intel GPUs, of the drivers i915 and xe."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    return []
