"""Intel Gaudi accelerators: OAM boards and PCIe cards behind the habanalabs driver."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from accelkit.vendors.gaudi.vendor import Gaudi  # noqa: PLC0415 - loaded when it is asked for

    return [Gaudi]
