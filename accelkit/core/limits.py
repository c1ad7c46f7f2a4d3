"""What Kubernetes and the kernel accept, as data. Not here: how documents are made to fit."""

import re

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

# k8s.io/apimachinery/pkg/util/validation/validation.go, IsQualifiedName.
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_REQUESTS = "requests."
_NATIVE = "kubernetes.io/"


def is_dns_subdomain(text: str, limit: int = SUBDOMAIN_LIMIT) -> bool:
    """Whether *text* is a DNS subdomain of at most *limit* characters (RFC 1123)."""
    return len(text) <= limit and all(is_dns_label(part, limit) for part in text.split("."))


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
