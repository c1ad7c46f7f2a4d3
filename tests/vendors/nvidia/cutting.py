"""Cutting the one GPU of a bench."""

from accelkit import Device, Placement
from tests.vendors.nvidia.bench import Bench

MAKE = "nvmlDeviceCreateGpuInstanceWithPlacement"
COMPLETE = "nvmlGpuInstanceCreateComputeInstance"
UNMAKE = "nvmlGpuInstanceDestroy"
SMALL = Placement(profile="1g.10gb", start=2, size=1)
LARGE = Placement(profile="3g.40gb", start=4, size=4)


def whole(bench: Bench) -> Device:
    return next(d for d in bench.devices() if d.parent is None)


def parts(bench: Bench) -> list[Device]:
    return [d for d in bench.devices() if d.parent is not None]


def create(bench: Bench, placement: Placement) -> Device:
    return bench.vendor.create(bench.host, whole(bench), placement)


def destroy(bench: Bench, device: Device) -> None:
    bench.vendor.destroy(bench.host, device)
