"""What the driver's files measure, under the standard names. Not here: who writes it."""

from collections.abc import Iterable, Iterator

from accelkit import Device, FrozenMap, Host, Sample, SourceError
from accelkit.vendors.neuron import chips
from accelkit.vendors.neuron.counters import read_counter
from accelkit.vendors.neuron.health import find_chip

USED, SIZE, ERRORS = "hw_memory_usage_bytes", "hw_memory_size_bytes", "hw_errors_total"
_KINDS = {
    "sram_ecc_uncorrected": "sram-uncorrected",
    "mem_ecc_uncorrected": "memory-uncorrected",
    "mem_ecc_repairable_uncorrected": "memory-repairable",
}


def samples(host: Host, devices: Iterable[Device]) -> Iterator[Sample]:
    """Memory of chips and cores, and errors of chips; a chip that does not answer has none."""
    for device in devices:
        try:
            yield from [*_of_device(host, device)]
        except SourceError:  # health says what is wrong
            continue


def _of_device(host: Host, device: Device) -> Iterator[Sample]:
    there = chips.folder(find_chip(host, device))
    place = device.placement
    cores = range(device.slots) if place is None else place.slots
    used = [_used(host, there, core) for core in cores]
    known = [amount for amount in used if amount is not None]
    if known and len(known) == len(used):
        yield Sample(device=device.id, metric=USED, value=float(sum(known)))
    if "memory" in device.capacity:
        yield Sample(device=device.id, metric=SIZE, value=float(device.capacity["memory"]))
    if place is None:
        yield from _errors(host, there, device)


def _used(host: Host, there: str, core: int) -> int | None:
    """Bytes. The total is what is used now; what is present is the last change.

    Source:
        Neuron documentation, Neuron sysfs user guide.
    """
    return read_counter(host, f"{there}/neuron_core{core}/stats/memory_usage/device_mem")


def _errors(host: Host, there: str, device: Device) -> Iterator[Sample]:
    for name, kind in _KINDS.items():
        count = read_counter(host, f"{there}/stats/hardware/{name}")
        if count is not None:
            labels = FrozenMap({"type": kind})
            yield Sample(device=device.id, metric=ERRORS, value=float(count), labels=labels)
