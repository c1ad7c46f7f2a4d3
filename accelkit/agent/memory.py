"""What the node believed and heard in this boot, kept for the instance that starts next.

Not here: claims, which are a record of their own.
"""

import contextlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import attrs

from accelkit.agent.disk import HostDisk, put
from accelkit.agent.heard import Told
from accelkit.agent.judged import Course, judged
from accelkit.agent.problems import AGENT, Problems
from accelkit.core.allocation import ContainerEdits
from accelkit.core.errors import ConfigError
from accelkit.core.model import Device, DeviceId, Group, Link, Snapshot
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap, freeze
from accelkit.core.view import Assignment, Verdict, View

log = logging.getLogger(__name__)

MOST_BYTES = 64 << 20
"""Of a file that is read; ours are smaller by far."""
FORMAT = "1.0"
"""Of all files; what is written with another first number is not read."""
INVENTORY = "inventory.json"
ASSIGNMENT = "assignment.json"
COURSE = "health.json"
DAMAGED = "health.json.damaged"
NO_BOOT = "unknown"
"""Stands for the boot where the host does not tell which it is."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class MadeFor:
    """What a container needs for a device on certain terms."""

    device: DeviceId
    terms: Offer
    edits: ContainerEdits


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Inventory:
    """What there was, and what containers needed of it."""

    format: str = FORMAT
    writer: str = ""
    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    groups: tuple[Group, ...] = ()
    software: FrozenMap[str, str] = FrozenMap()
    edits: tuple[MadeFor, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Given:
    """How one device was offered."""

    device: DeviceId
    assignment: Assignment


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Assignments:
    """How all of them were."""

    format: str = FORMAT
    writer: str = ""
    given: tuple[Given, ...] = ()


T = TypeVar("T", Inventory, Assignments, Course)


_ANEW = "nothing: devices are read anew, and what holds them is asked"
_FORGOTTEN = {
    INVENTORY: _ANEW,
    ASSIGNMENT: _ANEW,
    COURSE: "nothing: devices are read anew; what their library told only once is forgotten",
}
"""What to do about a file that cannot be read."""


class Memory:
    """Three files of this boot: read at start, written by the leader when they change.

    Args:
        directory: Of this boot.
        writer: Our version.
    """

    def __init__(self, directory: Path, writer: str, problems: Problems) -> None:
        self._directory = directory
        self._writer = writer
        self._problems = problems
        self._written: dict[str, object] = {}
        self._seen: tuple[int, int] | None = None

    def recall(self, node: str) -> tuple[View, tuple[MadeFor, ...]]:
        """The view as it was believed last, with nothing but what lasts; and edits.

        What cannot be read, or was written by a later version, is a problem and left out.
        """
        inventory = self._read(Inventory, INVENTORY) or Inventory()
        given = (self._read(Assignments, ASSIGNMENT) or Assignments()).given
        snapshot = Snapshot(
            node=node,
            devices=inventory.devices,
            links=inventory.links,
            groups=inventory.groups,
            software=inventory.software,
        )
        assignments = FrozenMap((one.device, one.assignment) for one in given)
        return View(snapshot=snapshot, assignments=assignments), inventory.edits

    def course(self) -> Course | None:
        """What was heard, and how devices were judged last; None: it cannot be read."""
        return self._read(Course, COURSE)

    def recall_course(self) -> Course:
        """What *course* says; a damaged file is set aside."""
        path = self._directory / COURSE
        course = self.course()
        if course is None and path.exists():
            with contextlib.suppress(OSError):
                path.replace(self._directory / DAMAGED)
                log.warning("what was heard is set aside", extra={"file": DAMAGED})
        return course or Course()

    def news(self) -> Told | None:
        """What the leader heard, if it wrote anything since the last look."""
        try:
            found = (self._directory / COURSE).stat()
        except OSError:
            return None
        seen = (found.st_ino, found.st_mtime_ns)
        if seen == self._seen:
            return None
        self._seen = seen
        course = self.course()
        return None if course is None else course.told

    def keep_course(self, told: Told, verdicts: Mapping[DeviceId, Verdict]) -> None:
        """Write what was heard and judged, as *keep* does."""
        course = Course(format=FORMAT, writer=self._writer, told=told, judged=judged(verdicts))
        self._keep(COURSE, course)

    def keep(self, view: View) -> None:
        """Write what differs from what is written; a file that is gone is written again."""
        snapshot = view.snapshot
        self._keep(
            INVENTORY,
            Inventory(
                writer=self._writer,
                devices=snapshot.devices,
                links=snapshot.links,
                groups=snapshot.groups,
                software=snapshot.software,
                edits=tuple(
                    MadeFor(device=device, terms=terms, edits=edits)
                    for device, edits in view.edits.items()
                    if (terms := view.assignments[device].terms) is not None
                ),
            ),
        )
        given = (Given(device=i, assignment=given) for i, given in view.assignments.items())
        self._keep(ASSIGNMENT, Assignments(writer=self._writer, given=tuple(given)))

    def _keep(self, name: str, value: Inventory | Assignments | Course) -> None:
        path = self._directory / name
        if self._written.get(name) == value and path.exists():
            return
        # Imported when there is something to write: the sockets are served by then.
        from accelkit.core.serde import to_tree  # noqa: PLC0415 - see above

        try:
            write_whole(path, json.dumps(to_tree(value)).encode())
        except OSError as error:
            why = f"{path} cannot be written: {error.strerror}"
            remedy = "make room, or let the agent write there; until then a restart forgets it"
            self._problems.note(AGENT, "not-remembered", str(path), why, remedy)
            return
        self._written[name] = value
        self._problems.solve(AGENT, "not-remembered", str(path))
        self._problems.solve(AGENT, "memory-ignored", str(path))

    def _read(self, kind: type[T], name: str) -> T | None:
        path = self._directory / name
        try:
            value = _parsed(kind, _content(path))
            # Together they must make sense, too.
            if isinstance(value, Inventory):
                Snapshot(devices=value.devices, links=value.links, groups=value.groups)
        except FileNotFoundError:
            return None
        except Exception as error:  # noqa: BLE001 - whatever is in it, the agent starts
            text = " ".join(str(error).split())[:500]
            why = f"{path} is not read: {text or type(error).__name__}"
            remedy = _FORGOTTEN[name]
            self._problems.note(AGENT, "memory-ignored", str(path), why, remedy)
            return None
        return value


def _content(path: Path) -> bytes:
    """What is in a file of ours: neither a link's target, nor what has no end or never comes."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:  # noqa: PTH123 - of a handle, see above
        return file.read(MOST_BYTES)


def _parsed(kind: type[T], raw: bytes) -> T:
    from accelkit.core.serde import from_tree  # noqa: PLC0415 - not needed where nothing was kept
    from accelkit.core.serde.pruning import without  # noqa: PLC0415 - see above

    tree: object = json.loads(raw)
    found = str(tree.get("format")) if isinstance(tree, dict) else ""
    if found.partition(".")[0] != FORMAT.partition(".")[0]:
        raise ConfigError([("$.format", f"expected {FORMAT}, found {found or 'nothing'}")])
    try:
        return from_tree(kind, tree)
    except ConfigError as error:
        # What a later version of the same format adds is left out; anything else is damage.
        if not all(text.startswith("unknown key") for _, text in error.problems):
            raise
        return from_tree(kind, without(tree, [path for path, _ in error.problems]))


def write_whole(path: Path, data: bytes) -> None:
    """Put *data* at *path*, whole or not at all, and on disk when this returns.

    Raises:
        OSError: It cannot be written; what was there stays.
    """
    disk = HostDisk()
    disk.make(path.parent, 0o700)
    put(disk, path, data, 0o600)
