"""USB devices that are not as they should be."""

from pathlib import Path

import pytest

from accelkit import Device, Host, SourceError
from accelkit.core.host import READ_LIMIT, Door
from tests.vendors.generic.rules import STICK, devices, machine, opened, vendor_of

USB = "sys/bus/usb/devices"
RULE = {"name": "stick", "match": STICK}


def names(found: list[Device]) -> list[str]:
    return [device.id.name for device in found]


@pytest.mark.parametrize("serial", [b"???", "\u65e5\u672c".encode(), b"\xff\xfe", b"\x01", b"  "])
def test_serial_number_that_is_no_name_costs_no_device(tmp_path: Path, serial: bytes) -> None:
    directory = machine(tmp_path, "stick", 3)
    Path(directory, USB, "1-1/serial").write_bytes(serial)

    assert names(devices(vendor_of(RULE), opened(directory))) == ["1-1", "1-2", "f000002"]


class Leaving(Door):
    """A USB device that is being unplugged: its files are listed, and answer no more."""

    def __init__(self, host: Host, port: str) -> None:
        super().__init__(host)
        self._port = port

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        if f"/{self._port}/" in path:
            raise SourceError(f"{path}: cannot read it: No such device")
        return super().read(path, limit)


def test_device_that_is_being_unplugged_takes_no_other_with_it(tmp_path: Path) -> None:
    host = Leaving(opened(machine(tmp_path, "stick", 3)), "1-1")

    assert names(devices(vendor_of(RULE), host)) == ["1-2", "f000002"]


def test_device_keeps_its_name_when_another_one_with_its_serial_number_comes(
    tmp_path: Path,
) -> None:
    """Somebody may use it: under another name it would be had a second time."""
    directory = machine(tmp_path, "stick", 3)
    host, vendor = opened(directory), vendor_of(RULE)
    before = devices(vendor, host)
    Path(directory, USB, "1-2/serial").write_text("F000000\n")

    assert names(before) == ["f000000", "1-2", "f000002"]
    assert names(devices(vendor, host)) == ["f000000", "1-2", "f000002"]
    # Whoever sees them together for the first time cannot tell which was first.
    assert names(devices(vendor_of(RULE), host)) == ["1-1", "1-2", "f000002"]


def test_name_follows_a_device_to_another_port_and_is_not_left_behind(tmp_path: Path) -> None:
    directory = machine(tmp_path, "stick", 3)
    host, vendor = opened(directory), vendor_of(RULE)
    first, second = (Path(directory, USB, f"1-{port}/serial") for port in (1, 2))
    devices(vendor, host)
    first.unlink()
    second.write_text("F000000\n")
    moved = names(devices(vendor, host))
    first.write_text("F000000\n")

    assert moved == ["1-1", "f000000", "f000002"]
    assert names(devices(vendor, host)) == moved
