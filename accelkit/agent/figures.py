"""What the metrics say of a view. Not here: what is counted where it happens."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from accelkit.agent.metrics import Labels, Metrics
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.evidence import names_of
from accelkit.core.model import Device, Evidence, Holding, Problem
from accelkit.core.values import Health
from accelkit.core.view import View


def show(metrics: Metrics, view: View) -> None:
    """Set every gauge that follows from *view*."""
    metrics.replace("accelkit_devices", Counter(_summary(view, d) for d in view.snapshot.devices))
    metrics.replace(
        "accelkit_device_info", {_identity(view, d): 1.0 for d in view.snapshot.devices}
    )
    metrics.replace(
        "accelkit_device_health",
        {
            (str(device), health): float(verdict.health is health)
            for device, verdict in view.verdicts.items()
            for health in Health
        },
    )
    metrics.replace(
        "accelkit_device_condition",
        {
            (str(device), condition.code, condition.severity): 1.0
            for device, verdict in view.verdicts.items()
            for condition in verdict.reasons
        },
    )
    metrics.replace("accelkit_device_holder", {_holder(h): 1.0 for h in view.holdings})
    metrics.replace("accelkit_policy_info", {(view.revision,): 1.0})


def show_restarts(metrics: Metrics, restarts: Mapping[str, Mapping[str, int]]) -> None:
    """Count the processes that were started again, by vendor and reason."""
    metrics.replace(
        "accelkit_worker_restarts_total",
        {(name, reason): n for name, by in restarts.items() for reason, n in by.items()},
    )


def show_claims(
    metrics: Metrics,
    entries: Iterable[LedgerEntry],
    now: datetime,
    drivers: Iterable[str] = (),
) -> None:
    """Count claims by driver and state; of *drivers* those that have none, too."""
    counts: Counter[Labels] = Counter(
        {(driver, state): 0 for driver in drivers for state in EntryState}
    )
    oldest: dict[Labels, float] = {}
    for entry in entries:
        key = (entry.driver, entry.state.value)
        counts[key] += 1
        if entry.since is not None:
            oldest[key] = max(oldest.get(key, 0.0), (now - entry.since).total_seconds())
    metrics.replace("accelkit_claims", counts)
    metrics.replace("accelkit_oldest_claim_seconds", oldest)


def show_problems(metrics: Metrics, problems: Iterable[Problem]) -> None:
    """Count *problems* by vendor and code."""
    metrics.replace(
        "accelkit_problems", Counter((problem.vendor or "", problem.code) for problem in problems)
    )


def show_events(metrics: Metrics, view: View, evidence: Iterable[Evidence]) -> None:
    """Count what was heard: of a device where one has that name, else of the vendor.

    What a library and the kernel both told counts once.
    """
    known = {
        (device.id.vendor, name): str(device.id)
        for device in view.snapshot.devices
        for name in names_of(device)
    }
    told: Counter[tuple[str, str, str]] = Counter()
    for heard in evidence:
        device = known.get((heard.vendor, heard.subject), heard.vendor)
        told[device, heard.code, heard.source] += heard.count
    counts: dict[Labels, float] = {}
    for (device, code, _), count in told.items():
        counts[device, code] = max(count, counts.get((device, code), 0))
    metrics.replace("accelkit_device_events_total", counts)


def _offer(view: View, device: Device) -> str:
    assignment = view.assignments.get(device.id)
    return assignment.terms.name if assignment and assignment.terms else ""


def _summary(view: View, device: Device) -> Labels:
    verdict = view.verdicts.get(device.id)
    health = verdict.health if verdict else Health.UNKNOWN
    return (device.id.vendor, device.kind, _offer(view, device), health, device.standing)


def _identity(view: View, device: Device) -> Labels:
    numa = device.locality.numa_node
    return (
        str(device.id),
        device.id.vendor,
        device.kind,
        device.product or "",
        str(device.parent or ""),
        device.placement.profile if device.placement else "",
        _offer(view, device),
        "" if numa is None else str(numa),
        device.locality.pci_address or "",
    )


def _holder(holding: Holding) -> Labels:
    who = holding.holder
    return (
        str(holding.device),
        holding.share or "",
        who.namespace or "",
        who.pod or "",
        who.container or "",
        who.claim or "",
        holding.through,
    )
