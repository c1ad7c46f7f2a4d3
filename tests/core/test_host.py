from pathlib import Path

import pytest

from accelkit.core.errors import AccessDenied
from accelkit.core.host import Door, Host, ReadOnly
from accelkit.core.real_host import RealHost


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "bin").mkdir()
    (tmp_path / "size").write_text("7\n")
    return ReadOnly(RealHost(str(tmp_path)))


def test_a_read_call_may_not_write(tmp_path: Path, host: Host) -> None:
    with pytest.raises(AccessDenied, match=r"/size: .* may not write") as caught:
        host.write("/size", "8")
    with pytest.raises(AccessDenied):
        host.under("/bin").write("/size", "8")

    assert (tmp_path / "size").read_text() == "7\n"
    assert "create" in caught.value.remedy


def test_a_read_call_may_do_all_else(host: Host) -> None:
    assert host.read("/size") == "7"
    assert host.read_bytes("/size", 1) == b"7"
    assert host.exists("/size")
    assert host.names("/") == ("bin", "size")
    assert host.resolve("/bin/../size") == "/size"
    assert host.stat("/bin") is not None
    assert host.outside("/size") == "/size"
    assert host.live


def test_libraries_modules_and_programs_pass_through() -> None:
    host = ReadOnly(RealHost())

    assert host.library("libc.so.6").abs(-3) == 3
    assert host.module("colorsys").ONE_THIRD
    assert host.run(["/bin/echo", "hi"], 10).out == "hi\n"
    with pytest.raises(Exception, match="cannot control it"):
        host.ioctl("/dev/null", 0x5401, bytes(64))


def test_a_plain_door_passes_writes_on(tmp_path: Path) -> None:
    (tmp_path / "size").write_text("7\n")

    Door(RealHost(str(tmp_path))).write("/size", "8")

    assert (tmp_path / "size").read_text() == "8"
