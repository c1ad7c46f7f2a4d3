"""What vendors read is kept, and read again elsewhere with the same answers."""

import ctypes
import json
import os
import re
import resource
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from accelkit.conformance.intree import IN_TREE, subject_of
from accelkit.core.errors import AccessDenied, ConfigError, LibraryMissing, NotThere, SourceError
from accelkit.core.host import Door, Finished, Host, ReadOnly, Stat
from accelkit.core.model import Device, Unreadable
from accelkit.core.reading import read_conditions, read_inventory
from accelkit.core.real_host import RealHost
from accelkit.core.registry import load_plugins
from accelkit.core.tables import FunctionTable
from accelkit.core.vendor import NoOptions, Vendor
from accelkit.testing.captures.capturing import capture
from accelkit.testing.captures.layout import COMMANDS, FILES, FORMAT, LOG, NAME, TAPE
from accelkit.testing.captures.masking import mask_folder
from accelkit.testing.captures.recording import Keeper, RecordingHost
from accelkit.testing.captures.replaying import CaptureHost
from accelkit.testing.hosts import open_host
from accelkit.testing.machine_host import MachineHost, Table
from accelkit.testing.machines import pointee
from accelkit.testing.shared import machine_class
from accelkit.testing.simulate import set_state, simulate
from tests.golden_files import Golden, golden_in
from tests.testing.documents import told
from tests.testing.watching import asked

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VENDORS = [name for name in IN_TREE if load_plugins().vendors[name].machine is not None]
PRODUCTS = [(name, product) for name in VENDORS for product in machine_class(name).products]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the file of a name below tests/golden."""
    return golden_in(Path(__file__).parents[1] / "golden", request)


def made(name: str) -> Vendor:
    return subject_of(name).make()


def seen(name: str, host: Host) -> object:
    """Everything that a fresh plugin tells of *host*, but for how its processes are."""
    vendor, door = made(name), ReadOnly(host)
    report = read_inventory(vendor, door)
    return report, read_conditions(vendor, door, report.devices, ())


def recorded(tmp_path: Path, host: Host) -> RecordingHost:
    (tmp_path / "capture").mkdir()
    return RecordingHost(host, Keeper(tmp_path / "capture"))


def replayed(tmp_path: Path, door: RecordingHost) -> CaptureHost:
    keeper = door._keeper
    told = {"format": FORMAT, "nodes": keeper.nodes, "libraries": keeper.libraries}
    (tmp_path / "capture" / NAME).write_text(json.dumps(told))
    return CaptureHost(str(tmp_path / "capture"))


@pytest.mark.slow
@pytest.mark.parametrize("name, product", PRODUCTS)
def test_capture_of_a_machine_says_what_the_machine_says(
    tmp_path: Path, golden: Golden, name: str, product: str
) -> None:
    """And Kubernetes is told what was looked at when the golden documents were written."""
    simulate(name, product, 4, str(tmp_path / "machine"))
    machine = MachineHost(str(tmp_path / "machine"))
    before = seen(name, machine)

    found = capture(machine, [made(name)], tmp_path / "capture", NOW, mask=False)

    assert found.devices >= 4

    assert seen(name, open_host(str(tmp_path / "capture"))) == before
    kept, there = (
        asked(name, host)[1] for host in (CaptureHost(str(tmp_path / "capture")), machine)
    )
    assert kept - there == set()
    whole = product == machine_class(name).products[0]
    options = subject_of(name).options
    text = told(tmp_path / "capture", tmp_path, whole=whole, vendor=name, options=options)
    golden(f"{name}/{product}.{'yaml' if whole else 'txt'}", text)


def test_masked_capture_has_as_many_devices_and_no_name_of_theirs(tmp_path: Path) -> None:
    simulate("nvidia", "h100", 2, str(tmp_path / "machine"))
    for words in (["mig", "gpu-0", "on"], ["create-mig", "gpu-0", "1g.10gb", "0"]):
        set_state(str(tmp_path / "machine"), words)
    vendor = made("nvidia")
    machine = MachineHost(str(tmp_path / "machine"))
    devices = read_inventory(vendor, ReadOnly(machine)).devices

    found = capture(machine, [vendor], tmp_path / "capture", NOW, mask=True)

    again = read_inventory(made("nvidia"), ReadOnly(CaptureHost(str(tmp_path / "capture"))))
    assert (found.devices, found.problems, again.problems) == (len(devices), (), ())
    assert [d.product for d in again.devices] == [d.product for d in devices]
    assert {d.id for d in again.devices}.isdisjoint(d.id for d in devices)
    secrets = {
        str(device.attributes[key]).removeprefix("GPU-")
        for device in devices
        for key in ("uuid", "serial")
        if device.parent is None
    }
    for secret in secrets:
        assert not holds(tmp_path / "capture", secret.encode())


def holds(folder: Path, word: bytes) -> bool:
    """Whether *word* is anywhere, as text or as bytes of a library's answer."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return any(word in p.read_bytes() or word.hex().encode() in p.read_bytes() for p in files)


