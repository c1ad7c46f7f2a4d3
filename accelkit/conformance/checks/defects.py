"""D: what a plugin says of a host where something is broken or missing. Not here: a sound host."""

import logging
from collections.abc import Iterator
from pathlib import Path

from accelkit.conformance.bench import PluginBench, Rig, told
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.model import Check, Feature, Level
from accelkit.core.errors import AccelkitError
from accelkit.core.evidence import names_of
from accelkit.core.model import Device
from accelkit.core.policy import Offer
from accelkit.core.reading import GROUPS, LINKS, SOFTWARE, device_edits, read_inventory
from accelkit.core.values import Severity


def one_spoilt(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    before = {d.id: d for d in rig.devices()}
    rig.do(Feature.SPOIL, rig.units()[1])
    report = rig.report()
    after = {d.id for d in report.devices}
    gone = [d for i, d in before.items() if i not in after]
    lost_roots = {d.root for d in gone}
    if len(lost_roots) > 1:
        yield f"one unit is unreadable, and {len(lost_roots)} devices are missing"
    subjects = {p.subject for p in report.problems}
    for device in gone:
        if device.parent is None and subjects.isdisjoint(names_of(device)):
            yield f"{device.id} cannot be read, and no problem names it"
    if not gone and not subjects - {None}:
        yield "one unit is unreadable, and nothing is said of it"


def none_or_not_ready(bench: PluginBench) -> Iterator[str]:
    empty = read_inventory(bench.plugin(), bench.nothing())
    # Links and versions are not asked for where discovery finds nothing.
    said = [p.reason for p in empty.problems if p.subject not in {LINKS, GROUPS, SOFTWARE}]
    yield from told("on a host without hardware", said)
    if empty.devices:
        yield f"on a host without hardware it finds {empty.devices[0].id}"
    yield from _logged(bench)
    if Feature.UNLOAD not in bench.subject.features(Level.L1):
        return
    rig = bench.rig()
    rig.devices()
    rig.do(Feature.UNLOAD)
    bare = read_inventory(rig.vendor, rig.door)
    if bare.devices:
        yield f"without its driver {bare.devices[0].id} is there all the same"
    elif not bare.problems:
        yield "without its driver the host looks as if it had no hardware"
    rig.do(Feature.UNLOAD, undo=True)
    if not rig.report().devices:
        yield "when the driver is back, no device is"


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _logged(bench: PluginBench) -> Iterator[str]:
    """Lines that a plugin logs although there is nothing to say."""
    home = logging.getLogger(bench.subject.vendor.__module__)
    lines = _Lines()
    home.addHandler(lines)
    try:
        list(bench.plugin().discover(bench.nothing()))
    finally:
        home.removeHandler(lines)
    yield from (f"on a host without hardware it logs: {line}" for line in lines.lines)


def nodes_missing(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    device = next((d for d in rig.devices() if d.nodes and d.usable), None)
    if device is None:
        yield "no device has a device node: what would a container get?"
        return
    for node in device.nodes:
        Path(f"{rig.directory}{node.on_host}").unlink()
    report = read_inventory(rig.vendor, rig.door)
    now = next((d for d in report.devices if d.id == device.id), None)
    if now is None:  # gone or unreadable: nobody gets it
        return
    if not any(c.severity is Severity.FATAL for c in now.conditions):
        reading = rig.reading((now,)).conditions.get(now.id, ())
        if not any(c.severity is Severity.FATAL for c in reading):
            yield f"{now.id} is as if it were ready, without {device.nodes[0].on_host}"
    yield from _handed_out(rig, device, now)


def _handed_out(rig: Rig, device: Device, now: Device) -> Iterator[str]:
    try:
        device_edits(rig.vendor, rig.door, now, Offer(name="all"))
    except AccelkitError:
        return
    yield f"{device.id} is handed out without {device.nodes[0].on_host}"


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "D04",
        "A device that cannot be read is reported as such, and the others are still there.",
        one_spoilt,
        Feature.SPOIL,
    ),
    in_process(
        "D05",
        "A host without hardware and hardware without its driver are told apart.",
        none_or_not_ready,
    ),
    in_process(
        "D06",
        "A device whose device files are missing is not ready and is not handed out.",
        nodes_missing,
        Feature.MACHINE,
    ),
)
