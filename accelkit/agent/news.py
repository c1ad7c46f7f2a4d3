"""What is worth an event: devices that fall ill and recover, and some problems.

Not here: how it is told.
"""

from collections.abc import Iterable, Mapping

import attrs

from accelkit.core.model import DeviceId, Problem
from accelkit.core.offers import DEVICES_MISSING
from accelkit.core.values import Health, Standing
from accelkit.core.view import View

REASONS: Mapping[str, str] = {
    "config-invalid": "ConfigInvalid",
    "source-timeout": "DriverUnresponsive",
    "worker-died": "DriverUnresponsive",
    "driver-unresponsive": "DriverUnresponsive",
    "split-set": "SplitSet",
    DEVICES_MISSING: "OfferMismatch",
    "offer-shadowed": "OfferMismatch",
    "sharing-refused": "OfferMismatch",
    "resource-taken": "OfferMismatch",
    "device-name-taken": "OfferMismatch",
    "resource-name-invalid": "OfferMismatch",
}
"""Reason of the event by the code of a problem; others are told in metrics and pages alone."""


@attrs.frozen
class Told:
    """One event about the node."""

    reason: str
    text: str
    warning: bool = True


class News:
    """What changed since the last look: gone and back are told once each.

    Args:
        view: What is known at the beginning is no news.
    """

    def __init__(self, view: View) -> None:
        self._bad = {i: reason for i in view.devices if (reason := _bad(view, i))}
        self._problems: frozenset[tuple[str, str, str]] = frozenset()

    def of_devices(self, view: View) -> Iterable[Told]:
        """Devices of *view* that fell ill, are gone while held, or are well again."""
        now = {i: reason for i in view.devices if (reason := _bad(view, i))}
        told = []
        for device, reason in now.items():
            if self._bad.get(device) != reason:
                told.append(Told(reason, _why(view, device)))
        for device in self._bad.keys() - now.keys():
            # One that is neither is not known to be well: it may be told again.
            if _well(view, device):
                told.append(Told("DeviceRecovered", f"{device} is healthy again", warning=False))
            elif device in view.devices:
                now[device] = self._bad[device]
        self._bad = now
        return sorted(told, key=lambda one: one.text)

    def of_problems(self, problems: Iterable[Problem]) -> Iterable[Told]:
        """Those that were not there before, and are worth an event."""
        now = {(p.code, p.vendor or "", p.subject or ""): p for p in problems if p.code in REASONS}
        fresh = [now[key] for key in sorted(now.keys() - self._problems)]
        self._problems = frozenset(now)
        return [Told(REASONS[p.code], _sentence(p)) for p in fresh]


def _bad(view: View, device: DeviceId) -> str:
    if view.devices[device].standing is Standing.LOST:
        return "DeviceLost"
    verdict = view.verdicts.get(device)
    return "DeviceUnhealthy" if verdict and verdict.health is Health.UNHEALTHY else ""


def _well(view: View, device: DeviceId) -> bool:
    verdict = view.verdicts.get(device)
    return verdict is not None and verdict.health is Health.HEALTHY


def _why(view: View, device: DeviceId) -> str:
    verdict = view.verdicts.get(device)
    reasons = verdict.reasons if verdict else ()
    texts = [condition.said for condition in reasons]
    return f"{device} is unhealthy" + (f": {'; '.join(texts)}" if texts else "")


def _sentence(problem: Problem) -> str:
    about = " ".join(filter(None, (problem.vendor, problem.subject)))
    said = f"{about}: {problem.reason}" if about else problem.reason
    return f"{said}; {problem.remedy}" if problem.remedy else said
