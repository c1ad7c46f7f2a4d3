"""accelkit plugin for accelerators of Acme."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from acme_accelkit.vendor import Acme  # noqa: PLC0415 - loaded when it is asked for

    return [Acme]
