"""From what vendors said to what the node believes, and to the view of it. Pure.

Not here: the questions to vendors, and the judgement on one device or one offer.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

import attrs

from accelkit.core.allocation import ContainerEdits
from accelkit.core.changes import diff
from accelkit.core.damping import NODE_MISSING
from accelkit.core.errors import PluginError
from accelkit.core.evidence import names_of
from accelkit.core.health import judge, judge_away
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    Group,
    Holding,
    Link,
    Problem,
    Snapshot,
    VendorReport,
    contradictions,
)
from accelkit.core.offers import assign, check_offers
from accelkit.core.partitioning import potential, whole_again
from accelkit.core.policy import Policy
from accelkit.core.reading import GROUPS, LINKS, SOFTWARE, HealthReading
from accelkit.core.values import PCIE_KINDS, FrozenMap, Severity, Standing
from accelkit.core.view import View

__all__ = ["LOST", "assemble", "build_view", "diff"]

LOST = "lost"
"""FATAL condition: somebody holds the device, but it is gone."""

_OWN = frozenset({LOST, NODE_MISSING})
_NOTHING = Snapshot()


def assemble(
    node: str,
    reports: Iterable[VendorReport],
    readings: Iterable[HealthReading],
    *,
    previous: Snapshot | None,
    held: Collection[DeviceId],
    now: datetime,
    unseen: Collection[Device] = (),
) -> Snapshot:
    """Put together what is believed of the node.

    A device that is not reported is *stale* if a problem names it or its whole device, or if its
    vendor failed; *lost* if somebody holds it or a partition of it; else it is gone. A held
    device never leaves, so what its vendor reports in its place is left out. A vendor whose
    report contradicts itself counts as failed; others are not touched. (H10)

    Args:
        node: Its name.
        reports: The latest of each vendor; a vendor without one is no longer asked.
        readings: The latest of each vendor. A device that its vendor could not be asked about is
            stale, too: its facts are new, its conditions the last ones. So is every device of a
            vendor whose events cannot be heard.
        previous: The last snapshot of this node; None: there was none.
        held: Devices that somebody holds.
        now: When the last report came.
        unseen: Devices that were there since *previous*, and were reported neither then nor now.

    Returns:
        The same again when called again with itself as *previous*.
    """
    before = previous or _NOTHING
    read = {r.vendor: r for r in readings}
    said = {r.vendor: r for r in reports}
    vendors = sorted({*said, *(d.id.vendor for d in before.devices)})
    parts = [
        _believed(
            said.get(vendor, VendorReport(vendor=vendor, answered=True)),
            read.get(vendor, HealthReading(vendor=vendor)),
            before,
            frozenset(held),
            unseen,
        )
        for vendor in vendors
    ]
    return Snapshot(
        node=node,
        devices=tuple(_dated(d, before, now) for part in parts for d in part.devices),
        links=tuple(link for part in parts for link in part.links),
        groups=tuple(group for part in parts for group in part.groups),
        problems=_since((p for part in parts for p in part.problems), before.problems, now),
        software=FrozenMap({k: v for part in parts for k, v in part.software.items()}),
        answered=before.answered | {p.vendor for p in parts if p.answered and p.vendor in said},
        taken_at=now,
    )


def build_view(
    snapshot: Snapshot,
    policy: Policy,
    *,
    holdings: Iterable[Holding] = (),
    edits: Mapping[DeviceId, ContainerEdits],
    domains: Mapping[str, str],
    sets: Collection[str] = (),
    previous: View | None,
    now_s: float,
    now: datetime,
    boot: str = "",
    revision: str = "",
    holders_known: bool = True,
    makers: Collection[str] | None = None,
    made: Collection[DeviceId] = (),
    stuck: Collection[DeviceId] = (),
    renamed: Collection[DeviceId] = (),
    going: Mapping[DeviceId, str] = MappingProxyType({}),
    dra_waits: Mapping[str, str] = MappingProxyType({}),
    kubelet_waits: Mapping[str, str] = MappingProxyType({}),
) -> View:
    """Judge *snapshot* by *policy*: verdicts, offers, and what policy asks for in vain.

    Args:
        snapshot: What is believed.
        policy: What the operator wants.
        holdings: Who holds what.
        edits: Of each device that could be asked for; those of devices without offer are left out.
        domains: Vendor to resource prefix.
        sets: Vendors whose edits may describe a set.
        previous: The last view, the memory of verdicts and assignments; None: there was none.
        now_s: Monotonic seconds.
        now: Wall time, which informs only.
        boot: Id of the boot.
        revision: Of the policy.
        holders_known: False: nothing that was assigned changes hands.
        makers: Vendors whose plugins can make partitions; None: all.
        made: Partitions that were made for claims.
        stuck: Devices that a claim left behind.
        renamed: Devices that claims have from a driver of another name.
        going: Devices that are about to be unmade or set to another mode, and why.
        dra_waits: Extended-resource names that may not be in a slice yet, and why.
        kubelet_waits: Resource names that the kubelet must see as Unhealthy, and why.
    """
    before = previous or View()
    kept = tuple(holdings)
    could_be = potential(snapshot, policy, makers=makers)
    given = assign(
        snapshot,
        policy,
        before.assignments,
        kept,
        domains=domains,
        holders_known=holders_known,
        potential=could_be,
        whole_again=whole_again(snapshot, policy, makers=makers),
        going=going,
    )
    problems = (*snapshot.problems, *check_offers(snapshot, policy, given, domains))
    return View(
        snapshot=attrs.evolve(snapshot, problems=_since(problems, before.snapshot.problems, now)),
        verdicts=judge(snapshot, before.judged, now_s, policy.health, now),
        away=judge_away(snapshot, before, now_s, policy.health, now),
        assignments=given,
        holdings=kept,
        offers=policy.offers,
        domains=FrozenMap(domains),
        sets=frozenset(sets),
        revision=revision,
        boot=boot,
        evict=frozenset(policy.health.evict),
        edits=FrozenMap(
            (i, e) for i, e in edits.items() if i in given and given[i].terms is not None
        ),
        potential=could_be,
        made=frozenset(made),
        stuck=frozenset(stuck),
        renamed=frozenset(renamed),
        dra_waits=FrozenMap(dra_waits),
        kubelet_waits=FrozenMap(kubelet_waits),
    )


# What one vendor's devices are believed to be.


def _believed(
    report: VendorReport,
    reading: HealthReading,
    before: Snapshot,
    held: Collection[DeviceId],
    unseen: Collection[Device],
) -> VendorReport:
    """*report* with what is carried over from *before*, standings and conditions."""
    vendor = report.vendor
    if report.answered and (wrong := _wrong(report)):
        bug = Problem(
            vendor=vendor,
            code=PluginError.code,
            reason="; ".join(wrong),
            remedy=f"report it to the author of the plugin for {vendor}",
        )
        report = VendorReport(vendor=vendor, answered=False, problems=(bug,))
    earlier = {d.id: d for d in (*unseen, *before.devices) if d.id.vendor == vendor}
    problems = [*report.problems, *reading.problems]
    devices = _with_carried(report, earlier, held, problems)
    problems += [p for i, p in reading.failed.items() if i in devices]
    old = VendorReport(
        vendor=vendor,
        answered=True,
        links=tuple(link for link in before.links if link.a.vendor == vendor),
        groups=tuple(g for g in before.groups if {m.vendor for m in g.members} == {vendor}),
        software=FrozenMap(
            (name, version)
            for name, version in before.software.items()
            if name.startswith(f"{vendor}/")
        ),
    )
    failed = {p.subject for p in report.problems} if report.answered else {LINKS, GROUPS, SOFTWARE}
    now = {f"{vendor}/{name}": version for name, version in report.software.items()}
    return VendorReport(
        vendor=vendor,
        answered=report.answered,
        devices=tuple(_told(d, earlier.get(d.id), reading) for d in devices.values()),
        links=_links(old.links, report.links, devices, failed=LINKS in failed),
        groups=_groups(old.groups, report.groups, devices, failed=GROUPS in failed),
        problems=problems,
        software=FrozenMap({**old.software, **now} if SOFTWARE in failed else now),
    )


def _wrong(report: VendorReport) -> tuple[str, ...]:
    strange = (
        f"{d.id} is another vendor's device" for d in report.devices if d.id.vendor != report.vendor
    )
    return (*strange, *contradictions(report.devices, report.links, report.groups))


def _with_carried(
    report: VendorReport,
    earlier: Mapping[DeviceId, Device],
    held: Collection[DeviceId],
    problems: list[Problem],
) -> dict[DeviceId, Device]:
    """What is reported, and what is kept though it is not."""
    fresh = {d.id: d for d in report.devices}
    staying = {*held, *(d.root for d in earlier.values() if d.id in held)}
    named = {p.subject for p in report.problems if p.subject is not None}
    carried: dict[DeviceId, Device] = {}
    for device in earlier.values():
        if device.id in fresh:
            continue
        parent = earlier.get(device.root, device)
        unread = not report.answered or not named.isdisjoint(names_of(device) | names_of(parent))
        if unread and (device.standing is not Standing.LOST or report.answered):
            carried[device.id] = attrs.evolve(device, standing=Standing.STALE)
        elif device.id in staying:
            carried[device.id] = attrs.evolve(device, standing=Standing.LOST)
    # A partition that cannot be read keeps a parent that nobody mentions any more.
    for device in tuple(carried.values()):
        if device.root not in fresh and device.root not in carried:
            carried[device.root] = attrs.evolve(earlier[device.root], standing=device.standing)
    for root in sorted({d.root for d in carried.values()} & fresh.keys()):
        _make_room(root, fresh, carried, earlier, held, problems)
    return {**fresh, **carried}


def _make_room(  # noqa: PLR0917 - one family, in the maps that it is taken out of
    root: DeviceId,
    fresh: dict[DeviceId, Device],
    carried: dict[DeviceId, Device],
    earlier: Mapping[DeviceId, Device],
    held: Collection[DeviceId],
    problems: list[Problem],
) -> None:
    """Where carried partitions of *root* cannot be beside what is reported, leave something out.

    Partitions that nobody holds give way to what is reported, which gives way to held ones; if
    the whole device as reported cannot have those at all, it stays as it was.
    """
    if _fit(root, fresh, carried):
        return
    for i in [i for i, d in carried.items() if d.root == root and i not in held]:
        del carried[i]
    if _fit(root, fresh, carried):
        return
    kept = [d for d in carried.values() if d.root == root]
    slots = {slot for d in kept if d.placement for slot in d.placement.slots}
    for d in [d for d in fresh.values() if d.parent == root and d.placement]:
        if not slots.isdisjoint(d.placement.slots if d.placement else ()):
            del fresh[d.id]
    if not _fit(root, fresh, carried):
        for i in [i for i, d in fresh.items() if d.parent == root]:
            del fresh[i]
            if i in earlier:
                fresh[i] = attrs.evolve(earlier[i], standing=Standing.PRESENT)
        fresh[root] = attrs.evolve(earlier[root], standing=Standing.STALE)
    names = ", ".join(d.id.name for d in kept)
    problems.append(
        Problem(
            vendor=root.vendor,
            subject=root.name,
            code="cut-while-held",
            reason=f"{names} is gone and something else in its place, though somebody holds it",
            remedy=f"end the pods that hold {names}; what took the place is left out until then",
        )
    )


def _fit(
    root: DeviceId, fresh: Mapping[DeviceId, Device], carried: Mapping[DeviceId, Device]
) -> bool:
    family = [d for d in (*fresh.values(), *carried.values()) if d.root == root]
    return not contradictions(family, (), ())


def _told(device: Device, earlier: Device | None, reading: HealthReading) -> Device:
    """*device* with its conditions; stale if nothing new is known of how it is."""
    standing = device.standing
    conditions = [c for c in device.conditions if c.code == NODE_MISSING]
    if standing is Standing.LOST:
        gone = "it is not there any more, but somebody holds it"
        conditions.append(Condition(code=LOST, severity=Severity.FATAL, message=gone))
    told = reading.conditions.get(device.id)
    if told is None:
        told = tuple(c for c in earlier.conditions if c.code not in _OWN) if earlier else ()
    if device.id not in reading.conditions or reading.unheard:
        standing = Standing.STALE if standing is Standing.PRESENT else standing
    own = {c.code for c in conditions}
    conditions += [c for c in told if c.code not in own]
    if not conditions and not device.conditions and standing is device.standing:
        return device  # nearly always; a copy costs ten times as much
    return attrs.evolve(device, conditions=conditions, standing=standing)


def _links(
    old: Iterable[Link],
    new: Iterable[Link],
    devices: Mapping[DeviceId, Device],
    *,
    failed: bool,
) -> tuple[Link, ...]:
    """New links, and old ones of devices that are carried over; all old ones where reading failed.

    A pair has one PCIe link and one of each other kind.
    """

    def sort(link: Link) -> tuple[DeviceId, DeviceId, str]:
        return (link.a, link.b, "PCIe" if link.kind in PCIE_KINDS else link.kind)

    kept = {sort(link): link for link in new if {link.a, link.b} <= devices.keys()}
    for link in old:
        if {link.a, link.b} <= devices.keys():
            if failed:
                kept[sort(link)] = link
            elif any(devices[i].standing is not Standing.PRESENT for i in (link.a, link.b)):
                kept.setdefault(sort(link), link)
    return tuple(kept.values())


def _groups(
    old: Iterable[Group],
    new: Iterable[Group],
    devices: Mapping[DeviceId, Device],
    *,
    failed: bool,
) -> tuple[Group, ...]:
    """New groups, and old ones with a member that is carried over; all where reading failed."""
    kept = {(g.kind, g.name): g for g in new if devices.keys() >= set(g.members)}
    for group in old:
        carried = any(
            i in devices and devices[i].standing is not Standing.PRESENT for i in group.members
        )
        if (failed or carried) and devices.keys() >= set(group.members):
            kept[group.kind, group.name] = group
    return tuple(kept.values())


# Since when.


def _dated(device: Device, before: Snapshot, now: datetime) -> Device:
    if not device.conditions:
        return device
    earlier = before.by_id.get(device.id)
    known = {c.code: c.since for c in earlier.conditions} if earlier else {}
    return attrs.evolve(
        device,
        conditions=tuple(
            attrs.evolve(c, since=known.get(c.code) or now) for c in device.conditions
        ),
    )


def _since(
    problems: Iterable[Problem], before: Iterable[Problem], now: datetime
) -> tuple[Problem, ...]:
    """*problems*, each once, with the time since which it has lasted."""
    known = {(p.vendor, p.subject, p.code): p.since for p in before}
    once: dict[tuple[str | None, str | None, str], Problem] = {}
    for problem in problems:
        key = (problem.vendor, problem.subject, problem.code)
        since = known.get(key) or problem.since or now
        once.setdefault(key, attrs.evolve(problem, since=since))
    return tuple(once.values())
