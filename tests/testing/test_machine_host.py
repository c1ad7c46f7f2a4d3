import signal
import subprocess
import sys
import threading
from ctypes import byref, c_uint, pointer
from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError, LibraryMissing, NotThere, SourceError
from accelkit.core.host import Finished, ReadOnly, Stat
from accelkit.testing.faults import Fault
from accelkit.testing.hosts import open_host
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.record import load
from accelkit.testing.simulate import set_faults, set_state, simulate

PLUGINS = Path(__file__).parent / "plugins"
pytestmark = pytest.mark.usefixtures("toys")


@pytest.fixture
def host(here: str) -> MachineHost:
    simulate("toy", None, 3, here)
    return MachineHost(here)


def count(host: MachineHost, function: str = "toyCount") -> tuple[int, int]:
    """The answer of a library function, and the number that it wrote."""
    number = c_uint()
    answer = getattr(host.library("libtoy.so.1"), function)(byref(number))
    return answer, number.value


def test_files_are_those_of_the_directory(host: MachineHost) -> None:
    assert host.read("/sys/by-name/toy-1/size") == "7"
    assert host.read_bytes("/sys/toys/toy-1/config") == b"\xff\x00"
    assert host.names("/sys/toys") == ("toy-0", "toy-1", "toy-2")
    assert host.resolve("/sys/by-name/toy-1") == "/sys/toys/toy-1"
    assert host.exists("/dev/toy-0")
    assert not host.exists("/etc/passwd")
    assert not host.live


def test_the_boot_id_is_the_machine_s_own(host: MachineHost, here: str) -> None:
    assert host.read("/proc/sys/kernel/random/boot_id") == load(here).boot


def test_device_nodes_have_the_numbers_of_the_record(host: MachineHost) -> None:
    assert host.stat("/dev/toy-2") == Stat(kind="c", major=250, minor=2, mode=0o666)
    assert host.stat("/sys/toys/toy-0/size") == Stat(kind="f", mode=0o644)
    assert host.stat("/dev/toy-9") is None


def test_containers_find_a_node_below_the_directory(host: MachineHost, here: str) -> None:
    assert host.outside("/dev/toy-0") == f"{here}/dev/toy-0"


def test_what_happens_to_the_machine_is_seen_at_once(host: MachineHost, here: str) -> None:
    assert count(host) == (0, 3)

    set_state(here, ["lose", "toy-1"])

    assert count(host) == (0, 2)
    assert host.names("/sys/toys") == ("toy-0", "toy-2")
    assert host.stat("/dev/toy-1") is None


def test_a_library_function_changes_the_machine_for_all(host: MachineHost, here: str) -> None:
    other = MachineHost(here)

    assert host.library("libtoy.so.1").toyLose(c_uint(0)) == 0

    assert count(other) == (0, 2)
    assert load(here).state == {"toy-0": {"lost": True}}


def test_a_library_keeps_what_its_process_did(host: MachineHost, here: str) -> None:
    count(host)
    count(host)

    assert count(host, "toyCalls") == (0, 2)
    assert count(MachineHost(here), "toyCalls") == (0, 0)


def test_pointers_are_written_like_references(host: MachineHost) -> None:
    number = c_uint()

    host.library("libtoy.so.1").toyCount(pointer(number))

    assert number.value == 3


def test_a_symbol_that_is_missing_is_an_attribute_error(host: MachineHost) -> None:
    table = host.library("libtoy.so.1")

    with pytest.raises(AttributeError, match=r"libtoy\.so\.1: undefined symbol: toySing"):
        table.toySing  # noqa: B018 - looking it up is the point


def test_a_library_that_is_not_loaded_is_missing(host: MachineHost, here: str) -> None:
    host.library("libtoy.so.1")
    set_state(here, ["unload"])

    with pytest.raises(LibraryMissing, match="nobody wound it up"):
        host.library("libtoy.so.1")


def test_libraries_and_modules_that_no_part_brings_are_missing(host: MachineHost) -> None:
    with pytest.raises(LibraryMissing, match="no part of the simulated machine brings it"):
        host.library("libc.so.6")
    with pytest.raises(LibraryMissing, match="brings no Python modules"):
        host.module("json")


def test_programs_are_answered_by_the_parts(host: MachineHost) -> None:
    assert host.run(["/usr/bin/toy", "-x"], 5) == Finished(code=0, out="/usr/bin/toy -x", err="")
    with pytest.raises(NotThere, match="/bin/sh: the simulated machine has no such program"):
        host.run(["/bin/sh"], 5)
    with pytest.raises(SourceError, match="does not know request 0xc0"):
        host.ioctl("/dev/toy-0", 0xC0, b"1234")


