import json
from pathlib import Path

import pytest

from accelkit import LinkKind, Signal
from accelkit.agent.signals import matching
from accelkit.core.errors import ConfigError
from accelkit.core.model import Snapshot
from accelkit.core.policy_check import options_of
from accelkit.core.reading import read_inventory
from accelkit.core.vendor import ABILITIES, abilities
from accelkit.vendors.nvidia import accelkit_vendors
from accelkit.vendors.nvidia.products import PRODUCTS
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Make


def test_plugin_brings_the_vendor_with_its_abilities() -> None:
    assert accelkit_vendors() == [Nvidia]
    assert set(abilities(Nvidia)) == ABILITIES.keys() - {"groups"}


def test_driver_that_is_loaded_is_seen_in_the_files_that_are_watched(bench: Make) -> None:
    made = bench("h100", 2)
    files = Nvidia.signals.files
    loaded = matching(made.host, files)

    made.do("unload")

    assert loaded
    assert matching(made.host, files) == frozenset()


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_report_of_each_product_contradicts_nothing(bench: Make, product: str) -> None:
    made = bench(product, 8)
    report = read_inventory(made.vendor, made.host)

    assert report.answered
    assert report.problems == ()
    assert all(not device.conditions for device in report.devices)
    Snapshot(devices=report.devices, links=report.links)


def test_h100_board_is_one_fabric_of_eight_gpus(bench: Make) -> None:
    made = bench("h100", 8)
    report = read_inventory(made.vendor, made.host)

    assert sum(link.kind is LinkKind.FABRIC for link in report.links) == 28


def test_software_is_told_as_the_driver_spells_it(bench: Make) -> None:
    made = bench("l4", 1, machine={"driver": "575.51.03"})

    assert made.vendor.software(made.host) == {
        "driver": "575.51.03",
        "nvml": "13.575.51.03",
        "cuda": "13.0",
    }


def test_device_files_that_are_missing_are_a_condition(bench: Make) -> None:
    """Seen elsewhere: ready, although /dev/nvidia-uvm was missing."""
    made = bench("h100", 1)
    made.do("no-nodes")
    (device,) = read_inventory(made.vendor, made.host).devices

    assert [c.code for c in device.conditions] == ["node-missing"]
    assert "/dev/nvidia-uvm is not there" in device.conditions[0].message


def test_xid_in_the_kernel_log_is_an_event_of_that_gpu(bench: Make) -> None:
    vendor = bench("l4", 1).vendor
    line = "NVRM: Xid (PCI:0000:3B:00): 79, pid=1234, name=python, GPU has fallen off the bus."
    (event,) = vendor.interpret(Signal(source="kernel", text=line))

    assert (event.subject, event.code, event.source) == ("0000:3b:00.0", "xid-79", "kernel")
    assert list(vendor.interpret(Signal(source="kernel", text="NVRM: loading"))) == []


@pytest.mark.parametrize("instance", ["", " 7"])
def test_xid_of_a_simulated_gpu_is_in_the_kernel_log_too(bench: Make, instance: str) -> None:
    made = bench("h100", 1)
    (device,) = made.devices()
    made.do(f"xid gpu-0 94{instance}")
    record = json.loads(Path(made.directory, "machine.json").read_text(encoding="utf-8"))
    (line,) = record["kernel"]

    heard = made.vendor.interpret(Signal(source="kernel", text=line))

    assert [(e.subject, e.code) for e in heard] == [(device.locality.pci_address, "xid-94")]
    assert ("GPU-I:07" in line) is bool(instance)


def test_closing_twice_and_reading_again_is_fine(bench: Make) -> None:
    made = bench("h100", 1)
    before = made.discover()
    made.vendor.close()
    made.vendor.close()

    assert made.discover() == before


@pytest.mark.parametrize("key", ["driverRoot", "hamiCore", "mpsDirectory"])
@pytest.mark.parametrize("path", ["", "driver", "/opt/../driver", "/a\0b"])
def test_folder_that_cannot_be_on_the_host_is_refused_before_it_is_looked_for(
    key: str, path: str
) -> None:
    with pytest.raises(ConfigError, match=f"{key} must be an absolute path"):
        options_of(Nvidia, {key: path})


def test_driver_may_be_looked_for_where_it_usually_is() -> None:
    assert options_of(Nvidia, {"driverRoot": "auto"}) == NvidiaOptions()
