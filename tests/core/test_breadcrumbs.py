"""Which plugin was being loaded when a process ended."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from accelkit.core.breadcrumbs import breadcrumb, forget, left_behind
from accelkit.core.errors import ConfigError

DIES = """
import os, sys
from pathlib import Path
from accelkit.core.breadcrumbs import breadcrumb
with breadcrumb(Path(sys.argv[1])) as note:
    for word in sys.argv[2:]:
        note(word)
    os._exit(9)
"""


def die_loading(run: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, str(run), *words], check=False)
    assert done.returncode == 9


def test_nothing_is_left_where_loading_went_well(tmp_path: Path) -> None:
    run = tmp_path / "run"

    with breadcrumb(run) as note:
        note("acme 1.0")

    assert list(run.iterdir()) == []
    assert left_behind(run) == {}


def test_process_that_ended_left_the_name_of_what_it_loaded(tmp_path: Path) -> None:
    die_loading(tmp_path, "a-long-name 1.0", "acme 1.0")

    assert left_behind(tmp_path) == {"acme 1.0": [tmp_path / "loading-0"]}
    assert left_behind(tmp_path) == {"acme 1.0": [tmp_path / "loading-0"]}


def test_process_that_ended_between_two_plugins_accuses_nobody(tmp_path: Path) -> None:
    die_loading(tmp_path, "acme 1.0", "")

    assert left_behind(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_process_that_is_still_loading_accuses_nobody(tmp_path: Path) -> None:
    with breadcrumb(tmp_path) as note:
        note("acme 1.0")

        assert left_behind(tmp_path) == {}
        assert [p.name for p in tmp_path.iterdir()] == ["loading-0"]


def test_breadcrumbs_of_the_dead_are_kept_beside_new_ones(tmp_path: Path) -> None:
    die_loading(tmp_path, "acme 1.0")

    with breadcrumb(tmp_path) as note, breadcrumb(tmp_path) as other:
        note("generic")
        other("nvidia")
        names = sorted(p.name for p in tmp_path.iterdir())

    assert names == ["loading-0", "loading-1", "loading-2"]
    assert left_behind(tmp_path) == {"acme 1.0": [tmp_path / "loading-0"]}


def test_every_process_that_ended_has_its_own_file(tmp_path: Path) -> None:
    die_loading(tmp_path, "acme 1.0")
    die_loading(tmp_path, "acme 1.0")

    found = left_behind(tmp_path)
    forget(found["acme 1.0"])

    assert found == {"acme 1.0": [tmp_path / "loading-0", tmp_path / "loading-1"]}
    assert list(tmp_path.iterdir()) == []


def test_full_disk_keeps_nobody_from_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)

    with breadcrumb(tmp_path) as note:
        note("acme 1.0")

        assert [p.read_text() for p in tmp_path.iterdir()] == [""]


def test_directory_that_is_called_like_a_breadcrumb_accuses_nobody(tmp_path: Path) -> None:
    (tmp_path / "loading-0").mkdir()

    assert left_behind(tmp_path) == {}


def test_breadcrumb_is_dropped_when_loading_is_interrupted(tmp_path: Path) -> None:
    def load() -> None:
        with breadcrumb(tmp_path) as note:
            note("acme")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load()

    assert list(tmp_path.iterdir()) == []


def test_run_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match="cannot be written: Not a directory"):
        breadcrumb(tmp_path / "file" / "run").__enter__()


def test_missing_run_directory_has_no_breadcrumbs(tmp_path: Path) -> None:
    assert left_behind(tmp_path / "none") == {}


def test_breadcrumb_that_goes_while_it_is_looked_at_accuses_nobody(tmp_path: Path) -> None:
    (tmp_path / "loading-0").symlink_to("gone")

    assert left_behind(tmp_path) == {}
