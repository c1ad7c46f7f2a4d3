"""Where a path leads below a root, as a process with that root would find it."""

import ctypes
import errno
import os
import struct

_MOST_LINKS = 40
"""The kernel follows no more either (path_resolution(7))."""

_OPENAT2 = 437
"""Its number on every architecture that Linux has had since 5.6 (asm-generic/unistd.h)."""
_RESOLVE_IN_ROOT = 0x10
_HOW = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT)
"""struct open_how (openat2(2)): flags, mode, resolve. With O_PATH nothing is done to the file."""
_libc = ctypes.CDLL(None)


def followed(root: str, path: str) -> str:
    """*path* with every link followed below *root*; parts that are missing stay as named.

    Args:
        root: A directory, empty for ``/``.
        path: Absolute, as seen from the root.

    Raises:
        OSError: Links lead to each other, or a part cannot be looked at.
    """
    found = _as_the_kernel_finds(root, path)
    return _part_by_part(root, path) if found is None else found


def _as_the_kernel_finds(root: str, path: str) -> str | None:
    """The same of a file that is there, at once: vendors read hundreds in deep folders.

    None: it is not there, or this kernel, or its filter of calls, cannot follow links below a root.

    Source:
        openat2(2), RESOLVE_IN_ROOT; proc_pid_fd(5): where an open file is.
    """
    if "\0" in path:
        return None
    try:
        top = os.open(root or "/", os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fd = _libc.syscall(_OPENAT2, top, os.fsencode(path), _HOW, ctypes.c_size_t(len(_HOW)))
    finally:
        os.close(top)
    if fd < 0:
        return None
    try:
        whole = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - text in, text out
    finally:
        os.close(fd)
    # A root that is named by a link, or the root itself, is told otherwise.
    return whole.removeprefix(root) if whole.startswith(f"{root}/") else None


def _part_by_part(root: str, path: str) -> str:
    done: list[str] = []
    waiting = _backwards(path)
    for _ in range(_MOST_LINKS + 1):
        if (target := _next_link(root, done, waiting)) is None:
            return "/" + "/".join(done)
        if target.startswith("/"):
            done.clear()
        waiting.extend(_backwards(target))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _next_link(root: str, done: list[str], waiting: list[str]) -> str | None:
    """Move parts from *waiting* to *done* up to a link; where that leads to, if there is one.

    Args:
        root: As of followed().
        done: Parts of a path without links.
        waiting: Parts that follow, the last first.
    """
    while waiting:
        part = waiting.pop()
        if part == "..":
            del done[-1:]
        elif (target := _link_target("/".join((root, *done, part)))) is not None:
            return target
        else:
            done.append(part)
    return None


def _backwards(path: str) -> list[str]:
    """The parts of *path*, the last first."""
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - text in, text out
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.ENOENT, errno.ENOTDIR}:
            return None
        raise