def test_numbers_that_files_spell_otherwise_are_masked_alike(tmp_path: Path) -> None:
    simulate("amd", "mi300x", 2, str(tmp_path / "machine"))
    machine, vendor = MachineHost(str(tmp_path / "machine")), made("amd")
    names = {d.id.name.removeprefix("gpu-") for d in read_inventory(vendor, machine).devices}

    capture(machine, [vendor], tmp_path / "capture", NOW, mask=True)

    again = read_inventory(made("amd"), ReadOnly(CaptureHost(str(tmp_path / "capture"))))
    assert len(again.devices) == len(names)
    for name in names:
        assert not holds(tmp_path / "capture", name.encode())
        assert not holds(tmp_path / "capture", str(int(name, 16)).encode())


def test_names_of_hosts_and_owners_are_masked_alike(tmp_path: Path) -> None:
    """What programs and the environment of a cloud say; addresses and versions stay."""
    files = tmp_path / "files"
    (files / "home/alice7").mkdir(parents=True)
    (files / "home/alice7/notes").write_text("read by /home/alice7/tool 1.22.0-ee698fb")
    env = "NODE_ID: 't1v-n-4f2b'\nPROJECT_ID: \"shop-31\"\nTYPE: 'V5E'\n"
    (files / "tpu-env").write_text(f"{env}WORKER_NETWORK_ENDPOINTS: 'a:b:10.128.0.7'\n")
    said = {"instance_id": "i-08dc867eb640aad0d", "bdf": "0000:33:00.0", "mac": "0c:c4:7a:1b:2c:3d"}
    line = {"argv": ["/bin/ls", "-j"], "code": 0, "out": json.dumps([said]), "err": ""}
    (tmp_path / COMMANDS).write_text(json.dumps(line) + "\n")
    (tmp_path / LOG).write_text("6,1,1,-;rack-7 saw i-08dc867eb640aad0d, serial AB12CD34: gone")

    mask_folder(tmp_path, [], "rack-7")

    left = "\n".join([*(p.read_text() for p in tmp_path.rglob("*") if p.is_file())])
    left += "".join(map(str, tmp_path.rglob("*")))
    secrets = ["alice7", "4f2b", "shop-31", "10.128", "08dc867", "0c:c4", "rack-7", "AB12CD34"]
    assert [word for word in secrets if word in left] == []
    for kept in ("0000:33:00.0", "1.22.0-ee698fb", "TYPE: 'V5E'", "/home/", "instance_id"):
        assert kept in left
    (instance,) = re.findall(r" saw (\S+),", left)
    assert instance in (tmp_path / COMMANDS).read_text()
    (home,) = (files / "home").iterdir()
    assert f"/home/{home.name}/tool" in (home / "notes").read_text()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small host."""
    root = tmp_path / "root"
    (root / "sys/real").mkdir(parents=True)
    (root / "sys/real/text").write_bytes(b"one\xff\n")
    (root / "sys/real/other").write_text("two")
    (root / "sys/link").symlink_to("/sys/real")
    (root / "sys/dead").symlink_to("nowhere")
    return root


def test_files_are_as_they_were_whichever_way_they_are_reached(tmp_path: Path, root: Path) -> None:
    door = recorded(tmp_path, RealHost(str(root)))
    before = (
        door.read("/sys/link/text"),
        door.names("/sys/real"),
        door.names("/sys/none"),
        door.resolve("/sys/link/text"),
        door.exists("/sys/dead"),
        door.exists("/nothing"),
    )
    door.names("/sys")

    host = replayed(tmp_path, door)

    assert before == (
        host.read("/sys/link/text"),
        host.names("/sys/real"),
        host.names("/sys/none"),
        host.resolve("/sys/link/text"),
        host.exists("/sys/dead"),
        host.exists("/nothing"),
    )
    assert host.read_bytes("/sys/real/text") == b"one\xff\n"
    assert host.names("/sys") == ("dead", "link", "real")


def test_what_nobody_read_is_listed_and_cannot_be_read(tmp_path: Path, root: Path) -> None:
    door = recorded(tmp_path, RealHost(str(root)))
    door.names("/sys/real")
    host = replayed(tmp_path, door)

    assert host.names("/sys/real") == ("other", "text")
    with pytest.raises(SourceError, match="the capture has its name only"):
        host.read("/sys/real/other")
    with pytest.raises(NotThere):
        host.read("/sys/real/third")
    with pytest.raises(AccessDenied, match="a capture cannot be changed"):
        host.write("/sys/real/text", "new")


class Guarded(Door):
    """Lets nobody read what is called *text*, and fails for *other*."""

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        if path.endswith("text"):
            raise AccessDenied(f"{path}: no")
        if path.endswith("other"):
            raise SourceError(f"{path}: input/output error")
        return super().read_bytes(path, limit)


def test_errors_are_as_they_were(tmp_path: Path, root: Path) -> None:
    door = recorded(tmp_path, Guarded(RealHost(str(root))))
    for name in ("text", "other"):
        with pytest.raises(SourceError):
            door.read(f"/sys/real/{name}")
    host = replayed(tmp_path, door)

    with pytest.raises(AccessDenied, match="might not be read"):
        host.read("/sys/real/text")
    with pytest.raises(SourceError, match="/sys/real/other: input/output error"):
        host.read("/sys/real/other")
    assert host.exists("/sys/real/text")
    assert host.resolve("/sys/real/text") == "/sys/real/text"


def test_device_nodes_keep_their_numbers(tmp_path: Path) -> None:
    simulate("sim", "basic", 1, str(tmp_path / "machine"))
    machine = MachineHost(str(tmp_path / "machine"))
    (node,) = (f"/dev/{name}" for name in machine.names("/dev"))
    door = recorded(tmp_path, machine)
    before = door.stat(node)

    assert replayed(tmp_path, door).stat(node) == before


class Programs(Door):
    """Counts what is run."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.count = 0

    def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
        del timeout_s
        if argv[0] == "/bin/bad":
            raise NotThere("/bin/bad: there is no such program")
        self.count += 1
        return Finished(code=0, out=str(self.count), err="")


