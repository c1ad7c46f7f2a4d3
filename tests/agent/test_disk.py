import os
import stat
from pathlib import Path

from accelkit.agent.disk import HostDisk


def test_directory_for_containers_has_its_mode_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        HostDisk().make(tmp_path / "a" / "scratch", 0o1777)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a" / "scratch").stat().st_mode) == 0o1777


def test_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o700)

    HostDisk().make(tmp_path / "there", 0o755)

    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o700
