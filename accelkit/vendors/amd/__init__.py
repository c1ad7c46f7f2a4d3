"""AMD GPUs: Instinct and Radeon. Not here: the model, and how devices are offered."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from accelkit.vendors.amd.vendor import Amd  # noqa: PLC0415 - the simulator needs no vendor

    return [Amd]
