"""Simulated accelerators: for documentation, demonstrations and checks without hardware."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from accelkit.vendors.sim.vendor import Sim, SimSet  # noqa: PLC0415 - loaded when it is asked for

    return [Sim, SimSet]
