"""The real host, over real files: below a root of our own, and the machine that runs the tests."""

import os
import socket
import sys
from ctypes import c_int
from pathlib import Path

import pytest

from accelkit.core.errors import AccessDenied, LibraryMissing, NotThere, SourceError
from accelkit.core.host import Stat
from accelkit.core.real_host import RealHost, guarded_import

TIOCGPTN = 0x80045430
"""asm-generic/ioctls.h: the number of a pseudo terminal."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sys/real").mkdir(parents=True)
    (tmp_path / "sys/real/size").write_text("7\n\n")
    (tmp_path / "sys/link").symlink_to("/sys/real")
    (tmp_path / "sys/away").symlink_to("/etc")
    (tmp_path / "sys/up").symlink_to("../../../../../../etc")
    (tmp_path / "sys/loop").symlink_to("loop")
    return tmp_path


@pytest.fixture
def host(root: Path) -> RealHost:
    return RealHost(str(root))


def test_text_loses_one_newline_and_undecodable_bytes(root: Path, host: RealHost) -> None:
    (root / "odd").write_bytes(b"a\xffb\n")

    assert host.read("/sys/real/size") == "7\n"
    assert host.read("/odd") == "a\N{REPLACEMENT CHARACTER}b"
    assert host.read_bytes("/odd") == b"a\xffb\n"


def test_no_more_than_the_limit_is_read(root: Path, host: RealHost) -> None:
    (root / "long").write_bytes(b"x" * 200_000)

    assert len(host.read("/long", limit=100_000)) == 100_000
    assert host.read_bytes("/long", limit=0) == b""


def test_links_are_followed_below_the_root_only(host: RealHost) -> None:
    assert host.read("/sys/link/size") == "7\n"
    assert host.resolve("/sys/link/./size") == "/sys/real/size"
    assert not host.exists("/sys/away/passwd")
    assert not host.exists("/sys/up/passwd")
    assert not host.exists("/../../../../../etc/passwd")
    with pytest.raises(NotThere):
        host.resolve("/sys/away/passwd")


@pytest.mark.parametrize(
    "link, target, path, led",
    [
        ("sys/two", "./link/.", "/sys/two/size", "/sys/real/size"),
        ("sys/real/back", "../link/../real", "/sys/real/back/size", "/sys/real/size"),
        ("sys/real/back", "..", "//sys/./real/back/link/size", "/sys/real/size"),
        ("sys/real/far", "../../../../sys", "/sys/real/far/link", "/sys/real"),
        ("sys/none", "/sys/not/there", "/sys/none", "/sys/not/there"),
    ],
)
def test_links_lead_where_a_process_with_that_root_would_come(
    root: Path, host: RealHost, link: str, target: str, path: str, led: str
) -> None:
    (root / link).symlink_to(target)
    if host.exists(led):
        assert host.resolve(path) == led
        assert host.names(path) == host.names(led)
        assert host.stat(path) == host.stat(led)
    else:
        with pytest.raises(NotThere):
            host.resolve(path)


def test_links_that_leave_the_root_do_not_come_back_into_it(root: Path, host: RealHost) -> None:
    (root / "sys/absolute").symlink_to(root / "sys/real")
    (root / "sys/relative").symlink_to(f"../../{root.name}/sys/real")

    assert not host.exists("/sys/absolute/size")
    assert not host.exists("/sys/relative/size")


def test_a_link_to_itself_leads_to_nothing(root: Path, host: RealHost) -> None:
    (root / "sys/there").symlink_to("back")
    (root / "sys/back").symlink_to("there")

    assert host.stat("/sys/loop") is None
    assert not host.exists("/sys/there")
    assert RealHost().stat(f"{root}/sys/there") is None


def test_a_name_that_is_too_long_is_not_known(host: RealHost) -> None:
    with pytest.raises(SourceError, match="name too long"):
        host.stat("/" + "x" * 300)


def test_a_link_to_itself_cannot_be_read(host: RealHost) -> None:
    with pytest.raises(SourceError, match="/sys/loop: cannot read it: Too many levels"):
        host.read("/sys/loop")


@pytest.mark.parametrize("path", ["/none", "/sys/real/size/deeper"])
def test_what_is_missing_is_not_there(host: RealHost, path: str) -> None:
    with pytest.raises(NotThere, match=f"{path}: there is no such file"):
        host.read(path)
    with pytest.raises(NotThere):
        host.resolve(path)
    assert host.stat(path) is None
    assert not host.exists(path)
    assert host.names(path) == ()


@pytest.mark.parametrize("path", ["/sys/real", "relative", "/nul\0", f"/{'long' * 99}"])
def test_what_cannot_be_read_is_a_source_error(host: RealHost, path: str) -> None:
    with pytest.raises(SourceError):
        host.read(path)


def test_a_file_that_may_not_be_written_is_denied_with_a_remedy() -> None:
    # Not even root may write it: the kernel keeps it read-only.
    with pytest.raises(AccessDenied, match="this process may not write it") as caught:
        RealHost().write("/proc/sys/kernel/ostype", "x")

    assert caught.value.remedy


def test_names_are_sorted(root: Path, host: RealHost) -> None:
    for name in ("b", "a", "c"):
        (root / "sys/real" / name).touch()

    assert host.names("/sys/link") == ("a", "b", "c", "size")


def test_every_sort_of_file_has_its_kind(root: Path, host: RealHost) -> None:
    os.mkfifo(root / "pipe", 0o600)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        kinds = {
            path: found.kind
            for path in ("/sys", "/sys/link", "/sys/real/size", "/pipe", "/socket")
            if (found := host.stat(path))
        }

    assert kinds == {
        "/sys": "d",
        "/sys/link": "d",
        "/sys/real/size": "f",
        "/pipe": "o",
        "/socket": "s",
    }
    found = RealHost().stat("/dev/null")

    assert found == Stat(kind="c", major=1, minor=3, mode=0o666)
    assert found is not None
    assert found.changed_ns == 0


def test_a_pipe_without_writer_does_not_block(root: Path, host: RealHost) -> None:
    os.mkfifo(root / "pipe")

    assert host.read("/pipe") == ""


def test_writes_replace_what_an_existing_file_holds(root: Path, host: RealHost) -> None:
    host.write("/sys/link/size", "12")

    assert (root / "sys/real/size").read_text() == "12"
    with pytest.raises(NotThere):
        host.write("/new", "")


def test_hot_plugged_files_are_seen_at_once(root: Path, host: RealHost) -> None:
    (root / "sys/real/new").touch()
    seen = host.names("/sys/real")
    (root / "sys/real/new").unlink()

    assert seen == ("new", "size")
    assert host.names("/sys/real") == ("size",)


def test_a_root_below_a_root_is_named_as_the_runtime_names_it(root: Path, host: RealHost) -> None:
    (root / "run/driver/lib").mkdir(parents=True)
    (root / "run/driver/lib/x").write_text("lib")

    below = host.under("/run/driver")

    assert below.read("/lib/x") == "lib"
    assert below.outside("/lib/x") == "/run/driver/lib/x"
    assert host.outside("/dev/x") == "/dev/x"
    assert below.live


def test_a_library_is_what_ctypes_loads() -> None:
    table = RealHost().library("libc.so.6")

    assert table.abs(c_int(-3)) == 3
    with pytest.raises(AttributeError):
        table.no_such_function  # noqa: B018 - looking it up is the point


def test_a_library_below_a_root_is_that_root_s(root: Path, host: RealHost) -> None:
    source = next(
        path
        for folder in ("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
        if (path := Path(folder, "libm.so.6")).exists()
    )
    (root / "usr/lib64").mkdir(parents=True)
    (root / "usr/lib64/libm-real.so").write_bytes(source.read_bytes())
    (root / "usr/lib64/libmath.so.1").symlink_to("/usr/lib64/libm-real.so")

    assert host.library("libmath.so.1")._name == str(root / "usr/lib64/libm-real.so")
    with pytest.raises(LibraryMissing, match=r"libc\.so\.6 is in none of the library folders"):
        host.library("libc.so.6")


def test_a_library_that_is_none_is_missing(root: Path, host: RealHost) -> None:
    (root / "usr/lib64").mkdir(parents=True)
    (root / "usr/lib64/libtext.so").write_text("not a library")

    with pytest.raises(LibraryMissing, match=r"libtext\.so cannot be loaded"):
        host.library("libtext.so")
    with pytest.raises(LibraryMissing) as caught:
        RealHost().library("libnosuchthing.so.1")
    assert caught.value.remedy


def test_a_module_is_a_python_binding() -> None:
    assert RealHost().module("colorsys").rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)


@pytest.mark.parametrize(
    "error",
    [
        "KeyError('ROCM')",
        "AttributeError('f')",
        "OSError('so')",
        "Exception('so')",
        "SystemExit(1)",
    ],
)
def test_a_module_that_cannot_be_imported_is_missing_and_silent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: str,
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "chatty.py").write_text(f"print('loading'); raise {error}\n")

    with pytest.raises(LibraryMissing, match=error.partition("(")[0]):
        guarded_import("chatty")

    assert capsys.readouterr().out == ""


def test_a_module_that_does_not_exist_is_missing() -> None:
    with pytest.raises(LibraryMissing, match="ModuleNotFoundError"):
        RealHost().module("no_such_binding")


def test_controlling_what_is_no_device_fails() -> None:
    with pytest.raises(SourceError, match="/dev/null: cannot control it"):
        RealHost().ioctl("/dev/null", 0x5401, bytes(64))


def test_a_device_answers_when_it_is_controlled() -> None:
    number = RealHost().ioctl("/dev/ptmx", TIOCGPTN, bytes(4))

    assert int.from_bytes(number, sys.byteorder) >= 0
    assert len(number) == 4


def test_the_boot_id_of_this_machine_is_read() -> None:
    assert len(RealHost().read("/proc/sys/kernel/random/boot_id")) == 36
