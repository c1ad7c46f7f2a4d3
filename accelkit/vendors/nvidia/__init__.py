"""The NVIDIA vendor. Not here: the model, and how devices are offered."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from accelkit.vendors.nvidia.vendor import Nvidia  # noqa: PLC0415 - the simulator needs no vendor

    return [Nvidia]
