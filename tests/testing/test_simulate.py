import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from accelkit.core.errors import ConfigError, PluginContractError, PluginError
from accelkit.core.model import VendorReport
from accelkit.core.policy_check import options_of
from accelkit.core.reading import read_inventory
from accelkit.testing.faults import Fault
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.machines import Part
from accelkit.testing.record import load
from accelkit.testing.shared import vendor_class
from accelkit.testing.simulate import play, set_faults, set_state, simulate

pytestmark = pytest.mark.usefixtures("toys")
MAKERS = (
    *(("nvidia", "h100"), ("amd", "mi300x"), ("intel", "arc-pro-b60"), ("gaudi", "gaudi2")),
    *(("neuron", "trn1"), ("tpu", "v5e"), ("generic", "widget")),
)


@attrs.define
class StillClock:
    """Time passes only while somebody sleeps."""

    time: float = 0.0

    def monotonic(self) -> float:
        return self.time

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def inventory(directory: str, vendor: str) -> VendorReport:
    kind = vendor_class(vendor)
    return read_inventory(kind(options_of(kind, {})), MachineHost(directory))


def files(directory: str) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in Path(directory).rglob("toy-*"))


def test_a_machine_is_a_tree_and_its_record(here: str) -> None:
    part = simulate("toy", None, 2, here, seed=3)

    assert part == Part(vendor="toy", product="ball", count=2, seed=3)
    assert json.loads(Path(here, "machine.json").read_text()) == {
        "format": "machine/1",
        "boot": load(here).boot,
        "parts": [{"vendor": "toy", "product": "ball", "count": 2, "seed": 3}],
        "nodes": {
            "/dev/toy-0": {"kind": "c", "major": 250, "minor": 0},
            "/dev/toy-1": {"kind": "c", "major": 250, "minor": 1},
        },
        "state": {},
        "faults": [],
    }
    assert Path(here, "sys/by-name/toy-1/size").read_text() == "7\n"
    assert Path(here, "sys/devices/system/node/node1/cpulist").read_text() == "8-15\n"


def test_a_used_directory_gets_a_further_part(here: str) -> None:
    simulate("toy", "doll", 2, here)
    part = simulate("sim", "basic", 3, here)

    assert part.first == 2
    assert load(here).parts == (Part(vendor="toy", product="doll", count=2), part)
    devices = Path(here, "proc/devices").read_text().splitlines()
    assert devices == ["Character devices:", "  1 mem", "250 toy", "240 sim"]


@pytest.mark.slow
@pytest.mark.parametrize("makers", [MAKERS, MAKERS[::-1]])
def test_machines_of_all_makers_stand_beside_each_other(
    here: str, makers: tuple[tuple[str, str], ...]
) -> None:
    """Cards of AMD and Intel had the same numbers, so that the two could not be on one node."""
    for vendor, product in makers:
        simulate(vendor, product, 2, here)
    first = 2 * makers.index(("intel", "arc-pro-b60"))
    for verb in ("mode CPX", f"vfs gpu-{first} 24", f"vfs gpu-{first + 1} 24"):
        set_state(here, verb.split())
    nodes = {
        node.on_host: device.id
        for vendor in ("amd", "intel")
        for device in inventory(here, vendor).devices
        for node in device.nodes
        if device.usable and node.path != "/dev/kfd"
    }

    assert len(nodes) == 2 * (16 + 48)


def test_two_parts_of_one_vendor_are_refused(here: str) -> None:
    simulate("toy", None, 1, here)

    with pytest.raises(ConfigError, match="has a part of toy already"):
        simulate("toy", None, 1, here)