def test_programs_answer_in_order_and_then_as_they_did_last(tmp_path: Path, root: Path) -> None:
    door = recorded(tmp_path, Programs(RealHost(str(root))))
    for _ in range(2):
        door.run(["/bin/tool", "-q"], 1.0)
    with pytest.raises(NotThere):
        door.run(["/bin/bad"], 1.0)
    host = replayed(tmp_path, door)

    assert [host.run(["/bin/tool", "-q"], 1.0).out for _ in range(3)] == ["1", "2", "2"]
    with pytest.raises(NotThere, match="the capture has no such command"):
        host.run(["/bin/tool", "-x"], 1.0)
    with pytest.raises(SourceError, match="/bin/bad: there is no such program"):
        host.run(["/bin/bad"], 1.0)


def twice(value: ctypes.c_int, out: object) -> int:
    pointee(out).value = value.value * 2
    return 0


def named(name: bytes, out: ctypes.Array[ctypes.c_char]) -> int:
    out.value = b"of " + name
    return 0


class Libraries(Door):
    def library(self, soname: str) -> FunctionTable:
        if soname != "libtoy.so":
            raise LibraryMissing(f"{soname}: no")
        return Table(soname, {"twice": twice, "named": named})


def test_libraries_answer_what_they_answered(tmp_path: Path, root: Path) -> None:
    def ask(host: Host, number: int) -> tuple[int, int, bytes]:
        table, out = host.library("libtoy.so"), ctypes.c_int()
        buffer = ctypes.create_string_buffer(16)
        code = table.twice(ctypes.c_int(number), ctypes.byref(out))
        table.named(b"toy", buffer)
        return code, out.value, buffer.value

    door = recorded(tmp_path, Libraries(RealHost(str(root))))
    before = ask(door, 21)
    with pytest.raises(AttributeError):
        _ = door.library("libtoy.so").thrice
    with pytest.raises(LibraryMissing):
        door.library("libother.so")
    host = replayed(tmp_path, door)

    assert ask(host, 21) == before == (0, 42, b"of toy")
    assert ask(host, 22)[:2] == (1, 0)
    with pytest.raises(AttributeError, match="undefined symbol: thrice"):
        _ = host.library("libtoy.so").thrice
    with pytest.raises(LibraryMissing, match=r"libother.so: no"):
        host.library("libother.so")
    with pytest.raises(LibraryMissing, match="not in the capture"):
        host.library("libthird.so")


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "it is no JSON: Expecting value"),
        ("[" * 100_000, "it is no JSON: maximum recursion depth"),
        ("{}", "its format is 'None'"),
        ("[]", "its format is 'None'"),
        ('{"format": "unfinished"}', "the capture was not finished"),
        ('{"format": "capture/1", "nodes": {"/dev/x": 3}, "libraries": {}}', "it is damaged"),
        ('{"format": "capture/1", "nodes": {}, "libraries": {"a": 3}}', "it is damaged"),
        ('{"format": "capture/2", "nodes": {}, "libraries": {}}', "its format is 'capture/2'"),
        ('{"format": "capture/1", "nodes": [], "libraries": {}}', "it is damaged"),
    ],
)
def test_capture_that_is_none_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / NAME).write_text(text)

    with pytest.raises(ConfigError, match=why):
        open_host(str(tmp_path))


