"""Devices that the operator describes by rules, without code."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from accelkit.vendors.generic.vendor import Generic  # noqa: PLC0415 - loaded when asked for

    return [Generic]