@pytest.mark.parametrize(
    "vendor,product,count,text",
    [
        ("nobody", None, 1, "vendor nobody: is not installed"),
        ("plain", None, 1, "vendor plain: has no simulated machine"),
        ("toy", "car", 1, "product car: toy has none of that name"),
        ("toy", None, 0, "count: 0 is not from 1 to 256"),
        ("toy", None, 257, "count: 257 is not from 1 to 256"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    here: str, vendor: str, product: str | None, count: int, text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        simulate(vendor, product, count, here)

    assert str(caught.value) == text
    assert not Path(here).exists()


def test_a_vendor_whose_machine_is_missing_is_a_plugin_error(here: str) -> None:
    with pytest.raises(PluginError, match="toy_accel:NoSuchMachine cannot be loaded") as caught:
        simulate("torn", None, 1, here)
    assert caught.value.remedy.startswith("correct `machine` of the vendor torn: 'module:Class'")


@pytest.mark.parametrize(
    "vendor,text",
    [
        ("halfmade", "toy_accel:HalfMade is no class of Machine that has all its methods"),
        ("noclass", "toy_accel:hookimpl is no class of Machine that has all its methods"),
        ("bare", "toy_accel:BareMachine has no products"),
    ],
)
def test_what_is_no_machine_is_an_error_of_its_author(here: str, vendor: str, text: str) -> None:
    """It was a traceback, as of a bug of accelkit."""
    with pytest.raises(PluginError, match=text):
        simulate(vendor, None, 1, here)


def test_a_directory_with_other_things_is_left_alone(here: str) -> None:
    Path(here).mkdir()
    Path(here, "precious").write_text("")

    with pytest.raises(ConfigError, match="is neither empty nor a simulated machine"):
        simulate("toy", None, 1, here)

    assert [p.name for p in Path(here).iterdir()] == ["precious"]


def test_a_file_is_no_directory(here: str) -> None:
    Path(here).write_text("")

    with pytest.raises(ConfigError, match="cannot be used"):
        simulate("toy", None, 1, here)


def test_device_nodes_are_not_added_later(here: str) -> None:
    simulate("toy", None, 1, here)

    with pytest.raises(ConfigError, match="was made without device nodes"):
        simulate("sim", None, 1, here, device_nodes=True)


def test_a_verb_changes_the_state_and_the_tree(here: str) -> None:
    simulate("toy", None, 2, here)

    set_state(here, ["lose", "toy-1"])

    record = load(here)
    assert record.state == {"toy-1": {"lost": True}}
    assert list(record.nodes) == ["/dev/toy-0"]
    assert files(here) == ["dev/toy-0", "sys/by-name/toy-0", "sys/toys/toy-0"]


@pytest.mark.parametrize(
    "words,text,remedy",
    [
        (
            [],
            "verb: nothing here knows it",
            "write one of: bad; clash; kernel TEXT...; lose UNIT; reboot; uevent ACTION",
        ),
        (["dance"], "dance: nothing here knows it", "write one of: bad; clash"),
        (["lose"], "lose: names no unit; the units are toy-0, toy-1", "write: lose UNIT"),
        (["lose", "toy-7"], "lose: there is no toy-7; the units are", "write: lose UNIT"),
        (["bad"], "bad: is not handled", "write: bad"),
        (["reboot", "now"], "reboot: takes nothing, not now", ""),
        (["lose", "toy-1", "toy-0"], "lose: takes no toy-0 behind that", "write: lose UNIT"),
        (["lose", "9" * 5000], "lose: a number has at most 19 digits", "write: lose UNIT"),
        (["unload", "3"], "unload: takes no 3 behind that", "write: unload"),
    ],
)
def test_a_verb_that_cannot_be_changes_nothing(
    here: str, words: list[str], text: str, remedy: str
) -> None:
    simulate("toy", None, 2, here)
    before = load(here)

    with pytest.raises(ConfigError) as caught:
        set_state(here, words)

    assert str(caught.value).startswith(text)
    assert caught.value.remedy.startswith(remedy)
    assert load(here) == before


def test_a_tree_that_contradicts_itself_changes_nothing(here: str) -> None:
    simulate("toy", None, 1, here)
    before = load(here)

    with pytest.raises(PluginContractError, match="/proc/devices"):
        set_state(here, ["clash"])

    assert load(here) == before


def test_a_verb_that_two_parts_know_needs_a_name(here: str) -> None:
    simulate("toy", None, 1, here)
    simulate("sim", None, 1, here)

    with pytest.raises(ConfigError, match="unload: several parts know it: toy, sim"):
        set_state(here, ["unload"])

    set_state(here, ["unload", "toy"])
    set_state(here, ["lose", "accel-1"])
    assert load(here).state == {"toy": {"off": True}, "accel-1": {"lost": True}}


def test_parts_that_are_made_at_once_are_all_there(here: str) -> None:
    """Who came second found a directory that was not empty, and not yet a machine."""
    vendors = ("sim", "simset", "generic", "toy")

    with ThreadPoolExecutor(len(vendors)) as pool:
        parts = list(pool.map(lambda vendor: simulate(vendor, None, 2, here), vendors))

    assert sorted(part.vendor for part in load(here).parts) == sorted(vendors)
    assert sorted(part.first for part in parts) == [0, 2, 4, 6]


def test_verbs_need_a_machine(here: str) -> None:
    Path(here).mkdir()

    with pytest.raises(ConfigError, match="there is no simulated machine"):
        set_state(here, ["reboot"])

    assert list(Path(here).iterdir()) == []


def test_a_machine_that_cannot_be_locked_is_not_changed(here: str) -> None:
    simulate("toy", None, 1, here)
    Path(here, "machine.lock").unlink()
    Path(here, "machine.lock").mkdir()

    with pytest.raises(ConfigError, match="is no machine that can be changed"):
        set_state(here, ["reboot"])


def test_a_reboot_gives_a_new_boot_and_what_the_parts_keep(here: str) -> None:
    simulate("toy", None, 2, here)
    set_state(here, ["unload"])
    set_state(here, ["lose", "toy-0"])
    before = load(here)

    set_state(here, ["reboot"])

    after = load(here)
    assert after.boot != before.boot
    assert after.state == {"toy-0": {"lost": True}}
    assert Path(here, "proc/sys/kernel/random/boot_id").read_text() == f"{after.boot}\n"


async def test_timed_faults_happen_in_order(here: str) -> None:
    simulate("toy", None, 3, here)
    clock = StillClock()
    script = (
        Fault(at=9.0, do="lose toy-2"),
        Fault(at=2.0, do="lose toy-0"),
        Fault(call="toyCount", do="error 4"),
    )

    await play(here, script, clock)

    assert clock.time == 9.0
    assert sorted(load(here).state) == ["toy-0", "toy-2"]
    assert load(here).faults == (Fault(call="toyCount", do="error 4"),)


async def test_a_script_with_an_unknown_verb_is_refused_before_it_begins(here: str) -> None:
    simulate("toy", None, 1, here)
    script = (Fault(at=0.0, do="lose toy-0"), Fault(at=1.0, do="dance"))

    with pytest.raises(ConfigError, match="dance: nothing here knows it"):
        await play(here, script, StillClock())

    assert load(here).state == {}


def test_faults_of_calls_are_kept_in_the_record(here: str) -> None:
    simulate("toy", None, 1, here)

    set_faults(here, [Fault(read="/sys/*", do="hang 1s"), Fault(at=1.0, do="lose toy-0")])

    assert load(here).faults == (Fault(read="/sys/*", do="hang 1s"),)
