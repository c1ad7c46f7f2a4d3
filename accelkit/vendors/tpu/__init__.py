"""Google TPUs."""

from accelkit import Vendor, hookimpl
from accelkit.vendors.tpu.vendor import Tpu


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    return [Tpu]
