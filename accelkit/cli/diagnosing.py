"""What keeps a node's devices from being served, as far as it can be seen from the node.

Not here: what vendors find themselves, and any output.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from accelkit.core.allocation import Finding
from accelkit.core.health import fatal
from accelkit.core.model import Problem
from accelkit.core.policy import Policy
from accelkit.core.values import Health
from accelkit.core.view import View

NO_DEVICES = "no device is offered"
NO_CLAIMS = "claims are not prepared"
_REGISTRY = "plugins_registry"
_PLUGINS = "device-plugins"


def findings_of(problems: Iterable[Problem], told: Iterable[Finding]) -> Iterator[Finding]:
    """Problems of plugins and policy, as findings: what they say is seen, not suspected.

    What has befallen several things is one finding. Of what is surely *told* of, by its name or in
    the same words, nothing is said.
    """
    sure = tuple(finding for finding in told if finding.sure)
    known = {word for finding in sure for word in finding.symptom.split()}
    words = {(finding.proof, finding.remedy) for finding in sure}
    alike: dict[tuple[object, ...], list[Problem]] = {}
    for one in problems:
        if one.subject not in known and (one.reason, one.remedy) not in words:
            alike.setdefault((one.vendor, one.code, one.reason, one.remedy), []).append(one)
    for first, *others in alike.values():
        where = "/".join(filter(None, (first.vendor, first.subject))) or "the node"
        yield Finding(
            symptom=f"{where} and {len(others)} more have the problem {first.code}"
            if others
            else f"{where} has the problem {first.code}",
            suspect=first.vendor or "the policy",
            proof=first.reason,
            remedy=first.remedy,
            sure=True,
        )


def ill_devices(view: View) -> Iterator[Finding]:
    """Devices that nobody can have, and why."""
    for device, verdict in view.verdicts.items():
        if verdict.health is Health.UNHEALTHY:
            yield Finding(
                symptom=f"{device} is {verdict.health}",
                suspect=device.vendor,
                proof="; ".join(condition.said for condition in fatal(verdict.reasons)),
                remedy=f"mend what it tells; if that is done: accelkit health clear {device}",
                sure=True,
            )


def look_around(policy: Policy) -> Iterator[Finding]:
    """What is wrong with the folders that the agent shares with the kubelet and the runtime."""
    kubelet = Path(policy.paths.kubelet)
    if not kubelet.is_dir():
        yield Finding(
            symptom=NO_DEVICES,
            suspect="the kubelet",
            proof=f"{kubelet} is no directory",
            remedy="run this on a node, or mount the kubelet's directory there",
            sure=True,
        )
    else:
        yield from _of_kubelet(policy, kubelet)
    yield from _of_folder(Path(policy.paths.cdi), NO_CLAIMS, "CDI files of claims")
    yield from _of_folder(Path(policy.paths.run), NO_CLAIMS, "the record of claims")


def _of_kubelet(policy: Policy, kubelet: Path) -> Iterator[Finding]:
    for name in (_REGISTRY, _PLUGINS):
        if not (kubelet / name).is_dir():
            yield Finding(
                symptom=NO_DEVICES,
                suspect="the kubelet",
                proof=f"{kubelet / name} is no directory",
                remedy="start the kubelet once; it makes the directory",
                sure=True,
            )
    socket = Path(policy.paths.pod_resources_socket)
    if not socket.is_socket():
        yield Finding(
            symptom="nobody knows who holds devices, so that none changes hands",
            suspect="the kubelet",
            proof=f"{socket} is no socket",
            remedy="start the kubelet, and mount its pod-resources directory there",
            sure=True,
        )


def _of_folder(folder: Path, symptom: str, what: str) -> Iterator[Finding]:
    """Whether *folder*, or the nearest one above it that is there, can be written into."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        yield Finding(
            symptom=symptom,
            suspect="rights",
            proof=f"{nearest} cannot be written into by this user",
            remedy=f"let the agent write {what} to {folder}",
            sure=os.geteuid() == 0,
        )
