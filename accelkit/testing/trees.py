"""Lay out a machine's files below its directory. Not here: which files a vendor shows."""

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from accelkit.core.errors import ConfigError, PluginContractError
from accelkit.testing.machines import Entry, File, Line, Link, Node

Tree: TypeAlias = Mapping[str, File | Link | Node]

_NULL = os.makedev(1, 3)
"""/dev/null: harmless in any container (Linux, Documentation/admin-guide/devices.txt)."""


def gather(entries: Iterable[Entry]) -> Tree:
    """One entry a path, in order of the paths; lines of one file come together in their order.

    Raises:
        PluginContractError: Two entries of one path differ, or a path is not a plain absolute one.
    """
    found: dict[str, File | Link | Node] = {}
    lines: dict[str, list[str]] = {}
    for entry in entries:
        if os.path.normpath(entry.path) != entry.path or not entry.path.startswith("/"):
            raise PluginContractError(f"{entry.path!r}: a path of a machine is absolute and plain")
        if isinstance(entry, Line):
            lines.setdefault(entry.path, []).append(entry.text)
        elif found.setdefault(entry.path, entry) != entry:
            raise PluginContractError(f"{entry.path}: the machine shows two different things there")
    for path, texts in lines.items():
        if path in found:
            raise PluginContractError(f"{path}: the machine shows a file and lines of it")
        found[path] = File(path=path, content="".join(f"{text}\n" for text in texts))
    return dict(sorted(found.items()))


def lay_out(directory: str, before: Tree, after: Tree, *, device_nodes: bool) -> None:
    """Make the files below *directory* follow from *before* to *after*.

    Only what differs is touched, so that what somebody else wrote meanwhile stays. Each file
    appears whole: it is written beside its place and then moved there.

    Raises:
        ConfigError: The file system refuses.
    """
    try:
        for path in sorted(before.keys() - after.keys(), reverse=True):
            _remove(directory, path)
        with tempfile.TemporaryDirectory(prefix=".laying-", dir=directory) as aside:
            for path, entry in after.items():
                if before.get(path) != entry:
                    made = Path(aside, "made")
                    _make(made, entry, device_nodes=device_nodes)
                    Path(directory + path).parent.mkdir(parents=True, exist_ok=True)
                    made.replace(directory + path)
    except OSError as error:
        remedy = "device nodes are made by root only" if device_nodes else ""
        raise ConfigError(
            [(str(error.filename or directory), f"cannot be laid out: {error.strerror}")],
            remedy=remedy,
        ) from error


def _remove(directory: str, path: str) -> None:
    real = Path(directory + path)
    real.unlink(missing_ok=True)
    for folder in real.parents:
        if str(folder) == directory.rstrip("/"):
            return
        try:
            folder.rmdir()
        except OSError:  # somebody's files are still in it
            return


def _make(made: Path, entry: File | Link | Node, *, device_nodes: bool) -> None:
    match entry:
        case File(content=content, mode=mode):
            made.write_bytes(content.encode() if isinstance(content, str) else content)
            made.chmod(mode)
        case Link(path=path, target=target):
            made.symlink_to(_relative(target, path))
        case Node(mode=mode) if device_nodes:
            os.mknod(made, stat.S_IFCHR | mode, _NULL)
            made.chmod(mode)
        case Node(mode=mode):
            made.write_bytes(b"")
            made.chmod(mode)


def _relative(target: str, path: str) -> str:
    # So that the link leads to the same file for a tool that does not know of the machine.
    return os.path.relpath(target, os.path.dirname(path)) if target.startswith("/") else target  # noqa: PTH120 - text
