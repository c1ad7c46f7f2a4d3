"""What GPUs measure, under standard names. Not here: who exports it."""

from collections.abc import Iterable, Iterator

from accelkit import Device, FrozenMap, Host, PciFunction, Sample, SourceError
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.card import optional
from accelkit.vendors.amd.health import read_errors
from accelkit.vendors.amd.kfd import NODES, read_topology
from accelkit.vendors.amd.sensors import read_clocks, read_power, read_temperatures, whole_number

_KINDS = {"ue": "uncorrected", "ce": "corrected", "de": "deferred"}
_CLOCKS = {"sclk": "compute", "mclk": "memory"}
_SENSORS = {"mem": "memory"}
_PERCENT = 100


def read_samples(host: Host, devices: Iterable[Device]) -> Iterator[Sample]:
    """Samples of every device that can be asked; what a file does not say is left out.

    In a GPU that is cut, the driver measures most for the whole; a partition has its memory.
    """
    several = tuple(devices)
    for device in several:
        if device.parent is None and device.locality.pci_address is not None:
            function = PciFunction(address=device.locality.pci_address, host=host)
            try:
                yield from [*_of_card(function, device)]
            except SourceError:  # of this GPU alone nothing is known
                continue
    parts = {_minor(d): d for d in several if d.parent is not None}
    if parts:
        yield from _of_parts(host, parts)


def _sample(device: Device, metric: str, value: float, **labels: str) -> Sample:
    return Sample(device=device.id, metric=metric, value=value, labels=FrozenMap(labels))


def _of_card(function: PciFunction, device: Device) -> Iterator[Sample]:
    if optional(function, "power/runtime_status") == "suspended":
        return
    yield from _use(function, device)
    for one in read_temperatures(function):
        place = _SENSORS.get(one.place, one.place)
        yield _sample(device, "hw_temperature_celsius", one.celsius, sensor=place)
    for metric, names in (
        ("hw_power_watts", ("power1_average", "power1_input")),
        ("hw_power_limit_watts", ("power1_cap",)),
    ):
        if (watts := read_power(function, names)) is not None:
            yield _sample(device, metric, watts)
    for clock, hertz in read_clocks(function):
        yield _sample(device, "hw_frequency_hertz", hertz, domain=_CLOCKS.get(clock, clock))
    yield from _errors(function, device)


def _use(function: PciFunction, device: Device) -> Iterator[Sample]:
    for task, name in (("general", "gpu_busy_percent"), ("memory", "mem_busy_percent")):
        if (busy := whole_number(function, name)) is not None and busy <= _PERCENT:
            yield _sample(device, "hw_gpu_utilization_ratio", busy / _PERCENT, task=task)
    for metric, name in (
        ("hw_memory_usage_bytes", "mem_info_vram_used"),
        ("hw_memory_size_bytes", "mem_info_vram_total"),
    ):
        if (amount := whole_number(function, name)) is not None:
            yield _sample(device, metric, amount)


def _errors(function: PciFunction, device: Device) -> Iterator[Sample]:
    errors: dict[str, int] = {}
    for kind, _, count in read_errors(function):
        errors[kind] = errors.get(kind, 0) + count
    for kind, count in sorted(errors.items()):
        yield _sample(device, "hw_errors_total", count, type=_KINDS[kind])
    if (replays := whole_number(function, "pcie_replay_count")) is not None:
        yield _sample(device, "hw_errors_total", replays, type="pcie-replay")


def _of_parts(host: Host, parts: dict[str, Device]) -> Iterator[Sample]:
    for node in read_topology(host).nodes:
        part = parts.get(f"renderD{node.render_minor}")
        if part is None:
            continue
        if "memory" in part.capacity:
            yield _sample(part, "hw_memory_size_bytes", part.capacity["memory"])
        try:
            used = host.read(f"{NODES}/{node.number}/mem_banks/0/used_memory").strip()
        except SourceError:
            continue
        if used.isascii() and used.isdecimal() and len(used) < 20:
            yield _sample(part, "hw_memory_usage_bytes", int(used))


def _minor(device: Device) -> str:
    names = (node.path.rpartition("/")[2] for node in device.nodes)
    return next((name for name in names if name.startswith("renderD")), facts.KFD_NODE)
