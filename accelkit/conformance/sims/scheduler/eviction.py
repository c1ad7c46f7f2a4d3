"""Pods that must go because of taints on their devices. Not here: pods that are not let on.

Source:
    Seen on 1.37.2: NoExecute in a slice or in a rule marks the pod for deletion within 50 ms.
"""

from collections.abc import Iterator, Mapping, Sequence

from accelkit.conformance.sims.api.values import parts, text
from accelkit.conformance.sims.scheduler.pools import Device, DeviceId, Json
from accelkit.conformance.sims.scheduler.wants import tolerated


def evicted(
    pods: Sequence[Json], claims: Sequence[Json], devices: Mapping[DeviceId, Device]
) -> Iterator[Json]:
    """Pods with a device that has a NoExecute taint which its request does not tolerate.

    A toleration that ends after some seconds counts as one that does not end.
    """
    doomed = {uid for claim in claims if _hit(claim, devices) for uid in _users(claim)}
    for pod in pods:
        if text(pod, "metadata", "uid") in doomed and not text(
            pod, "metadata", "deletionTimestamp"
        ):
            yield pod


def _hit(claim: Json, devices: Mapping[DeviceId, Device]) -> bool:
    for result in parts(claim, "status", "allocation", "devices", "results"):
        found = devices.get((text(result, "driver"), text(result, "pool"), text(result, "device")))
        taints = found.taints if found else ()
        harsh = [taint for taint in taints if text(taint, "effect") == "NoExecute"]
        if any(not tolerated(taint, parts(result, "tolerations")) for taint in harsh):
            return True
    return False


def _users(claim: Json) -> Iterator[str]:
    return (text(one, "uid") for one in parts(claim, "status", "reservedFor"))
