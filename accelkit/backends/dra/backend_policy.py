"""What of a policy the DRA backend cannot serve. Loads nothing of it: most policies need none."""

from collections.abc import Iterator

from accelkit.core.limits import is_dns_subdomain
from accelkit.core.policy import Policy

NAME = "dra"
"""Of the backend."""
DRIVER_LIMIT = 63
"""Bytes of a driver's name. Source: resource.k8s.io/v1 types.go, DriverNameMaxLength."""
_OURS = ".accelkit.dev"


def check(policy: Policy) -> tuple[tuple[str, str], ...]:
    """What of *policy* cannot be served, as (path, text)."""
    return tuple(_problems(policy))


def _problems(policy: Policy) -> Iterator[tuple[str, str]]:
    from accelkit.core.serde.keys import child  # noqa: PLC0415 - loads cattrs

    owners: dict[str, str] = {}
    for vendor, name in policy.backends.dra.drivers.items():
        path = child("$.backends.dra.drivers", vendor)
        if not is_dns_subdomain(name, DRIVER_LIMIT) or not name[0].isalpha():
            wanted = f"a DNS subdomain of at most {DRIVER_LIMIT} bytes that begins with a letter"
            yield path, f"expected {wanted}, found {name!r}"
        elif name in owners:
            yield path, f"{name} is the driver of {owners[name]} already"
        elif name.endswith(_OURS) and name != f"{vendor}{_OURS}":
            yield path, f"{name} is the driver of {name.removesuffix(_OURS)} already"
        owners.setdefault(name, vendor)
    for number, offer in enumerate(policy.offers):
        if offer.through == NAME and policy.kube.config == "none":
            yield f"{child('$.offers', number)}.through", "needs an API server: set kube.config"
