"""Intel GPUs, of the drivers i915 and xe."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from accelkit.vendors.intel.vendor import Intel  # noqa: PLC0415 - loaded when it is asked for

    return [Intel]
