"""What a server does to objects of each kind before it keeps them. Not here: requests."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from attrs import frozen

from accelkit.conformance.sims.api import granular
from accelkit.conformance.sims.api.access import User
from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.gating import drop_disabled
from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.refusals import Cause, denied, wrong
from accelkit.conformance.sims.api.store import Store
from accelkit.conformance.sims.api.validation import (
    claim_status,
    claims,
    common,
    events,
    rules,
    slices,
)
from accelkit.conformance.sims.api.values import part, parts, put, text
from accelkit.conformance.sims.gates import Dialect

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_ADMIN = (
    f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
)


@frozen(kw_only=True)
class Context:
    """What a write is judged by."""

    kind: Kind
    dialect: Dialect
    user: User
    verb: str
    """``create``, ``update`` or ``patch``."""
    now: datetime
    sub: str = ""
    """The subresource."""
    admin_namespace: bool = False
    """Whether claims in the namespace may ask for admin access."""

    @property
    def stamp(self) -> str:
        """The time in whole seconds."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")


def admits_admins(store: Store, namespaces: Kind, name: str) -> bool:
    """Whether the namespace has the label."""
    found = store.get(namespaces, "", name) or {}
    return text(found, "metadata", "labels", ADMIN_LABEL) == "true"


def fill_in(item: Object, context: Context) -> None:
    """Set what a client may leave out."""
    match context.kind.struct:
        case "ResourceSlice":
            for device in parts(item, "spec", "devices"):
                for taint in parts(device, "taints"):
                    taint.setdefault("timeAdded", context.stamp)
        case "DeviceTaintRule":
            part(item, "spec", "taint").setdefault("timeAdded", context.stamp)
        case "ResourceClaim":
            _fill_in_claim(part(item, "spec", "devices"))
        case "ResourceClaimTemplate":
            _fill_in_claim(part(item, "spec", "spec", "devices"))
        case "Pod":
            _fill_in_pod(item)
        case "Namespace":
            part(item, "status").setdefault("phase", "Active")
        case _:
            pass


def _fill_in_claim(devices: Object) -> None:
    for request in parts(devices, "requests"):
        exactly = [part(request, "exactly")] if "exactly" in request else []
        for wanted in (*exactly, *parts(request, "firstAvailable")):
            if not wanted.get("allocationMode"):
                wanted["allocationMode"] = "ExactCount"
            if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                wanted["count"] = 1
            for toleration in parts(wanted, "tolerations"):
                if not toleration.get("operator"):
                    toleration["operator"] = "Equal"


def _fill_in_pod(item: Object) -> None:
    spec = part(item, "spec")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    for container in (*parts(spec, "initContainers"), *parts(spec, "containers")):
        limits = part(container, "resources", "limits")
        if limits:
            requests = part(container, "resources", "requests")
            part(container, "resources")["requests"] = {**limits, **requests}
    part(item, "status").setdefault("phase", "Pending")


def prepare(new: Object, old: Object | None, context: Context) -> None:
    """Keep from *old* what this request cannot write, and drop what is turned off."""
    kind = context.kind
    if kind.status and old is None and kind.struct in {"ResourceClaim", "DeviceTaintRule"}:
        new["status"] = {}
    elif kind.status and old is not None:
        _keep_other_half(new, old, context)
    drop_disabled(kind, new, old, context.dialect)
    if kind.struct == "ResourceClaim" and context.sub and old is not None:
        _forget_deallocated(new, old)


def _keep_other_half(new: Object, old: Object, context: Context) -> None:
    if context.sub != "status":
        new["status"] = old.get("status", {})
        return
    new["spec"] = old.get("spec", {})
    if context.kind.resource.group:
        new["metadata"] = old["metadata"]


def _forget_deallocated(new: Object, old: Object) -> None:
    gone = claim_status.allocated(old) - claim_status.allocated(new)
    status = part(new, "status")
    kept = [d for d in parts(status, "devices") if claim_status.device_key(d) not in gone]
    put(status, "devices", kept or None)


def warnings(kind: Kind, item: Mapping[str, object]) -> tuple[str, ...]:
    """What a server notes about an object that it takes."""
    driver = text(item, "spec", "driver")
    if kind.struct != "ResourceSlice" or driver == driver.lower():
        return ()
    what = f'driver names should be lowercase; "{driver}" contains uppercase characters'
    return (f"spec.driver: {what}",)


def faults(new: Object, old: Object | None, context: Context) -> Iterator[Cause]:
    """What is wrong with *new*."""
    if old is not None:
        yield from common.metadata_update(new, old)
    dialect = context.dialect
    match context.kind.struct, context.sub:
        case "ResourceSlice", _:
            yield from slices.validate(new, old, dialect)
        case "ResourceClaim", "status":
            yield from _status_faults(new, old or {}, context)
        case "ResourceClaim", _:
            yield from _claim_faults(new, old, context)
        case "ResourceClaimTemplate", _:
            yield from _template_faults(new, old, context)
        case "DeviceClass", _:
            yield from claims.validate_class(new)
        case "DeviceTaintRule", "status":
            yield from rules.validate_status(new)
        case "DeviceTaintRule", _:
            yield from rules.validate(new, dialect)
        case "Event", _:
            strict = bool(context.kind.resource.group)
            yield from events.validate(new, old, strict=strict)
        case _:
            yield from common.metadata(new)


def _claim_faults(new: Object, old: Object | None, context: Context) -> Iterator[Cause]:
    if old is None:
        yield from _admin_faults(part(new, "spec", "devices"), "spec.devices", context)
        yield from claims.validate(new, context.dialect)
        return
    yield from common.metadata(new)
    if new.get("spec") != old.get("spec"):
        yield wrong("spec", None, "field is immutable")


def _template_faults(new: Object, old: Object | None, context: Context) -> Iterator[Cause]:
    if old is None:
        devices = part(new, "spec", "spec", "devices")
        yield from _admin_faults(devices, "spec.spec.devices", context)
        yield from claims.validate_template(new, context.dialect)
    elif new.get("spec") != old.get("spec"):
        # A server shows the whole of Go's struct here.
        yield wrong("spec", None, "field is immutable")


def _admin_faults(devices: Object, path: str, context: Context) -> Iterator[Cause]:
    for index, request in enumerate(parts(devices, "requests")):
        if part(request, "exactly").get("adminAccess") and not context.admin_namespace:
            yield denied(f"{path}.requests[{index}].adminAccess", _ADMIN)


def _status_faults(new: Object, old: Object, context: Context) -> Iterator[Cause]:
    results = parts(new, "status", "allocation", "devices", "results")
    fresh = "allocation" not in part(old, "status")
    if fresh and not context.admin_namespace and any(r.get("adminAccess") for r in results):
        yield denied("status.allocation.devices.results[0].adminAccess", _ADMIN)
    yield from granular.faults(new, old, context.user, context.verb, context.dialect)
    yield from claim_status.validate(new, old)
