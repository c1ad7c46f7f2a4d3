"""What a server refuses in claims, templates and classes. Not here: a claim's status.

It does not look at: more than 16 tolerations, keys of asked capacities, a constraint that both
matches and distinguishes. CEL is not compiled here: see `expression`.

Source:
    kubernetes v1.37.2, pkg/apis/resource/validation/validation.go, and answers seen.
"""

import re
from collections.abc import Iterator

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.refusals import (
    Cause,
    denied,
    required,
    too_long,
    unsupported,
    wrong,
)
from accelkit.conformance.sims.api.validation import common, names
from accelkit.conformance.sims.api.values import number, part, parts, text, texts
from accelkit.conformance.sims.gates import SHARES, Dialect

REQUESTS = CONSTRAINTS = CONFIGS = SELECTORS = 32
ALTERNATIVES = 8
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_REFERENCE = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_DEVICE_FIELDS = {"driver", "attributes", "capacity", "allowMultipleAllocations"}


def validate(item: Object, dialect: Dialect) -> Iterator[Cause]:
    """A claim that is made."""
    yield from common.metadata(item)
    yield from _devices("spec.devices", part(item, "spec", "devices"), dialect)


def validate_template(item: Object, dialect: Dialect) -> Iterator[Cause]:
    """A template that is made."""
    yield from common.metadata(item)
    meta = part(item, "spec", "metadata")
    for name in meta.keys() - {"labels", "annotations"}:
        yield denied(f"spec.metadata.{name}", "cannot be set")
    yield from common.labels(meta, "spec.metadata")
    devices = part(item, "spec", "spec", "devices")
    yield from _devices("spec.spec.devices", devices, dialect)


def validate_class(item: Object) -> Iterator[Cause]:
    """A class that is made or written over."""
    spec = part(item, "spec")
    yield from common.metadata(item, units="bytes")
    yield from selectors("spec.selectors", spec)
    yield from common.each(parts(spec, "config"), CONFIGS, "spec.config", opaque)
    if "extendedResourceName" in spec:
        name = text(spec, "extendedResourceName")
        yield from names.extended_resource("spec.extendedResourceName", name)


def request_names(devices: Object) -> set[str]:
    """What a constraint, a config and a result may refer to."""
    found = set()
    for request in parts(devices, "requests"):
        name = text(request, "name")
        found |= {name, *(f"{name}/{text(s, 'name')}" for s in parts(request, "firstAvailable"))}
    return found


def _devices(path: str, devices: Object, dialect: Dialect) -> Iterator[Cause]:
    known = request_names(devices)
    requests = parts(devices, "requests")
    at = f"{path}.requests"
    yield from common.each(requests, REQUESTS, at, _request)
    yield from common.unique(requests, REQUESTS, at, common.by_name)
    yield from common.each(
        parts(devices, "constraints"),
        CONSTRAINTS,
        f"{path}.constraints",
        lambda p, c: _constraint(p, c, known, dialect),
    )
    yield from common.each(
        parts(devices, "config"), CONFIGS, f"{path}.config", lambda p, c: config(p, c, known)
    )


def _request(path: str, request: Object) -> Iterator[Cause]:
    yield from names.dns_label(f"{path}.name", text(request, "name"))
    alternatives = parts(request, "firstAvailable")
    one = "exactly one of `exactly` or `firstAvailable` is required"
    if alternatives and "exactly" in request:
        yield wrong(path, None, f"{one}, but multiple fields are set")
    elif alternatives:
        at = f"{path}.firstAvailable"
        yield from common.each(alternatives, ALTERNATIVES, at, _alternative)
        yield from common.unique(alternatives, ALTERNATIVES, at, common.by_name)
    elif "exactly" in request:
        yield from _wanted(f"{path}.exactly", part(request, "exactly"))
    else:
        yield required(path, one)


def _alternative(path: str, request: Object) -> Iterator[Cause]:
    yield from names.dns_label(f"{path}.name", text(request, "name"))
    yield from _wanted(path, request)