@pytest.mark.parametrize(
    "file, line, why",
    [
        (COMMANDS, "{", "no JSON"),
        (COMMANDS, "3", "damaged"),
        (COMMANDS, '{"argv": ["/bin/true"]}', "damaged"),
        (COMMANDS, '{"argv": ["/bin/true"], "error": 3}', "damaged"),
        (f"{TAPE}/libtoy.so.jsonl", "{", "no JSON"),
        (f"{TAPE}/libtoy.so.jsonl", "null", "damaged"),
        (f"{TAPE}/libtoy.so.jsonl", '{"symbol": "ask"}', "damaged"),
        (
            f"{TAPE}/libtoy.so.jsonl",
            '{"symbol": "a", "before": [1], "after": [], "code": 0}',
            "damaged",
        ),
        (
            f"{TAPE}/libtoy.so.jsonl",
            '{"symbol": "a", "before": [], "after": [], "code": ""}',
            "damaged",
        ),
    ],
)
def test_capture_with_a_broken_line_names_it(
    tmp_path: Path, file: str, line: str, why: str
) -> None:
    """It was the fault of the plugin that asked for it."""
    told = {"format": FORMAT, "nodes": {}, "libraries": {"/libtoy.so": None}}
    (tmp_path / NAME).write_text(json.dumps(told))
    (tmp_path / FILES).mkdir()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    whole = '{"argv": [], "error": "no"}' if file == COMMANDS else '{"symbol": "b", "missing": 1}'
    (tmp_path / file).write_text(f"{whole}\n{line}\n")

    with pytest.raises(ConfigError, match=f"{os.path.basename(file)}:2: it is {why}"):  # noqa: PTH119 - of a text
        open_host(str(tmp_path))


