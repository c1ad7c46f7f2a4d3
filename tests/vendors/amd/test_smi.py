from collections.abc import Callable
from typing import Any

import attrs
import pytest

from accelkit import FrozenMap, FunctionTable, LibraryMissing, Locality
from accelkit.core.host import Door, Host
from accelkit.vendors.amd import smi
from accelkit.vendors.amd.vendor import Amd
from tests.vendors.amd.bench import Bench, Make


class Smi:
    """A binding as AMD's is: functions that answer dictionaries, and raise anything."""

    def __init__(self, broken: str = "", function: int = 0) -> None:
        self.broken = broken
        self.function = function
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:  # type: ignore[explicit-any]  # of any signature
        def call(handle: int = 0) -> object:
            self.calls.append(name)
            if name == self.broken:
                raise RuntimeError(f"{name} does not work")
            answers = {
                "amdsmi_get_processor_handles": [3, 4],
                "amdsmi_get_gpu_device_bdf": f"0000:{handle:02X}:00.{self.function}",
                "amdsmi_get_gpu_asic_info": {
                    "market_name": "AMD Instinct MI300X VF",
                    "asic_serial": "N/A" if handle == 4 else "0x1F2E",
                },
            }
            return answers.get(name)

        return call


class WithSmi(Door):
    def __init__(self, host: Host, smi: Smi | None) -> None:
        super().__init__(host)
        self.smi = smi
        self.asked = 0

    def module(self, name: str) -> FunctionTable:
        self.asked += 1
        if self.smi is None:
            raise LibraryMissing(f"{name} is not there")
        return self.smi


def with_smi(made: Bench, smi: Smi | None) -> tuple[Bench, WithSmi]:
    door = WithSmi(made.host, smi)
    return Bench(made.directory, door, Amd(Amd.options())), door


def test_library_names_what_files_do_not(bench: Make) -> None:
    library = Smi()
    made, _ = with_smi(bench("mi300x", 2, {"guest": "vf"}), library)
    first, second = sorted(made.devices(), key=lambda d: d.locality.pci_address or "")

    assert first.attributes["productName"] == "AMD Instinct MI300X VF"
    assert first.attributes["serial"] == "0x1F2E"
    assert "serial" not in second.attributes
    assert library.calls[-1] == "amdsmi_shut_down"


def test_library_names_gpus_of_any_function(bench: Make) -> None:
    """Virtual functions are rarely function 0: those had no name."""
    made = bench("mi300x", 2, {"guest": "vf"})
    first = attrs.evolve(
        made.devices()[0], locality=Locality(pci_address="0000:03:00.2"), attributes=FrozenMap()
    )
    named = smi.enriched(first, smi.read_names(WithSmi(made.host, Smi(function=2))))

    assert named.attributes == {"productName": "AMD Instinct MI300X VF", "serial": "0x1F2E"}


def test_partition_has_what_the_library_says_but_not_the_serial_number(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 DPX", "hide gpu-0 product_name", "hide gpu-0 serial_number")
    made, _ = with_smi(made, Smi())

    assert "serial" in made.wholes()[0].attributes
    for part in made.parts():
        assert part.attributes["productName"] == "AMD Instinct MI300X VF"
        assert "serial" not in part.attributes


@pytest.mark.parametrize(
    "broken",
    [
        "amdsmi_init",
        "amdsmi_get_processor_handles",
        "amdsmi_get_gpu_device_bdf",
        "amdsmi_get_gpu_asic_info",
        "amdsmi_shut_down",
    ],
)
def test_library_that_fails_changes_nothing_else(bench: Make, broken: str) -> None:
    """Seen elsewhere: importing the binding ended the application."""
    plain = bench("mi300x", 2, {"guest": "vf"})
    made, _ = with_smi(plain, Smi(broken))

    assert [d.id for d in made.devices()] == [d.id for d in plain.devices()]


def test_library_is_asked_once_and_only_where_files_are_silent(bench: Make) -> None:
    told, unasked = with_smi(bench("mi300x", 1), None)
    silent, asked = with_smi(bench("rx7900", 1), None)
    for made in (told, silent):
        made.devices()
        made.devices()

    assert (unasked.asked, asked.asked) == (0, 1)


def test_library_never_decides_whether_there_is_a_gpu(bench: Make) -> None:
    made, _ = with_smi(bench("rx7900", 2), Smi())
    made.do("unsupport gpu-0")

    assert len(made.devices()) == 1
