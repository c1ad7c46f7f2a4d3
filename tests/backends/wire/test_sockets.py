"""Sockets that a killed process left behind."""

import socket
from pathlib import Path

import pytest

from accelkit.backends.wire import sockets
from accelkit.backends.wire.serve import bind, fresh_path


def abandoned(path: Path) -> None:
    """Leave a socket behind, as a process does that is killed."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        made.listen()


def sockets_in(directory: Path) -> set[Path]:
    return {path for path in directory.iterdir() if path.is_socket()}


async def test_only_sockets_of_one_name_at_which_nobody_listens_are_removed(
    tmp_path: Path,
) -> None:
    ours, other = fresh_path(tmp_path, "acme"), fresh_path(tmp_path, "acme-two")
    abandoned(other)
    abandoned(fresh_path(tmp_path, "acme"))
    fresh_path(tmp_path, "acme").write_text("not a socket")

    async with await bind(ours, []):
        await sockets.remove_dead(fresh_path(tmp_path, "acme"))
        left = sockets_in(tmp_path)

    assert left == {ours, other}


async def test_socket_is_kept_that_cannot_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has no files left cannot connect, and must not take that for an answer."""
    left = fresh_path(tmp_path, "acme")
    abandoned(left)

    def out_of_files(*_: object, **__: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "socket", out_of_files)
    await sockets.remove_dead(left)

    assert left.is_socket()


async def test_socket_is_told_from_one_that_answers(tmp_path: Path) -> None:
    dead, live = tmp_path / "dead.sock", tmp_path / "live.sock"
    abandoned(dead)

    async with await bind(live, []):
        assert [await sockets.listens(p) for p in (dead, live, tmp_path / "none.sock")] == [
            False,
            True,
            False,
        ]


async def test_directory_that_is_not_there_has_no_sockets(tmp_path: Path) -> None:
    assert sockets.alike(tmp_path / "missing" / "acme-01234567.sock") == ()
