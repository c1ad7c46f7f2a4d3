"""What a server refuses in a claim's status. Not here: who may write which part of it.

Source:
    kubernetes v1.37.2, pkg/apis/resource/validation/validation.go, and answers seen.
"""

import ipaddress
from collections.abc import Iterator

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.refusals import (
    Cause,
    denied,
    repeated,
    required,
    too_long,
    too_many_items,
    unsupported,
    wrong,
)
from accelkit.conformance.sims.api.validation import claims, common, names
from accelkit.conformance.sims.api.values import part, parts, text, texts

RESERVATIONS = 256
RESULTS = 32
CONFIGS = 64
CONDITIONS = 8
ADDRESSES = 16
_TEXTS = {"interfaceName": 256, "hardwareAddress": 128}
Key = tuple[str, str, str, str]
"""Driver, pool, device and share of an allocated device."""


def device_key(found: Object) -> Key:
    driver, pool, device = (text(found, name) for name in ("driver", "pool", "device"))
    return driver, pool, device, text(found, "shareID")


def allocated(item: Object) -> set[Key]:
    """What a claim has."""
    results = parts(item, "status", "allocation", "devices", "results")
    return {device_key(result) for result in results}


def validate(new: Object, old: Object) -> Iterator[Cause]:
    """The status of a claim that is written over another."""
    status, before = part(new, "status"), part(old, "status")
    yield from _reservations(new, old)
    yield from _devices(new)
    if "allocation" in status and "allocation" in before:
        if status["allocation"] != before["allocation"]:
            yield wrong("status.allocation", None, "field cannot be modified once set")
    elif "allocation" in status:
        known = claims.request_names(part(new, "spec", "devices"))
        yield from _allocation("status.allocation", part(status, "allocation"), known)


def _reservations(new: Object, old: Object) -> Iterator[Cause]:
    found, path = parts(new, "status", "reservedFor"), "status.reservedFor"
    yield from common.each(found, RESERVATIONS, path, _reservation)
    yield from common.unique(found, RESERVATIONS, path, lambda r: text(r, "uid"))
    if found and "allocation" not in part(new, "status"):
        yield denied(path, "may not be specified when `allocated` is not set")
    elif text(old, "metadata", "deletionTimestamp") and any(
        one not in parts(old, "status", "reservedFor") for one in found
    ):
        what = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` "
            "are set"
        )
        yield denied(path, what)


def _reservation(path: str, found: Object) -> Iterator[Cause]:
    for name in ("resource", "name", "uid"):
        if not text(found, name):
            yield required(f"{path}.{name}")


def _allocation(path: str, allocation: Object, known: set[str]) -> Iterator[Cause]:
    results = parts(allocation, "devices", "results")
    at = f"{path}.devices"
    yield from common.each(results, RESULTS, f"{at}.results", lambda p, r: _result(p, r, known))
    configs = parts(allocation, "devices", "config")
    yield from common.each(configs, CONFIGS, f"{at}.config", lambda p, c: _config(p, c, known))
    if "nodeSelector" in allocation:
        selector = part(allocation, "nodeSelector")
        yield from common.node_selector(f"{path}.nodeSelector", selector)


def _result(path: str, result: Object, known: set[str]) -> Iterator[Cause]:
    yield from claims.reference(f"{path}.request", text(result, "request"), known)
    yield from names.caseless_driver(f"{path}.driver", text(result, "driver"))
    yield from names.pool(f"{path}.pool", text(result, "pool"))
    yield from names.dns_label(f"{path}.device", text(result, "device"))
    yield from common.binding(path, result)
    for index, found in enumerate(parts(result, "tolerations")):
        yield from claims.toleration(f"{path}.tolerations[{index}]", found)
    if "shareID" in result:
        yield from names.uuid(f"{path}.shareID", text(result, "shareID"))


def _config(path: str, found: Object, known: set[str]) -> Iterator[Cause]:
    source = text(found, "source")
    if not source:
        yield required(f"{path}.source")
    elif source not in {"FromClaim", "FromClass"}:
        yield unsupported(f"{path}.source", source, ("FromClaim", "FromClass"))
    yield from claims.config(path, found, known)


def _devices(new: Object) -> Iterator[Cause]:
    found, path = parts(new, "status", "devices"), "status.devices"
    has = allocated(new)
    yield from common.each(found, None, path, lambda p, d: _device(p, d, has))
    yield from common.unique(found, None, path, device_key)


def _device(path: str, device: Object, has: set[Key]) -> Iterator[Cause]:
    yield from names.driver(f"{path}.driver", text(device, "driver"))
    yield from names.pool(f"{path}.pool", text(device, "pool"))
    yield from names.dns_label(f"{path}.device", text(device, "device"))
    if "shareID" in device:
        yield from names.uuid(f"{path}.shareID", text(device, "shareID"))
    if device_key(device) not in has:
        shown = dict(zip(("Driver", "Pool", "Device", "ShareID"), device_key(device), strict=True))
        yield wrong(path, shown, "must be an allocated device in the claim")
    found = parts(device, "conditions")
    if len(found) > CONDITIONS:
        yield too_many_items(f"{path}.conditions", len(found), CONDITIONS)
    yield from common.conditions(f"{path}.conditions", found)
    if "data" in device:
        yield from common.raw(f"{path}.data", device["data"])
    yield from _network(f"{path}.networkData", part(device, "networkData"))


def _network(path: str, data: Object) -> Iterator[Cause]:
    for name, limit in _TEXTS.items():
        if len(text(data, name).encode()) > limit:
            yield too_long(f"{path}.{name}", limit)
    addresses = texts(data, "ips")
    yield from common.each(addresses, ADDRESSES, f"{path}.ips", _address)
    seen: set[str] = set()
    for index, address in enumerate(addresses if len(addresses) <= ADDRESSES else ()):
        if address in seen:
            yield repeated(f"{path}.ips[{index}]", address)
        seen.add(address)


def _address(path: str, address: str) -> Iterator[Cause]:
    bare = "/".join(str(int(p)) if p.isdigit() else p for p in address.split("/"))
    host, slash, prefix = bare.rpartition("/")
    host = ".".join(part.lstrip("0") or "0" for part in host.split(".")) if "." in host else host
    try:
        found = ipaddress.ip_interface(f"{host}/{prefix}") if slash else None
    except ValueError:
        found = None
    if found is None:
        what = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield wrong(path, address, what)
    elif str(found) != address:
        yield wrong(path, address, f'must be in canonical form ("{found}")')