def test_capture_that_is_not_utf8_is_refused_without_its_bytes(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff" * 1000)

    with pytest.raises(ConfigError, match=r"in position 0: invalid start byte$"):
        open_host(str(tmp_path))


def test_capture_that_was_cut_off_is_no_host(tmp_path: Path) -> None:
    """It was taken for the root of a host without devices."""

    class Ended(Vendor):
        name = "ended"

        def discover(self, host: Host) -> Iterable[Device | Unreadable]:  # noqa: ARG002 - the contract's
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(RealHost("/"), [Ended(NoOptions())], tmp_path / "kept", NOW, mask=True)

    with pytest.raises(ConfigError, match="was not finished"):
        open_host(str(tmp_path / "kept"))


class Asks(Vendor):
    """Reads a file, and takes what goes wrong with it for an answer."""

    name = "asks"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        with suppress(Exception):
            host.read("/sys/real/text")
        return ()


def test_capture_that_cannot_be_kept_is_no_host(tmp_path: Path, root: Path) -> None:
    """On a full disk it ended well, and what was missing was the plugin's fault."""
    host = Manifold(RealHost(str(root)))

    with limited_files(600), pytest.raises(ConfigError, match=r"cannot be kept in .*: File too la"):
        capture(host, [Asks(NoOptions())], tmp_path / "c", NOW, mask=False)

    with pytest.raises(ConfigError, match="was not finished"):
        open_host(str(tmp_path / "c"))


class Manifold(Door):
    """Gives each file a thousand times as large as it is."""

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        return super().read_bytes(path, limit) * 1000


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """No file of this process may become larger: like a full disk, for one file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"cannot be kept in .*/file/c: Not a directory"):
        capture(RealHost("/"), [], tmp_path / "file/c", NOW, mask=False)


class Opened(Door):
    """A process has a device file open, and a file of somebody."""

    def stat(self, path: str) -> Stat | None:
        if path in {"/proc/7/fd/4", "/dev/card"}:
            return Stat(kind="c", mode=0o666, major=226, minor=128)
        return super().stat(path)


def test_links_that_lead_to_each_other_lead_nowhere(tmp_path: Path, root: Path) -> None:
    host = replayed(tmp_path, recorded(tmp_path, RealHost(str(root))))
    (tmp_path / "capture" / FILES / "round").symlink_to("round")

    assert host.stat("/round") is None
    with pytest.raises(SourceError):
        host.read("/round/text")


def test_of_open_files_those_of_devices_alone_are_kept(tmp_path: Path, root: Path) -> None:
    """The names of all files that anybody had open were in a capture."""
    (root / "proc/7/fd").mkdir(parents=True)
    (root / "home/alice").mkdir(parents=True)
    (root / "home/alice/letter").touch()
    (root / "dev").mkdir()
    (root / "dev/card").touch()
    for number, target in ((3, "/home/alice/letter"), (4, "/dev/card"), (5, "/home/alice")):
        (root / f"proc/7/fd/{number}").symlink_to(target)
    door = recorded(tmp_path, Opened(RealHost(str(root))))
    for name in door.names("/proc/7/fd"):
        door.stat(f"/proc/7/fd/{name}")
    host = replayed(tmp_path, door)

    assert host.names("/proc/7/fd") == ("4",)
    assert host.stat("/proc/7/fd/4") == Stat(kind="c", mode=0o666, major=226, minor=128)
    assert not holds(tmp_path / "capture", b"alice")
    assert not (tmp_path / "capture" / FILES / "home").exists()


def test_folder_that_is_not_empty_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    with pytest.raises(ConfigError, match="is not empty"):
        capture(RealHost("/"), [], tmp_path, NOW, mask=False)