def _wanted(path: str, wanted: Object) -> Iterator[Cause]:
    if name := text(wanted, "deviceClassName"):
        yield from names.subdomain(f"{path}.deviceClassName", name)
    else:
        yield required(f"{path}.deviceClassName")
    yield from selectors(f"{path}.selectors", wanted)
    mode, count = text(wanted, "allocationMode"), number(wanted, "count")
    if mode == "All" and count:
        yield wrong(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield wrong(f"{path}.count", count, "must be greater than zero")
    elif mode not in {"All", "ExactCount"}:
        yield unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    for index, found in enumerate(parts(wanted, "tolerations")):
        yield from toleration(f"{path}.tolerations[{index}]", found)


def selectors(path: str, found: Object) -> Iterator[Cause]:
    yield from common.each(parts(found, "selectors"), SELECTORS, path, _selector)


def _selector(path: str, selector: Object) -> Iterator[Cause]:
    if "cel" in selector:
        yield from expression(f"{path}.cel.expression", text(selector, "cel", "expression"))
    else:
        yield required(f"{path}.cel")


def expression(path: str, source: str) -> Iterator[Cause]:
    """CEL, as far as it can be judged without a compiler: its length, and fields of `device`.

    A real server compiles it, and refuses whatever is not a bool.
    """
    if len(source.encode()) > common.RAW_BYTES:
        yield too_long(path, common.RAW_BYTES)
    elif not source.strip():
        what = "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'"
        yield wrong(path, source, what)
    elif stranger := next(
        (m for m in re.finditer(r"\bdevice\.(\w+)", source) if m[1] not in _DEVICE_FIELDS), None
    ):
        at = stranger.start() + len("device")
        what = f"compilation failed: ERROR: <input>:1:{at + 1}: undefined field '{stranger[1]}'"
        yield wrong(path, source, f"{what}\n | {source}\n | {'.' * at}^")


def toleration(path: str, found: Object) -> Iterator[Cause]:
    """A toleration as asked for, or as allocated."""
    operator, value, effect = (text(found, name) for name in ("operator", "value", "effect"))
    if key := text(found, "key"):
        yield from names.label_key(f"{path}.key", key)
    if operator == "Exists" and value:
        yield wrong(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from names.label_value(f"{path}.value", value)
    elif not operator:
        yield required(f"{path}.operator")
    elif operator != "Exists":
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


def _constraint(
    path: str, constraint: Object, known: set[str], dialect: Dialect
) -> Iterator[Cause]:
    yield from references(path, constraint, known)
    if "matchAttribute" in constraint:
        name = text(constraint, "matchAttribute")
        yield from names.fully_qualified(f"{path}.matchAttribute", name)
    elif "distinctAttribute" in constraint:
        name = text(constraint, "distinctAttribute")
        yield from names.fully_qualified(f"{path}.distinctAttribute", name)
    elif dialect.on(SHARES):
        # Said so by the server, although none is set.
        what = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
        yield required(path, f"{what}, but multiple fields are set")
    else:
        yield required(f"{path}.matchAttribute")


def references(path: str, found: Object, known: set[str]) -> Iterator[Cause]:
    """The requests that a constraint or a config is about."""
    listed = texts(found, "requests")
    at = f"{path}.requests"
    yield from common.each(listed, REQUESTS, at, lambda p, name: reference(p, name, known))
    yield from common.unique(listed, REQUESTS, at, str)


def reference(path: str, name: str, known: set[str]) -> Iterator[Cause]:
    segments = name.split("/")
    if len(segments) <= 2:
        for segment in segments:
            yield from names.dns_label(path, segment)
    if name not in known:
        yield wrong(path, name, _REFERENCE)


def config(path: str, found: Object, known: set[str]) -> Iterator[Cause]:
    yield from references(path, found, known)
    yield from opaque(path, found)


def opaque(path: str, found: Object) -> Iterator[Cause]:
    """A block of parameters for a driver."""
    if "opaque" not in found:
        yield required(f"{path}.opaque")
        return
    block = part(found, "opaque")
    yield from names.caseless_driver(f"{path}.opaque.driver", text(block, "driver"))
    yield from common.raw(f"{path}.opaque.parameters", block.get("parameters"))
