import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from accelkit.agent.disk import Disk, HostDisk, in_words, put, take_away, temporary
from accelkit.core.errors import LedgerError, NoSpace
from tests.agent.keeping.process import Process
from tests.agent.keeping.storage import MemoryStorage


def in_memory(directory: Path) -> Disk:
    storage = MemoryStorage()
    storage.add(str(directory / "x"), b"")
    door = storage.door(Process())
    door.remove(directory / "x")
    return door


def on_host(_directory: Path) -> Disk:
    return HostDisk()


@pytest.fixture(params=[on_host, in_memory])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    """Both are tested alike: what is proven with one in memory must be true of real ones."""
    make: Callable[[Path], Disk] = request.param
    return make(tmp_path)


def test_a_file_that_is_put_is_there_whole(disk: Disk, tmp_path: Path) -> None:
    put(disk, tmp_path / "a", b"one", 0o600)
    put(disk, tmp_path / "a", b"three", 0o600)

    assert disk.read(tmp_path / "a") == b"three"
    assert set(disk.marks(tmp_path)) == {"a"}


def test_another_content_has_another_mark(disk: Disk, tmp_path: Path) -> None:
    put(disk, tmp_path / "a", b"one", 0o600)
    before = disk.mark(tmp_path / "a")
    put(disk, tmp_path / "a", b"two", 0o600)

    assert before is not None
    assert before != disk.mark(tmp_path / "a")
    assert disk.mark(tmp_path / "a") == disk.marks(tmp_path)["a"]


def test_what_is_not_there_is_none(disk: Disk, tmp_path: Path) -> None:
    missing = tmp_path / "missing"

    assert (disk.read(missing), disk.mark(missing), dict(disk.marks(missing))) == (None, None, {})
    disk.remove(missing)
    disk.remove_tree(missing)
    take_away(disk, missing)


def test_files_below_a_directory_that_is_not_there_are_refused(disk: Disk, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        put(disk, tmp_path / "no" / "a", b"", 0o600)
    with pytest.raises(FileNotFoundError):
        disk.lock(tmp_path / "no" / "lock")


def test_directories_are_made_and_removed_with_all_below(disk: Disk, tmp_path: Path) -> None:
    disk.make(tmp_path / "a" / "b", 0o700)
    disk.make(tmp_path / "a" / "b", 0o700)
    put(disk, tmp_path / "a" / "b" / "c", b"", 0o600)

    disk.remove_tree(tmp_path / "a")

    assert disk.read(tmp_path / "a" / "b" / "c") is None
    with pytest.raises(FileNotFoundError):
        put(disk, tmp_path / "a" / "b" / "c", b"", 0o600)


def test_a_file_below_what_is_no_directory_any_more_is_gone(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("no directory")

    take_away(HostDisk(), tmp_path / "cdi" / "a")

    assert (tmp_path / "cdi").read_text() == "no directory"


def test_what_a_writer_left_goes_with_its_file(disk: Disk, tmp_path: Path) -> None:
    put(disk, tmp_path / "a", b"one", 0o600)
    disk.write(temporary(tmp_path / "a"), b"tw", 0o600)

    take_away(disk, tmp_path / "a")

    assert dict(disk.marks(tmp_path)) == {}


def test_a_lock_is_had_by_one_until_it_is_given_back(disk: Disk, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = disk.lock(path)

    assert first is not None
    assert disk.lock(path) is None

    disk.unlock(path, first, remove=False)
    second = disk.lock(path)

    assert second is not None
    disk.unlock(path, second, remove=True)
    assert disk.mark(path) is None


def test_fullness_is_a_share(disk: Disk, tmp_path: Path) -> None:
    assert 0.0 <= disk.fullness(tmp_path) <= 1.0


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    old = HostDisk().lock(path)
    assert old is not None
    path.unlink()

    new = HostDisk().lock(path)

    assert new is not None
    assert os.fstat(new).st_ino == path.stat().st_ino
    HostDisk().unlock(path, new, remove=True)
    HostDisk().unlock(path, old, remove=True)


def test_a_lock_is_signed_by_its_holder(disk: Disk, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    handle = disk.lock(path)
    assert handle is not None
    assert disk.owner(path) == ""

    disk.sign(path, handle, "7 a longer one")
    disk.sign(path, handle, "8 b")

    assert disk.owner(path) == "8 b"
    disk.unlock(path, handle, remove=False)
    assert disk.owner(path) == "8 b"
    assert disk.owner(tmp_path / "missing") == ""


def test_a_lock_is_not_inherited(tmp_path: Path) -> None:
    handle = HostDisk().lock(tmp_path / "lock")

    assert handle is not None
    assert not os.get_inheritable(handle)
    HostDisk().unlock(tmp_path / "lock", handle, remove=False)


def test_links_and_what_is_no_file_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")

    assert set(HostDisk().marks(tmp_path)) == {"secret"}
    assert HostDisk().mark(tmp_path / "link") is None
    with pytest.raises(OSError, match="symbolic"):
        HostDisk().read(tmp_path / "link")
    with pytest.raises(OSError, match="symbolic"):
        HostDisk().write(tmp_path / "link", b"", 0o600)


def test_a_file_has_the_mode_that_is_asked_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        put(HostDisk(), tmp_path / "a", b"", 0o644)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_as_such(number: int) -> None:
    with (
        pytest.raises(NoSpace, match=r"^x cannot be written: there is no space left \(/run/x\)$"),
        in_words("x cannot be written"),
    ):
        raise OSError(number, "Full", "/run/x")


def test_another_refusal_of_the_disk_is_told_with_its_reason() -> None:
    with (
        pytest.raises(LedgerError, match=r"^x cannot be read: Permission denied$") as caught,
        in_words("x cannot be read"),
    ):
        raise OSError(errno.EACCES, "Permission denied")

    assert caught.value.code == LedgerError.code


def test_a_lock_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """It could be opened again and again, and would never be had."""
    os.mkfifo(tmp_path / "a.lock")

    with pytest.raises(OSError, match="no regular file"):
        HostDisk().lock(tmp_path / "a.lock")
