"""Pods as an API server has them, and what a simulated kubelet makes of them. Not here: running.

Source:
    kubernetes v1.37.2, k8s.io/api/core/v1; extended resources are DRA's since kubelets of 1.36.
"""

import asyncio
from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from accelkit.conformance.sims.api.quantity import amount
from accelkit.conformance.sims.api.values import amounts, part, parts, text
from accelkit.conformance.sims.dra.cdi import Injected
from accelkit.conformance.sims.dra.claims import Known, PodId
from accelkit.conformance.sims.dra.events import PreparedDevice
from accelkit.conformance.sims.pods import Container, Pod

Json = Mapping[str, object]


@frozen
class Use:
    """A claim, or a request of it, that a container names."""

    container: str
    claim: str
    """The name of the object."""
    entry: str
    """As the pod calls it."""
    request: str = ""
    """Empty: all of it."""

    @property
    def shown(self) -> str:
        """Its name in the pod's status."""
        return f"claim:{self.entry}/{self.request}" if self.request else f"claim:{self.entry}"

    def takes(self, device: PreparedDevice) -> bool:
        return not self.request or not device.requests or self.request in device.requests


@define(eq=False)
class ClaimPod:
    """A pod of the API server on this node."""

    id: PodId
    pod: Pod
    manifest: Json = field(repr=False)
    sandbox: bool = False
    """Its claims were prepared, and it has what containers are made in."""
    admitted: bool = False
    gone: bool = False
    """From the API server: deleted by force."""
    ending: asyncio.Event = field(factory=asyncio.Event, repr=False)
    """It shall end."""
    nudge: asyncio.Event = field(factory=asyncio.Event, repr=False)
    """Its object has changed: it is looked at at once."""
    injected: dict[str, Injected] = field(factory=dict)
    """By container, as it was made last."""
    known: tuple[Known, ...] = ()
    """Its claims, once they were prepared."""

    @property
    def restarts(self) -> bool:
        """Whether its containers are started again when they end."""
        return text(self.manifest, "spec", "restartPolicy") != "Never"

    def claim_names(self, *, extended: bool) -> list[str]:
        """The names of its claims in order; of an extended resource's claim as the last."""
        named = [name for _, name in _claims(self.manifest)]
        hidden = _hidden(self.manifest)
        return [*named, *([hidden] if extended and hidden else [])]

    def uses(self, container: str, *, extended: bool) -> list[Use]:
        """What *container* names."""
        claims = dict(_claims(self.manifest))
        found = [
            Use(container, claims[text(one, "name")], text(one, "name"), text(one, "request"))
            for item in _containers(self.manifest)
            if text(item, "name") == container
            for one in parts(item, "resources", "claims")
            if text(one, "name") in claims
        ]
        hidden = _hidden(self.manifest) if extended else ""
        return found + [
            Use(container, hidden, hidden, text(one, "requestName"))
            for one in parts(self.manifest, "status", "extendedResourceClaimStatus", _MAPPINGS)
            if hidden and text(one, "containerName") == container
        ]

    def devices(self, use: Use) -> Iterator[tuple[str, PreparedDevice]]:
        """Driver and device of what *use* names."""
        for known in self.known:
            if known.ref.name == use.claim:
                for driver, devices in known.devices.items():
                    yield from ((driver, device) for device in devices if use.takes(device))


_MAPPINGS = "requestMappings"
_IMPLICIT = "deviceclass.resource.kubernetes.io/"


def pod_of(manifest: Json, *, extended: bool) -> ClaimPod:
    """What to run of *manifest*.

    Args:
        manifest: As the API server has it.
        extended: Whether this kubelet lets DRA serve extended resources.
    """
    name, namespace = text(manifest, "metadata", "name"), text(manifest, "metadata", "namespace")
    ident = PodId(text(manifest, "metadata", "uid"), namespace, name)
    by_claim = {
        (text(one, "containerName"), text(one, "resourceName"))
        for one in parts(manifest, "status", "extendedResourceClaimStatus", _MAPPINGS)
    }

    def by_claims(use: tuple[str, str]) -> bool:
        # A kubelet before 1.36 looks for plugins alone, but lets names pass that none has: such a
        # pod runs without a device. Of names of classes it does not (seen).
        return use in by_claim and (extended or not use[1].startswith(_IMPLICIT))

    init = {text(one, "name") for one in parts(manifest, "spec", "initContainers")}
    containers = []
    for item in _containers(manifest):
        own = text(item, "name")
        wants = {
            resource: int(amount(value))
            for resource, value in amounts(part(item, "resources"), "requests").items()
            if "/" in resource and amount(value) and not by_claims((own, resource))
        }
        containers.append(Container(own, wants, init=own in init))
    made = Pod(name, namespace, tuple(containers), by_worker=True)
    return ClaimPod(ident, made, manifest)


def _containers(manifest: Json) -> list[dict[str, object]]:
    return [*parts(manifest, "spec", "initContainers"), *parts(manifest, "spec", "containers")]


def _claims(manifest: Json) -> Iterator[tuple[str, str]]:
    """What the pod calls each claim, and the name of its object."""
    made = {
        text(one, "name"): text(one, "resourceClaimName")
        for one in parts(manifest, "status", "resourceClaimStatuses")
    }
    for one in parts(manifest, "spec", "resourceClaims"):
        entry = text(one, "name")
        name = text(one, "resourceClaimName") or made.get(entry, "")
        if name:
            yield entry, name


def _hidden(manifest: Json) -> str:
    return text(manifest, "status", "extendedResourceClaimStatus", "resourceClaimName")
