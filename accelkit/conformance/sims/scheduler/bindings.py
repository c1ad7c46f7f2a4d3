"""Conditions under which a pod with devices is bound. Not here: who reports them."""

from accelkit.conformance.sims.api.values import parts, text, texts
from accelkit.conformance.sims.scheduler.pools import Json


def state(claim: Json) -> str:
    """Empty: bound; else what its binding conditions are."""
    reported = {
        tuple(text(device, name) for name in ("driver", "pool", "device", "shareID")): {
            text(one, "type")
            for one in parts(device, "conditions")
            if text(one, "status") == "True"
        }
        for device in parts(claim, "status", "devices")
    }
    waiting = False
    for result in parts(claim, "status", "allocation", "devices", "results"):
        key = tuple(text(result, name) for name in ("driver", "pool", "device", "shareID"))
        true = reported.get(key, set())
        if true & set(texts(result, "bindingFailureConditions")):
            return "failed"
        waiting |= not set(texts(result, "bindingConditions")) <= true
    return "are pending" if waiting else ""
