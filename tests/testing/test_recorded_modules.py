"""Python bindings are kept one level up, and answer again as they did."""

import ctypes
import enum
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from accelkit.core.errors import ConfigError, LibraryMissing
from accelkit.core.host import Door, Host, ReadOnly
from accelkit.core.policy_check import options_of
from accelkit.core.reading import read_inventory
from accelkit.core.real_host import RealHost
from accelkit.core.registry import load_plugins
from accelkit.core.tables import FunctionTable
from accelkit.core.vendor import Vendor
from accelkit.testing.captures.capturing import capture
from accelkit.testing.captures.layout import FORMAT, MODULES, NAME
from accelkit.testing.captures.modules import HANDLE, ReplayedError
from accelkit.testing.captures.recording import Keeper, RecordingHost
from accelkit.testing.captures.replaying import CaptureHost
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERIAL = "0x7A3C1E5598B2D4F0"


class State(enum.IntEnum):
    READY = 1


class ToyError(Exception):
    def get_error_code(self) -> int:
        return 31


class Toy:
    """A binding with handles, enumerations, bytes and errors."""

    State = State
    LIMIT = 8

    def __init__(self) -> None:
        self.asked = 0

    def handles(self) -> list[object]:
        # New objects for the same two things each time.
        return [ctypes.c_void_p(0x1000), ctypes.c_void_p(0x2000)]

    def opened(self) -> object:
        return self

    def about(self, handle: ctypes.c_void_p, *, deep: bool = False) -> dict[str, object]:
        self.asked += 1
        return {
            "asked": self.asked,
            "deep": deep,
            "state": State.READY,
            "raw": b"\x01",
            "name": (f"toy-{handle.value}", None),
        }

    def broken(self) -> None:
        raise ToyError("there is none")


class WithToy(Door):
    def module(self, name: str) -> FunctionTable:
        if name != "toy":
            raise LibraryMissing(f"{name} is not installed")
        return cast("FunctionTable", Toy())


@pytest.fixture
def door(tmp_path: Path) -> RecordingHost:
    (tmp_path / "root").mkdir()
    (tmp_path / "capture").mkdir()
    host = WithToy(RealHost(str(tmp_path / "root")))
    return RecordingHost(host, Keeper(tmp_path / "capture"))


def replayed(tmp_path: Path, door: RecordingHost) -> CaptureHost:
    told = {"format": FORMAT, "nodes": {}, "libraries": {}, "modules": door._keeper.modules}
    (tmp_path / "capture" / NAME).write_text(json.dumps(told))
    return CaptureHost(str(tmp_path / "capture"))


def test_binding_answers_what_it_answered(tmp_path: Path, door: RecordingHost) -> None:
    toy = door.module("toy")
    one, two = toy.handles()
    before = [toy.about(one), toy.about(two, deep=True), toy.about(toy.handles()[0]), toy.LIMIT]
    assert toy.State.READY == 1
    assert toy.opened() is not None

    again = replayed(tmp_path, door).module("toy")
    first, second = again.handles()
    after = [again.about(first), again.about(second, deep=True), again.about(first), again.LIMIT]

    assert json.loads(json.dumps(before, default=str)) == json.loads(json.dumps(after, default=str))
    assert again.about(first)["raw"] == b"\x01"
    assert again.about(first)["asked"] == 3
    assert first != second == again.handles()[1]
    with pytest.raises(AttributeError, match="no attribute 'State' in the capture"):
        _ = again.State


def test_errors_come_again_with_their_codes(tmp_path: Path, door: RecordingHost) -> None:
    toy = door.module("toy")
    with pytest.raises(ToyError):
        toy.broken()
    toy.handles()

    again = replayed(tmp_path, door).module("toy")

    with pytest.raises(ReplayedError, match="ToyError: there is none") as caught:
        again.broken()
    assert caught.value.get_error_code() == 31
    with pytest.raises(ReplayedError, match="the capture has no such call"):
        again.handles(7)


def test_binding_that_is_not_there_is_missing_again(tmp_path: Path, door: RecordingHost) -> None:
    with pytest.raises(LibraryMissing):
        door.module("other")
    host = replayed(tmp_path, door)

    with pytest.raises(LibraryMissing, match="other is not installed"):
        host.module("other")
    with pytest.raises(LibraryMissing, match="third is not in the capture"):
        host.module("third")


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"function": "f"}',
        '{"function": "f", "arguments": [], "error": "x"}',
        '{"function": "f", "arguments": [], "error": {"text": "x", "code": 1}, "result": 1}',
        '{"constant": "C", "value": []}',
    ],
)
def test_damaged_line_is_named(tmp_path: Path, door: RecordingHost, line: str) -> None:
    door.module("toy").handles()
    file = tmp_path / "capture" / MODULES / "toy.jsonl"
    file.write_text(f"{file.read_text()}{line}\n")

    with pytest.raises(ConfigError, match=r"toy.jsonl:2: it is damaged"):
        replayed(tmp_path, door)


class Smi:
    """amdsmi, as far as it is asked."""

    def amdsmi_init(self) -> None:
        pass

    def amdsmi_shut_down(self) -> None:
        pass

    def amdsmi_get_processor_handles(self) -> list[object]:
        return [ctypes.c_void_p(0x7F0000001000)]

    def amdsmi_get_gpu_device_bdf(self, handle: ctypes.c_void_p) -> str:
        assert handle.value == 0x7F0000001000
        return "0000:03:00.0"

    def amdsmi_get_gpu_asic_info(self, handle: ctypes.c_void_p) -> dict[str, object]:
        assert handle.value == 0x7F0000001000
        return {"market_name": "AMD Instinct MI300X VF", "asic_serial": SERIAL}


class WithSmi(Door):
    def module(self, name: str) -> FunctionTable:
        assert name == "amdsmi"
        return cast("FunctionTable", Smi())


def amd() -> Vendor:
    kind = load_plugins().vendors["amd"]
    return kind(options_of(kind, {}))


@pytest.mark.parametrize("mask", [False, True])
def test_names_that_only_the_binding_knows_are_in_the_capture(tmp_path: Path, mask: bool) -> None:
    simulate("amd", "mi300x", 1, str(tmp_path / "machine"), options={"guest": "vf"})
    host: Host = WithSmi(MachineHost(str(tmp_path / "machine")))
    (before,) = read_inventory(amd(), ReadOnly(host)).devices

    capture(host, [amd()], tmp_path / "capture", NOW, mask=mask)

    (after,) = read_inventory(amd(), ReadOnly(CaptureHost(str(tmp_path / "capture")))).devices
    assert after.attributes["productName"] == "AMD Instinct MI300X VF"
    assert (after.attributes["serial"] == before.attributes["serial"]) is not mask
    kept = (tmp_path / "capture" / MODULES / "amdsmi.jsonl").read_text()
    assert (SERIAL in kept) is not mask
    assert f'"{HANDLE}": 0' in kept
