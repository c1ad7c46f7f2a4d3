"""C and L: calls side by side, and what is left behind. Not here: how calls are queued."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations

from accelkit.conformance.bench import PluginBench, Rig, aside, grant
from accelkit.conformance.checks.discovery import differences
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.doors import Blocked, Meddled
from accelkit.conformance.model import Check
from accelkit.core.allocation import ContainerEdits, Edits
from accelkit.core.errors import AccelkitError, IllegalSet
from accelkit.core.model import Device, DeviceId
from accelkit.core.reading import grant_edits
from accelkit.core.vendor import Vendor

CYCLES = 50
_SPARE = 5
"""Files and threads that anything else in this process may have opened meanwhile."""


def _usable(rig: Rig) -> tuple[Device, ...]:
    return tuple(d for d in rig.devices() if d.usable)


def not_torn(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    first, devices = rig.report(), _usable(rig)
    expected = grant_edits(rig.vendor, rig.door, grant(devices))
    found: dict[str, None] = {}
    waits = threading.Event()

    def beside() -> None:
        if waits.is_set():
            return
        done, outcome = aside(
            lambda: grant_edits(rig.vendor, rig.door, grant(devices)), bench.patience(1)
        )
        if not done:  # it takes its turn, which another check looks at
            waits.set()
        elif isinstance(outcome, BaseException):
            found[f"edits fail in the midst of discovery: {outcome}"] = None
        elif outcome != expected:
            found["edits differ in the midst of discovery"] = None

    report = rig.report(door=Meddled(rig.door, beside))
    yield from found
    yield from differences(first, report)


def only_itself(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = _usable(rig)
    grant_edits(rig.vendor, rig.door, grant(devices))
    entered, go_on = threading.Event(), threading.Event()
    bench.later(go_on.set)
    door = Blocked(rig.door, entered, go_on)
    reader = threading.Thread(
        target=lambda: aside(lambda: list(rig.vendor.discover(door)), bench.patience(30)),
        name="conformance-blocked",
        daemon=True,
    )
    reader.start()
    if not entered.wait(bench.patience(10)):  # a plugin that reads nothing cannot be blocked
        return
    done, outcome = aside(
        lambda: grant_edits(rig.vendor, rig.door, grant(devices)), bench.patience(10)
    )
    go_on.set()
    if not done:
        yield "edits do not come back while the hardware lets discovery wait"
    elif isinstance(outcome, BaseException):
        yield f"edits fail while the hardware lets discovery wait: {outcome}"


def no_leaks(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = _usable(rig)

    def cycle() -> None:
        vendor = bench.subject.make()
        rig.report(vendor=vendor)
        rig.reading(devices, vendor=vendor)
        vendor.close()
        vendor.close()

    for _ in range(3):
        cycle()
    before = _open_files(), threading.active_count()
    for _ in range(CYCLES):
        cycle()
    for what, old, new in zip(
        ("open files", "threads"), before, (_open_files(), threading.active_count()), strict=True
    ):
        if new - old > _SPARE:
            yield f"{CYCLES} starts and ends leave {new - old} {what}"
    for what in rig.elsewhere().left:
        yield f"it leaves {what} to whatever else is in its process"
    again = rig.report(vendor=_closed(bench))
    yield from (f"after it was closed, {text}" for text in differences(rig.report(), again))


def _closed(bench: PluginBench) -> Vendor:
    """A plugin that was closed, as it may be at any time, and is asked again."""
    vendor = bench.plugin()
    vendor.close()
    return vendor


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names, not paths
    except OSError:  # not on Linux
        return 0


def _of_others(edits: ContainerEdits, device: Device, devices: Iterable[Device]) -> Iterator[str]:
    """Nodes in *edits* of *device* that are another device's own."""
    given = {node.path for node in edits.nodes} - {node.path for node in device.nodes}
    for path in sorted(given):
        owners = [d.id for d in devices if path in {node.path for node in d.nodes}]
        if len(owners) == 1:  # what several have is nobody's own
            yield f"{device.id} needs {path}, which is {owners[0]}"


def of_a_union(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = _usable(rig)
    alone = {d.id: _each(rig, (d,)).each[d.id] for d in devices}
    for device in devices:
        yield from _of_others(alone[device.id], device, devices)
    for size in (2, len(devices)):
        for several in list(combinations(devices, size))[:6]:
            for i, edits in _of_set(rig, several).items():
                if edits != alone[i]:
                    yield f"{i} has other edits of its own in a set of {size} than alone"


def _of_set(rig: Rig, devices: Iterable[Device]) -> Mapping[DeviceId, ContainerEdits]:
    """What each device needs in the set; nothing of a set that cannot be, as its laws say, too."""
    try:
        return _each(rig, devices).each
    except IllegalSet:
        return {}


def _each(rig: Rig, devices: Iterable[Device]) -> Edits:
    return grant_edits(rig.vendor, rig.door, grant(devices))


def typed(call: Callable[[], object], what: str) -> Iterator[str]:
    """What *call* raises that is none of accelkit's own errors, or a bug by its own word."""
    try:
        call()
    except AccelkitError as error:
        if error.code in {"plugin-bug", "plugin-contract"}:
            yield f"{what}: {error}"
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        yield f"{what}: {type(error).__name__}: {error}"


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process("L06", "Plugins that are built and closed leave nothing behind.", no_leaks),
    in_process("L11", "What a device needs is the same in every set.", of_a_union),
    in_process("C03", "Discovery and edits beside each other answer as alone.", not_torn),
    in_process("C05", "Hardware that lets one call wait lets no other wait.", only_itself),
)
