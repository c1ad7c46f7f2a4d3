import errno
import os
import shutil
from pathlib import Path

import pytest

from accelkit.agent.leader import LOCK, Lease, prepare_run_directory
from accelkit.core.errors import ConfigError


def test_first_instance_leads_and_says_who_it_is(tmp_path: Path) -> None:
    lease = Lease(tmp_path)

    assert lease.check()
    assert lease.check()
    assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
    lease.release()


def test_second_instance_follows_until_the_first_lets_go(tmp_path: Path) -> None:
    first, second = Lease(tmp_path), Lease(tmp_path)
    first.check()

    assert (second.check(), second.elsewhere) == (False, True)
    first.release()
    first.release()
    assert (second.check(), second.elsewhere) == (True, False)
    assert not first.check()
    second.release()


def test_lock_whose_file_was_replaced_is_taken_anew(tmp_path: Path) -> None:
    """Else another instance would lead beside us, with the new file."""
    first, second = Lease(tmp_path), Lease(tmp_path)
    first.check()
    (tmp_path / LOCK).unlink()

    assert second.check()
    assert not first.check()
    assert first.elsewhere
    second.release()


def test_directory_that_was_removed_is_made_again(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "run")
    lease.check()
    shutil.rmtree(tmp_path / "run")

    assert lease.check()
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    lease.release()


def test_nobody_leads_where_the_directory_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    lease = Lease(tmp_path / "file" / "run")

    assert not lease.check()
    assert not lease.elsewhere


def test_full_disk_keeps_nobody_from_leading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: the agent ended when it was to write into its lock."""

    def full(*_args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)

    assert Lease(tmp_path).check()


def test_lock_is_not_inherited_by_programs_that_are_started(tmp_path: Path) -> None:
    lease = Lease(tmp_path)
    lease.check()
    assert lease._file is not None

    assert not os.get_inheritable(lease._file)
    lease.release()


def test_run_directory_is_made_for_us_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "run"

    prepare_run_directory(path)
    made = path.stat().st_mode & 0o777
    path.chmod(0o755)
    prepare_run_directory(path)

    assert (made, path.stat().st_mode & 0o777) == (0o700, 0o700)
    assert list(path.iterdir()) == []


def test_directory_that_holds_something_keeps_its_mode(tmp_path: Path) -> None:
    """It may be /run itself, and others need it."""
    (tmp_path / "theirs").touch()
    tmp_path.chmod(0o755)

    prepare_run_directory(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_directory_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    tmp_path.chmod(0o1777)

    with pytest.raises(ConfigError, match=r"\$\.paths\.run: everybody may write"):
        prepare_run_directory(tmp_path)


def test_run_directory_that_cannot_be_written_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"\$\.paths\.run: .*cannot be written") as found:
        prepare_run_directory(tmp_path / "file" / "run")
    assert found.value.remedy
