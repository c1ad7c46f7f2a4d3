"""Vendors of rules, and machines that rules describe."""

from collections.abc import Mapping
from pathlib import Path

from accelkit.core.allocation import Grant, Granted
from accelkit.core.host import Host, ReadOnly
from accelkit.core.model import Device
from accelkit.core.serde import from_tree
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.generic.options import GenericOptions
from accelkit.vendors.generic.vendor import Generic

STICK = {"usb": {"vendor": "0403"}}
PAIRED = {"path": "/dev/b*", "limit": 1}


def vendor_of(*rules: Mapping[str, object]) -> Generic:
    return Generic(from_tree(GenericOptions, {"devices": list(rules)}))


def machine(directory: Path, product: str, count: int) -> str:
    simulate("generic", product, count, str(directory / "machine"))
    return str(directory / "machine")


def opened(directory: str) -> Host:
    return ReadOnly(MachineHost(directory))


def devices(vendor: Generic, host: Host) -> list[Device]:
    return [found for found in vendor.discover(host) if isinstance(found, Device)]


def grant(*granted: Device) -> Grant:
    return Grant(owner="pod", granted=tuple(Granted(device=device) for device in granted))


def nodes_of(vendor: Generic, host: Host) -> dict[str, list[tuple[str, str]]]:
    """Nodes of each device: where a container and where the host has them."""
    return {d.id.name: [(n.path, n.on_host) for n in d.nodes] for d in devices(vendor, host)}
