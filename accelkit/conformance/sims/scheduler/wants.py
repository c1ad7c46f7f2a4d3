"""What claims ask for, and what a device must be to serve them. Not here: who has the device."""

from collections.abc import Mapping, Sequence

from accelkit.conformance.sims.api.values import part, parts, text
from accelkit.conformance.sims.scheduler import capacity
from accelkit.conformance.sims.scheduler.pools import Device, Json, asked_capacities, capacities


def missing_class(claims: Sequence[Json], classes: Mapping[str, Json]) -> str:
    """What is said of the first request of a class that does not exist; empty if there is none."""
    for claim in claims:
        for name, wanted in (w for request in requests(claim) for w in alternatives(request)):
            if (of := text(wanted, "deviceClassName")) not in classes:
                return f"request {name}: device class {of} does not exist"
    return ""


def requests(claim: Json) -> list[Json]:
    return [*parts(claim, "spec", "devices", "requests")]


def alternatives(request: Json) -> list[tuple[str, Json]]:
    """What a request can be served by, and under which name, in the order of preference."""
    name = text(request, "name")
    if "exactly" in request:
        return [(name, part(request, "exactly"))]
    return [(f"{name}/{text(sub, 'name')}", sub) for sub in parts(request, "firstAvailable")]


def able(wanted: Json, device: Device) -> bool:
    """Whether the device could ever serve the request."""
    taken = capacity.consumed(asked_capacities(wanted), capacities(device))
    return taken is not None and capacity.fits(taken, {}, capacities(device))


def tainted(wanted: Json, device: Device) -> bool:
    tolerations = parts(wanted, "tolerations")
    return any(
        text(taint, "effect") in {"NoSchedule", "NoExecute"} and not tolerated(taint, tolerations)
        for taint in device.taints
    )


def tolerated(taint: Json, tolerations: Sequence[Json]) -> bool:
    """Whether one of the tolerations is for the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Json, taint: Json) -> bool:
    effect, key = text(toleration, "effect"), text(toleration, "key")
    if effect not in {"", text(taint, "effect")} or key not in {"", text(taint, "key")}:
        return False
    operator = text(toleration, "operator")
    return operator == "Exists" or text(toleration, "value") == text(taint, "value")


def full_name(claim: Json) -> str:
    return f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}"
