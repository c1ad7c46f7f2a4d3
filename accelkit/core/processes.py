"""Which processes have device files open, as /proc shows. Not here: which pod a process is of."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from accelkit.core.errors import SourceError
from accelkit.core.host import Host, Stat
from accelkit.core.model import DeviceId, Holder, Holding
from accelkit.core.values import HolderKind

PROCESSES = "/proc"
"""proc(5); a process that goes while it is looked at, or that may not be looked at, is left out."""


def holders_of(
    host: Host,
    nodes: Mapping[DeviceId, Iterable[str]],
    *,
    among: Callable[[str], bool] = bool,
) -> Iterator[Holding]:
    """One holding for each process and device of which it has a file open; opens none.

    By the number of the file, so that it does not matter what a container calls it.

    Args:
        host: The door.
        nodes: Device files of each device that are its own; not those that devices share.
        among: Whether a process is looked at, by its pid: most of a node's have many files open.
    """
    owners: dict[tuple[int, int], set[DeviceId]] = defaultdict(set)
    for device, paths in nodes.items():
        for path in paths:
            if (number := _number(host.stat(path))) is not None:
                owners[number].add(device)
    if not owners:
        return
    for pid in sorted((n for n in host.names(PROCESSES) if n.isdecimal()), key=int):
        if not among(pid):
            continue
        held = {device for number in _open_files(host, pid) for device in owners.get(number, ())}
        for device in sorted(held):
            yield Holding(
                device=device,
                through="process",
                holder=Holder(kind=HolderKind.FOREIGN, uid=pid),
            )


def _open_files(host: Host, pid: str) -> Iterator[tuple[int, int]]:
    """Numbers of the character devices that a process has open."""
    folder = f"{PROCESSES}/{pid}/fd"
    try:
        names = host.names(folder)
    except SourceError:
        return
    for name in names:
        try:
            number = _number(host.stat(f"{folder}/{name}"))
        except SourceError:
            continue
        if number is not None:
            yield number


def _number(found: Stat | None) -> tuple[int, int] | None:
    if found is None or found.kind != "c" or found.major is None or found.minor is None:
        return None
    return found.major, found.minor


__all__ = ["holders_of"]
