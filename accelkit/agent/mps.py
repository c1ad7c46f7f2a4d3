"""What daemons that share devices are to do, in files; and whether they are ready.

A daemon is nobody's child here: an upgrade of the agent must not end its clients. It reads
``<run>/mps/<device name>.json`` and writes ``<run>/mps/<device name>.ready``.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import attrs

from accelkit.agent.memory import write_whole
from accelkit.agent.problems import AGENT, Problems
from accelkit.core.allocation import equal_share
from accelkit.core.damping import SERVICE_MISSING
from accelkit.core.model import Condition, Device, DeviceId, Snapshot
from accelkit.core.policy import Divide, Sharing
from accelkit.core.values import Enforcement, Severity
from accelkit.core.view import View

log = logging.getLogger(__name__)

FOLDER = "mps"
FORMAT = "1.0"


class Mps:
    """Asks for daemons, and keeps devices back whose daemon is not ready.

    Args:
        run: The run directory.
    """

    def __init__(self, run: Path, problems: Problems) -> None:
        self._folder = run / FOLDER
        self._problems = problems
        self._ready: frozenset[DeviceId] = frozenset()

    def unserved(self, view: View) -> frozenset[DeviceId]:
        """Devices of *view* whose daemon is not ready."""
        return frozenset(device.id for device, _ in _shared(view)) - self._ready

    def look(self, view: View, *, leading: bool) -> bool:
        """Ask for what *view* needs, as the leader; whether other daemons are ready than before."""
        shared = dict(_shared(view))
        if leading and (shared or self._folder.is_dir()):
            self._ask({d.id.name: _desired(d, sharing) for d, sharing in shared.items()})
        before = self._ready
        self._ready = frozenset(
            device.id for device in shared if (self._folder / f"{device.id.name}.ready").exists()
        )
        return self._ready != before

    def _ask(self, wanted: dict[str, bytes]) -> None:
        try:
            for path in self._folder.glob("*.json"):
                if path.stem not in wanted:
                    path.unlink(missing_ok=True)
                    path.with_suffix(".ready").unlink(missing_ok=True)
                    log.info("daemon is wanted no more", extra={"device": path.stem})
            for name, content in wanted.items():
                path = self._folder / f"{name}.json"
                if not path.exists() or path.read_bytes() != content:
                    write_whole(path, content)
        except OSError as error:
            why = f"{self._folder} cannot be written: {error.strerror}"
            remedy = "make room, or let the agent write there; daemons do not know what to share"
            self._problems.note(AGENT, "daemons-not-asked", FOLDER, why, remedy)
        else:
            self._problems.solve(AGENT, "daemons-not-asked", FOLDER)


def without_missing(snapshot: Snapshot) -> Snapshot:
    """*snapshot* without what an earlier one said of daemons."""
    return _changed(snapshot, lambda _device, others: others)


def with_missing(
    snapshot: Snapshot,
    unserved: Collection[DeviceId],
    before: Mapping[DeviceId, Device],
    now: datetime,
) -> Snapshot:
    """*snapshot* with a condition of each *unserved* device, since when it was there *before*."""

    def conditions(device: Device, others: tuple[Condition, ...]) -> tuple[Condition, ...]:
        if device.id not in unserved:
            return others
        known = before.get(device.id)
        told = (c.since for c in known.conditions if c.code == SERVICE_MISSING) if known else ()
        missing = Condition(
            code=SERVICE_MISSING,
            severity=Severity.FATAL,
            message="the daemon that shares it is not ready",
            since=next(iter(told), None) or now,
        )
        return (*others, missing)

    return _changed(snapshot, conditions)


def _changed(
    snapshot: Snapshot,
    conditions: Callable[[Device, tuple[Condition, ...]], tuple[Condition, ...]],
) -> Snapshot:
    devices = []
    for device in snapshot.devices:
        others = tuple(c for c in device.conditions if c.code != SERVICE_MISSING)
        now = conditions(device, others)
        devices.append(device if now == device.conditions else attrs.evolve(device, conditions=now))
    same = all(a is b for a, b in zip(devices, snapshot.devices, strict=True))
    return snapshot if same else attrs.evolve(snapshot, devices=tuple(devices))


def _shared(view: View) -> Iterator[tuple[Device, Sharing]]:
    """Devices that daemons are to share, and how."""
    for device in view.snapshot.devices:
        given = view.assignments.get(device.id)
        if given is not None and given.terms is not None:
            sharing = given.terms.sharing
            if sharing.enforce is Enforcement.MPS:
                yield device, sharing


def _desired(device: Device, sharing: Sharing) -> bytes:
    equal = sharing.divide is Divide.EQUAL
    wanted = {
        "format": FORMAT,
        "device": str(device.id),
        "uuid": device.handle,
        "shares": sharing.shares,
        "memory": equal_share(device.capacity, sharing).get("memory"),
        "threads": 100 // sharing.shares if equal else None,
    }
    return json.dumps(wanted).encode() + b"\n"
