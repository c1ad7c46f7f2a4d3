"""H: how devices are. Not here: how a list tells it; H08 and H09 are checks over sockets."""

import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from accelkit.conformance.bench import PluginBench, Rig, aside
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.doors import Blind, Meddled
from accelkit.conformance.model import Badge, Check, Feature, Level
from accelkit.core.damping import FLAPPING
from accelkit.core.evidence import names_of, record
from accelkit.core.model import Condition, Device, DeviceId, Event
from accelkit.core.policy import HealthPolicy
from accelkit.core.values import Health, Scope, Severity
from accelkit.core.vendor import SupportsEvents, SupportsHealth
from accelkit.core.view import Verdict

MESSAGE_LIMIT = 1000
"""Bytes; longer ones are cut on their way to a pod's status."""
_LISTEN_S = 0.5


def _judged(rig: Rig, devices: tuple[Device, ...]) -> dict[DeviceId, Verdict]:
    return rig.verdicts(devices, rig.reading(devices))


def _bad(verdicts: dict[DeviceId, Verdict]) -> set[DeviceId]:
    return {i for i, v in verdicts.items() if v.health is Health.UNHEALTHY}


def _conditions(rig: Rig, device: Device) -> tuple[Condition, ...]:
    assert isinstance(rig.vendor, SupportsHealth)
    return tuple(rig.vendor.conditions(rig.door, device, ()))


