"""Whatever the files say, nothing of the plugin breaks: it says what it could not know."""

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import pytest
from hypothesis import given, settings, strategies as st

from accelkit import AccessDenied, NotThere, PartitionError, Signal, SourceError
from accelkit.core.errors import AllocationError
from accelkit.core.reading import read_inventory
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.neuron import facts
from accelkit.vendors.neuron.vendor import Neuron, NeuronOptions
from tests.vendors.neuron.bench import CHIPS, Make, grant
from tests.vendors.opened import as_evidence

ROOTS = ("/sys/devices/virtual", "/sys/class/neuron_device", "/sys/module", "/opt", "/sys/devices")
KINDS = (
    b"",
    b"\n",
    b"\xff\xfe\x00",
    b"-1\n",
    b"99999999999999999999999999\n",
    b"0\n",
    b"9" * 70_000,
    "²\n".encode(),
    b"0x10\n",
    b"1, 2, 3, 4, 5, 6\n",
    b"NEURON_LOGICAL_NC_CONFIG=9\n",
)


class Faulty(MachineHost):
    """A machine some of whose files are not what they should be."""

    lies: dict[str, bytes | type[SourceError]] = {}  # noqa: RUF012 - set for each object

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        lie = self.lies.get(path)
        if lie is None:
            return super().read_bytes(path, limit)
        if isinstance(lie, bytes):
            return lie[:limit]
        raise lie(f"{path}: made to fail")

    def read(self, path: str, limit: int = 1 << 20) -> str:
        return self.read_bytes(path, limit).decode(errors="replace").removesuffix("\n")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("neuron", "trn2", 2, made, options={"ultraserver": "00000000000000a1"})
    set_state(made, ["hold", "neuron-0", "17"])
    return made


@pytest.fixture(scope="module")
def files(directory: str) -> list[str]:
    found = [
        str(path).removeprefix(directory)
        for root in ROOTS
        for path in sorted(Path(directory + root).rglob("*"))
        if path.is_file()
    ]
    return sorted({*found, facts.LNC_FILE})


def use_all_of(host: MachineHost, honest: MachineHost) -> None:
    """Call everything; only errors of sources may come out, and only plausible devices."""
    vendor = Neuron(NeuronOptions())
    report = read_inventory(vendor, host)
    assert {p.code for p in report.problems}.isdisjoint({"plugin-bug", "plugin-contract"})
    assert report.answered
    known = read_inventory(Neuron(NeuronOptions()), honest).devices
    answers: list[Callable[[], Iterable[object]]] = [
        partial(vendor.links, host, known),
        partial(vendor.groups, report.devices),
        partial(vendor.holders, host, known),
        partial(vendor.diagnose, host),
        partial(vendor.samples, host, known),
        *(partial(vendor.conditions, host, device, as_evidence("neuron", ())) for device in known),
    ]
    for answer in answers:
        with suppress(SourceError):
            list(answer())
    with suppress(SourceError, AllocationError):
        vendor.edits(host, grant(*known))
    with suppress(SourceError, PartitionError):
        vendor.set_mode(host, known[0], "lnc2")


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_content_of_any_files_is_only_an_error_of_the_source(
    directory: str, files: list[str], data: st.DataObject
) -> None:
    wrong = data.draw(st.sets(st.sampled_from(files), min_size=1, max_size=4))
    contents = st.one_of(
        st.sampled_from(KINDS),
        st.binary(max_size=40),
        st.sampled_from([NotThere, AccessDenied, SourceError]),
    )
    host = Faulty(directory)
    host.lies = {path: data.draw(contents) for path in sorted(wrong)}

    use_all_of(host, MachineHost(directory))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NotThere, AccessDenied, SourceError, *KINDS])
@pytest.mark.parametrize(
    "name", ["serial_number", "core_count", "connected_devices", "reset", "device_name", "version"]
)
def test_file_of_every_chip_may_be_anything(
    directory: str, files: list[str], name: str, kind: bytes | type[SourceError]
) -> None:
    host = Faulty(directory)
    host.lies = {path: kind for path in files if path.rpartition("/")[2] == name}

    use_all_of(host, MachineHost(directory))


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=200) | st.from_regex(r"NEURON_HW_ERR=.{0,80}", fullmatch=True))
def test_any_line_of_the_kernel_log_is_read(text: str) -> None:
    for event in Neuron(NeuronOptions()).interpret(Signal(source="kernel", text=text)):
        assert event.code
        assert all(len(value) <= 48 for value in event.data.values())


def test_folders_that_are_no_chips_are_passed_over(bench: Make) -> None:
    made = bench("inf2", 1)
    before = made.discover()
    for name in ("neuron", "neuron-1", "neuron01", "neuron9999", "neuron²", "power", "neuron1x"):
        made.put(f"{CHIPS}/{name}/info/serial_number", "00000000000000ff\n")
    made.put(f"{CHIPS}/uevent", "")

    assert made.discover() == before


def test_links_that_lead_in_circles_end_nothing(bench: Make) -> None:
    made = bench("inf2", 2)
    path = Path(made.directory + CHIPS, "neuron1/info/serial_number")
    path.unlink()
    path.symlink_to("serial_number")

    assert made.unreadable() == [("neuron1", "unreadable")]
    assert len(made.chips()) == 1


def test_chip_that_goes_while_it_is_looked_at_is_gone(bench: Make) -> None:
    class Vanishing(MachineHost):
        def read(self, path: str, limit: int = 1 << 20) -> str:
            if path.endswith("neuron1/info/serial_number"):
                shutil.rmtree(made.directory + CHIPS + "/neuron1", ignore_errors=True)
            return super().read(path, limit)

        def under(self, root: str) -> Self:
            raise AssertionError(root)

    made = bench("inf2", 2)
    made.host = Vanishing(made.directory)

    assert (len(made.chips()), made.unreadable()) == (1, [])


def test_files_in_place_of_folders_are_no_chips(bench: Make) -> None:
    made = bench("inf2", 1)
    shutil.rmtree(made.directory + CHIPS)
    Path(made.directory + CHIPS).write_bytes(os.urandom(64))

    assert made.unreadable() == [("0000:03:00.0", "driver-not-ready")]
    assert made.findings() != []
