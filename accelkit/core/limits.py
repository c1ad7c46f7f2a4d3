"""What Kubernetes and the kernel accept, as data. Not here: how documents are made to fit."""

import re
from collections.abc import Mapping

import attrs

from accelkit.core.values import is_dns_label

DEVICE_ID_LIMIT = 63
"""Characters of an id in a device plugin's list. Ours: the kubelet checks nothing, but a DRA
driver's device names are DNS labels, and a device has one name everywhere."""
RESOURCE_IDS_LIMIT = 2048
"""Ids in one resource. Ours: the kubelet's work under its lock grows with the square."""
SHARES_LIMIT = 128
"""Shares of a device: ``::127`` is the longest suffix for which names leave room."""
SUBDOMAIN_LIMIT = 253
RESOURCE_NAME_LIMIT = 63
"""Characters behind the slash of a resource name."""
SOCKET_PATH_LIMIT = 107
"""Bytes of a unix socket's path: ``sun_path`` of unix(7), less the NUL."""
DRIVER_NAME_LIMIT = 63
"""Bytes of a driver's name."""
ID_LIMIT = 32
"""Bytes of the id of an attribute or a capacity, without its domain."""
TEXT_LIMIT = 64
"""Bytes of an attribute's text or version: the server counts bytes, not characters."""
AMOUNT_LIMIT = 2**63 - 1
"""Kubernetes keeps numbers as signed 64-bit integers."""


@attrs.frozen(kw_only=True)
class SliceLimits:
    """How much one ResourceSlice may hold.

    Source:
        k8s.io/api/resource/v1, types.go of 1.34 to 1.37; tried out on 1.34.4, 1.35.4, 1.36.3 and
        1.37.2 with every gate on.
    """

    devices: int = 128
    advanced_devices: int = 64
    """Where one of them has a taint of any effect, a counter or a list."""
    entries: int = 32
    """Attributes and capacities of a device."""
    values: int = 48
    """Values of a device's attributes: of a list each item counts."""
    counter_sets: int = 8
    counters: int = 32
    """Of a set, and of what a device takes of one."""
    counters_in_all: int | None = None
    """Of all sets of a slice."""
    sets_of_device: int = 2
    taints: int = 16
    effect_none: bool = True
    conditions: int = 4
    """Binding conditions, and as many failure conditions."""
    request_values: int = 10
    """Amounts among which a request may choose."""
    apart: bool = True
    """Counter sets and devices are never in one slice."""


SLICE_LIMITS: Mapping[str, SliceLimits] = {
    "1.34": SliceLimits(
        advanced_devices=128, counters_in_all=32, taints=4, effect_none=False, apart=False
    ),
    "1.35": SliceLimits(),
    "1.36": SliceLimits(),
    "1.37": SliceLimits(),
}
"""By release of the API server."""
LATEST = SLICE_LIMITS["1.37"]

# k8s.io/apimachinery/pkg/util/validation/validation.go, IsQualifiedName.
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_REQUESTS = "requests."
_NATIVE = "kubernetes.io/"


def is_dns_subdomain(text: str, limit: int = SUBDOMAIN_LIMIT) -> bool:
    """Whether *text* is a DNS subdomain of at most *limit* characters (RFC 1123)."""
    return len(text) <= limit and all(is_dns_label(part, limit) for part in text.split("."))


def is_qualified_name(text: str) -> bool:
    """Whether *text* may be the key of a label, an annotation or a taint, or a condition type."""
    prefix, slash, rest = text.rpartition("/")
    fits = len(rest) <= RESOURCE_NAME_LIMIT and _NAME.fullmatch(rest) is not None
    return fits and (not slash or is_dns_subdomain(prefix))


def is_label_value(text: str) -> bool:
    """Whether *text* may be the value of a label or a taint."""
    return not text or (len(text) <= RESOURCE_NAME_LIMIT and _NAME.fullmatch(text) is not None)


def resource_name_problem(name: str) -> str | None:
    """Why Kubernetes refuses *name* for an extended resource; None: it does not.

    Source:
        kubernetes/pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName: it must be a
        qualified name still with ``requests.`` before it, as quotas write it.
    """
    prefix, slash, rest = name.partition("/")
    if not slash:
        return f"{name!r} has no domain: write one before a slash, as in example.com/gpu"
    if _NATIVE in name:
        return f"{name!r} is in a domain that Kubernetes keeps for itself"
    if name.startswith(_REQUESTS):
        return f"{name!r} begins with {_REQUESTS!r}, which quotas use"
    if not is_dns_subdomain(prefix, SUBDOMAIN_LIMIT - len(_REQUESTS)):
        return (
            f"{prefix!r} is not a DNS subdomain of at most "
            f"{SUBDOMAIN_LIMIT - len(_REQUESTS)} characters"
        )
    if len(rest) > RESOURCE_NAME_LIMIT or not _NAME.fullmatch(rest):
        return (
            f"{rest!r} must be 1 to {RESOURCE_NAME_LIMIT} letters, digits, '-', '_' or '.', "
            "a letter or digit at both ends"
        )
    return None


def socket_room(directory: str) -> int:
    """How many bytes the name of a socket in *directory* may have; negative: none fits."""
    return SOCKET_PATH_LIMIT - len(f"{directory.rstrip('/')}/".encode())