def test_a_host_below_another_root_is_the_same_machine(host: MachineHost, here: str) -> None:
    below = host.under("/sys")

    assert below.read("/by-name/toy-0/size") == "7"
    assert below.outside("/toys") == f"{here}/sys/toys"
    assert host.under("/dev").stat("/toy-1") == host.stat("/dev/toy-1")
    assert below.library("libtoy.so.1") is host.library("libtoy.so.1")


def test_writes_reach_the_files(host: MachineHost) -> None:
    host.write("/sys/toys/toy-0/size", "9\n")

    assert host.read("/sys/toys/toy-0/size") == "9"


def test_a_call_fails_from_the_nth_time_on_for_some_times(host: MachineHost, here: str) -> None:
    set_faults(here, [Fault(call="toyCount", first=2, times=2, do="error 15")])

    assert [count(host)[0] for _ in range(5)] == [0, 15, 15, 0, 0]


def test_a_verb_as_fault_happens_before_the_call(host: MachineHost, here: str) -> None:
    set_faults(here, [Fault(call="toyCount", do="lose toy-0")])

    assert count(host) == (0, 2)


def test_a_file_cannot_be_read_as_often_as_the_fault_says(host: MachineHost, here: str) -> None:
    set_faults(here, [Fault(read="/sys/*/size", times=2, do="error EIO")])
    path = "/sys/toys/toy-0/size"

    with pytest.raises(SourceError, match="EIO"):
        host.read(path)
    with pytest.raises(SourceError, match="EIO"):
        host.under("/sys").read_bytes("/toys/toy-0/size")
    assert host.read(path) == "7"


def test_a_call_hangs_as_long_as_the_fault_says(host: MachineHost, here: str) -> None:
    set_faults(here, [Fault(call="toyCount", do="hang 300ms")])
    returned: list[str] = []

    def call() -> None:
        count(host)
        returned.append("hung")

    thread = threading.Thread(target=call)
    thread.start()
    count(host, "toyCalls")
    returned.append("other")
    thread.join()

    assert returned == ["other", "hung"]


def test_a_crash_ends_the_process_that_calls(host: MachineHost, here: str) -> None:
    set_faults(here, [Fault(call="toyCount", do="crash")])
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from accelkit.testing.machine_host import MachineHost\n"
        "def call():\n"
        "    MachineHost(sys.argv[2]).library('libtoy.so.1').toyCount()\n"
        "    print('returned', flush=True)\n"
        "import faulthandler, threading\n"
        "faulthandler.enable()\n"
        "thread = threading.Thread(target=call)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    words = [sys.executable, "-c", program, str(PLUGINS), here]

    ended = subprocess.run(words, capture_output=True, check=False)

    assert (ended.returncode, ended.stdout) == (-signal.SIGSEGV, b"")
    assert host.names("/sys/toys") == ("toy-0", "toy-1", "toy-2")


def test_many_threads_change_one_machine_without_loss(host: MachineHost, here: str) -> None:
    hosts = [MachineHost(here) for _ in range(3)]
    threads = [
        threading.Thread(target=h.library("libtoy.so.1").toyLose, args=(c_uint(i),))
        for i, h in enumerate(hosts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(load(here).state) == ["toy-0", "toy-1", "toy-2"]
    assert host.names("/sys/toys") == ()


def test_read_calls_may_not_write_to_a_machine(here: str, host: MachineHost) -> None:
    del host
    with pytest.raises(SourceError, match="may not write"):
        ReadOnly(open_host(here)).write("/sys/toys/toy-0/size", "9")

    assert Path(here, "sys/toys/toy-0/size").read_text() == "7\n"


def test_a_machine_of_files_alone_brings_nothing_else(tmp_path: Path) -> None:
    directory = str(tmp_path / "machine")
    simulate("generic", "widget", 1, directory)
    host = MachineHost(directory)

    with pytest.raises(LibraryMissing):
        host.library("libtoy.so.1")
    with pytest.raises(NotThere):
        host.run(["/usr/bin/toy"], 5)
    before = load(directory)
    set_state(directory, ["lose", "widget-0"])
    set_state(directory, ["reboot"])
    assert load(directory).boot != before.boot
    assert host.names("/dev") == ("widget0",)


def test_a_record_that_vanishes_is_said(host: MachineHost, here: str) -> None:
    Path(here, "machine.json").unlink()

    with pytest.raises(ConfigError, match="there is no simulated machine"):
        host.read("/proc/devices")
