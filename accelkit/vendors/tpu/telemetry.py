"""What files tell in numbers. Not here: what libtpu serves to whoever has the chips."""

from collections.abc import Iterable, Iterator

from accelkit import Device, FrozenMap, Host, Sample, SourceError
from accelkit.vendors.tpu.discovery import chip_of


def read_samples(host: Host, devices: Iterable[Device]) -> Iterator[Sample]:
    """The size of the memory, and errors on the PCIe links, of all functions of a chip together."""
    for device in devices:
        if (memory := device.capacity.get("memory")) is not None:
            yield Sample(device=device.id, metric="hw_memory_size_bytes", value=float(memory))
        for kind, total in _errors(host, device).items():
            yield Sample(
                device=device.id,
                metric="hw_errors_total",
                value=float(total),
                labels=FrozenMap({"type": f"pcie-{kind}"}),
            )


def _errors(host: Host, device: Device) -> dict[str, int]:
    found: dict[str, int] = {}
    try:
        functions = chip_of(host, device).functions
    except SourceError:
        return found
    for function in functions:
        for kind, total in function.errors().items():
            found[kind] = found.get(kind, 0) + total
    return found