def stated(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    reading = rig.reading(devices)
    for i, problem in reading.failed.items():
        yield f"{i} is there, and cannot be asked how it is: {problem.reason}"
    yield from _blind(bench, rig, devices, Health.HEALTHY, "is still called healthy")


def unknown(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    yield from _blind(bench, rig, devices, Health.UNHEALTHY, "is called unhealthy")


def _blind(
    bench: PluginBench, rig: Rig, devices: tuple[Device, ...], wrong: Health, words: str
) -> Iterator[str]:
    reading = rig.reading(devices, vendor=bench.plugin(), door=Blind(rig.host))
    for i, verdict in rig.verdicts(devices, reading).items():
        if verdict.health is wrong:
            yield f"{i} {words} when nothing about it can be read"


def told_once(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    rig.do(Feature.FAULT, rig.units()[1])
    found = {d.id: _conditions(rig, d) for d in devices}
    if not any(c.severity is Severity.FATAL for told in found.values() for c in told):
        yield "a unit has a fatal fault, and no device tells of it"
    for i, conditions in found.items():
        codes = [c.code for c in conditions]
        if len(codes) > len(set(codes)):
            yield f"{i} tells {codes[0]} more than once"
    again = {d.id: _conditions(rig, d) for d in devices}
    for i in sorted(found):
        before, after = _codes(found[i]), _codes(again[i])
        if before != after:
            told = ", ".join(sorted(code for code, _, _ in before ^ after))
            yield f"{i} is as it was, and {told} is not told both times"


def _codes(conditions: Iterable[Condition]) -> set[tuple[str, Severity, Scope]]:
    return {(c.code, c.severity, c.scope) for c in conditions}


def recovers(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices, unit = rig.devices(), rig.units()[1]
    before = _bad(_judged(rig, devices))
    for _ in range(2):
        rig.do(Feature.FAULT, unit)
        _judged(rig, devices)
        rig.do(Feature.FAULT, unit, undo=True)
        for i in sorted(_bad(_judged(rig, devices)) - before):
            yield f"{i} stays unhealthy after its fault is gone"
            return


def flapping(bench: PluginBench) -> Iterator[str]:
    """Time is that of the bench: it takes none."""
    rig = bench.rig()
    devices, unit = rig.devices(), rig.units()[1]
    always = _bad(_judged(rig, devices))
    verdicts: dict[DeviceId, Verdict] = {}
    now_s = 0.0
    policy = HealthPolicy()

    def look(after_s: float) -> dict[DeviceId, Verdict]:
        nonlocal verdicts, now_s
        now_s += after_s
        verdicts = rig.verdicts(devices, rig.reading(devices), verdicts, now_s)
        return verdicts

    look(0.0)
    for times in (policy.flap.changes + 1, policy.flap.changes + 2):
        ill = False
        for _ in range(times):
            ill = not ill
            rig.do(Feature.FAULT, unit, undo=not ill)
            look(1.0)
        held = {i for i, v in verdicts.items() if FLAPPING in {c.code for c in v.reasons}}
        state = "ill" if ill else "well"
        if not held:
            yield f"a unit changes {times} times, is {state} at last, and no device is held for it"
            return
        bad = _bad(look(policy.flap.hold + policy.recover_after)) - always
        if ill and not bad & held:
            yield f"{min(held)} is healthy after it was held, and its unit is ill"
        elif not ill and bad:
            yield f"{min(bad)} is unhealthy after it was held, and its unit is well"


def scoped(bench: PluginBench) -> Iterator[str]:
    cut = Feature.CUT in bench.subject.features(Level.L1)
    for rig in (bench.rig(), *([bench.rig(cut=True)] if cut else ())):
        devices = rig.devices()
        before = _bad(_judged(rig, devices))
        rig.do(Feature.FAULT, rig.units()[0])
        bad = _bad(_judged(rig, devices)) - before
        roots = {d.root for d in devices if d.id in bad}
        if len(roots) > 1:
            yield f"the fault of one unit makes {len(roots)} devices unhealthy"
        for device in devices:
            if device.parent is not None and device.root in bad and device.id not in bad:
                yield f"{device.id} is healthy, and its parent is not"


def bearable(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    before = _bad(_judged(rig, devices))
    rig.do(Feature.FLAW, rig.units()[1])
    after = _judged(rig, devices)
    if not any(v.reasons for v in after.values()):
        yield "a unit has a fault that is not fatal, and no device tells of it"
    for i in sorted(_bad(after) - before):
        yield f"{i} is unhealthy, by a fault that is not fatal"


def stays(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    before = {d.id: d for d in rig.devices()}
    rig.do(Feature.FAULT, rig.units()[1])
    after = {d.id: d for d in rig.report().devices}
    for i, device in before.items():
        if i not in after:
            yield f"{i} leaves the inventory when it fails"
        elif (device.counters, device.capacity) != (after[i].counters, after[i].capacity):
            yield f"{i} has other amounts when it fails"


def events(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    _listen(rig)
    heard: list[Event] = []
    for second in (False, True):
        rig.do(Feature.EVENT, rig.units()[1], undo=second)
        heard += _hear(rig, 1)
    if len(heard) != 2:
        yield f"two events are told one by one, and {len(heard)} are heard"
    for second in (False, True):
        rig.do(Feature.EVENT, rig.units()[1], undo=second)
    again = [e.code for e in _hear(rig, 2)]
    if again != [e.code for e in heard]:
        yield f"the same two at once are heard as {', '.join(again) or 'nothing'}"
    if more := _listen(rig):
        yield f"{more[0].code} is heard once too often"
    yield from _strangers(heard, devices)


def _listen(rig: Rig) -> list[Event]:
    assert isinstance(rig.vendor, SupportsEvents)
    return list(rig.vendor.listen(rig.door, _LISTEN_S))


def _hear(rig: Rig, count: int) -> list[Event]:
    """So many events, or fewer if they do not come."""
    heard: list[Event] = []
    until = time.monotonic() + rig.bench.patience(10)
    while len(heard) < count and time.monotonic() < until:
        heard += _listen(rig)
    return heard


def outlasts(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    _listen(rig)
    for second in (False, True):
        rig.do(Feature.EVENT, rig.units()[1], undo=second)
    heard = _hear(rig, 2)
    if not heard:
        yield "two events are told, and none is heard"
    evidence = record((), rig.vendor.name, heard, datetime.now(UTC))
    before = rig.reading(devices, evidence)
    after = rig.reading(devices, evidence, vendor=bench.plugin())
    for device in devices:
        old = _codes(before.conditions.get(device.id, ()))
        new = _codes(after.conditions.get(device.id, ()))
        for code, _, _ in sorted(old ^ new):
            lost = "no more" if code in {c for c, _, _ in old} else "only"
            yield f"{code} of {device.id} is told {lost} after a restart, with the same evidence"


def _strangers(heard: Iterable[Event], devices: Iterable[Device]) -> Iterator[str]:
    known = {name for d in devices for name in names_of(d)}
    for event in heard:
        if event.subject is not None and event.subject not in known:
            yield f"the event {event.code} is about {event.subject}, which is no device's name"


def readable(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    if Feature.FAULT in bench.subject.features(Level.L1):
        rig.do(Feature.FAULT, rig.units()[0])
    for device in devices:
        for condition in _conditions(rig, device):
            message = condition.message
            text = message.encode("utf-8", "replace")
            if len(text) > MESSAGE_LIMIT:
                yield f"{device.id}: the message of {condition.code} has {len(text)} bytes"
            if not message.isprintable() or text.decode() != message:
                yield f"{device.id}: the message of {condition.code} cannot be printed: {message!r}"


def while_listening(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices, vendor = rig.devices(), rig.vendor
    assert isinstance(vendor, SupportsEvents)
    patience_s = bench.patience(10)
    begun, ended = threading.Event(), threading.Event()
    door = Meddled(rig.door, begun.set)

    def listen() -> None:
        aside(lambda: list(vendor.listen(door, patience_s)), 2 * patience_s)
        ended.set()

    threading.Thread(target=listen, name="conformance-listen", daemon=True).start()
    # Whoever listens without a look at files has begun by the end of this.
    begun.wait(_LISTEN_S)
    for name, read in (
        ("discovery", lambda: bool(rig.report())),
        ("asking for health", lambda: bool(rig.reading(devices))),
    ):
        done, outcome = aside(read, patience_s / 2)
        if isinstance(outcome, BaseException):
            yield f"{name} fails while somebody listens: {outcome}"
        elif not done or ended.is_set():
            yield f"{name} waits until listen comes back"


_BADGE = (Badge.HEALTH,)
CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "H01",
        "Every device can be asked, and is not healthy when it cannot be.",
        stated,
        SupportsHealth,
        badges=_BADGE,
    ),
    in_process(
        "H02",
        "A fault is told once each time, for as long as it lasts.",
        told_once,
        SupportsHealth,
        Feature.FAULT,
        badges=_BADGE,
    ),
    in_process(
        "H03",
        "A device is healthy again when its fault is gone, without a restart.",
        recovers,
        SupportsHealth,
        Feature.FAULT,
        badges=_BADGE,
    ),
    in_process(
        "H04",
        "A device that keeps falling ill is held, and is in the end what it is.",
        flapping,
        SupportsHealth,
        Feature.FAULT,
        badges=_BADGE,
    ),
    in_process(
        "H05",
        "A fault reaches its device and the partitions of it, and no other.",
        scoped,
        SupportsHealth,
        Feature.FAULT,
        badges=_BADGE,
    ),
    in_process(
        "H06",
        "A device that cannot be read is not called unhealthy.",
        unknown,
        SupportsHealth,
        badges=_BADGE,
    ),
    in_process(
        "H07",
        "A fault that is not fatal leaves the device healthy.",
        bearable,
        SupportsHealth,
        Feature.FLAW,
        badges=_BADGE,
        must=False,
    ),
    in_process(
        "H10",
        "A device that fails stays in the inventory, with its amounts.",
        stays,
        SupportsHealth,
        Feature.FAULT,
        badges=_BADGE,
    ),
    in_process(
        "H11",
        "Events are heard once each, in order, and about known devices.",
        events,
        SupportsEvents,
        Feature.EVENT,
        badges=_BADGE,
        must=False,
    ),
    in_process(
        "H12",
        "Messages are printable and at most 1,000 bytes long.",
        readable,
        SupportsHealth,
        badges=_BADGE,
        must=False,
    ),
    in_process(
        "H13",
        "An event that was heard once still shows after a restart.",
        outlasts,
        SupportsEvents,
        SupportsHealth,
        Feature.EVENT,
        badges=_BADGE,
    ),
    in_process(
        "C04",
        "Reading calls come back while somebody listens.",
        while_listening,
        SupportsEvents,
        badges=(Badge.CORE,),
    ),
)
