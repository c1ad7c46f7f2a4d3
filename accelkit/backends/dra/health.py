"""The health of a driver's devices as the kubelet is told. Pure. Not here: when it is told."""

from collections.abc import Iterable, Iterator

import attrs

from accelkit.backends.wire.messages import drahealth
from accelkit.backends.wire.status import cut
from accelkit.core.model import Condition, DeviceId
from accelkit.core.values import Health, Severity, Standing
from accelkit.core.view import Verdict, View

MESSAGE_LIMIT = 1000
"""Bytes. The kubelet cuts at 1021 bytes, and where that is inside a character, the API server
refuses the whole status of the pod for as long as the message stands (seen on 1.37.2)."""
REMEDY = "delete the pod to get another device"

_WORDS = {
    Health.HEALTHY: drahealth.HEALTHY,
    Health.UNHEALTHY: drahealth.UNHEALTHY,
    Health.UNKNOWN: drahealth.UNKNOWN,
}


@attrs.frozen(order=True)
class DeviceHealth:
    """One device of a list."""

    name: str
    health: Health
    message: str = ""


def health_of(view: View, vendor: str, backend: str) -> tuple[DeviceHealth, ...]:
    """How every device is that *backend* has of *vendor*, or that somebody got through it.

    Returns:
        By name. A partition that does not exist yet is as its parent is.
    """
    through = {h.device for h in view.holdings if h.through == backend}
    through |= {
        device
        for device, given in view.assignments.items()
        if given.terms is not None and given.terms.through == backend
    }
    known = {**view.devices, **{device.id: device for device in view.potential}}
    ours = sorted(device for device in through if device.vendor == vendor)
    return tuple(_judged(view, known[device].root, device) for device in ours if device in known)


def message_of(
    list_of: Iterable[DeviceHealth], pool: str, *, now_s: int, expires_s: int
) -> drahealth.NodeWatchResourcesResponse:
    """The list as it is sent.

    Args:
        list_of: Every device.
        pool: That of all of them.
        now_s: Seconds since 1970.
        expires_s: How long the kubelet may believe it.
    """
    return drahealth.NodeWatchResourcesResponse(
        devices=[
            drahealth.DeviceHealth(
                device=drahealth.DeviceIdentifier(pool_name=pool, device_name=device.name),
                health=_WORDS[device.health],
                last_updated_time=now_s,
                health_check_timeout_seconds=expires_s,
                message=device.message,
            )
            for device in list_of
        ]
    )


def _judged(view: View, root: DeviceId, ident: DeviceId) -> DeviceHealth:
    device = view.devices.get(ident)
    if device is not None and device.standing is Standing.LOST:
        return DeviceHealth(ident.name, Health.UNHEALTHY, f"{REMEDY}: it is gone")
    verdict = view.verdicts.get(ident) or view.verdicts.get(root)
    if verdict is None:
        return DeviceHealth(ident.name, Health.UNKNOWN, "its health is not known yet")
    # What is unknown only for a moment stays as it was: health must not flap with every restart.
    health = Health.HEALTHY if verdict.good else verdict.health
    return DeviceHealth(ident.name, health, cut("; ".join(_sentences(verdict)), MESSAGE_LIMIT))


def _sentences(verdict: Verdict) -> Iterator[str]:
    """What there is to say of a device, what to do first."""
    told = [_said(reason) for reason in verdict.reasons if reason.severity is not Severity.INFO]
    if verdict.health is Health.UNHEALTHY:
        yield REMEDY
    if verdict.overdue:
        yield "it cannot be asked how it is"
    yield from told


def _said(condition: Condition) -> str:
    message = condition.message.rstrip(".")
    return f"{condition.code}: {message}" if message else condition.code
