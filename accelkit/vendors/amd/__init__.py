"""AMD GPUs: Instinct and Radeon."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    return []
