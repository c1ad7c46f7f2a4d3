"""What is wrong with how an offer shares devices. Not here: what a device can do."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from accelkit.core.limits import SHARES_LIMIT
from accelkit.core.policy import Divide, Offer, Selection, Sharing, Timeslice
from accelkit.core.serde.keys import child, did_you_mean
from accelkit.core.values import Enforcement

Found: TypeAlias = Iterator[tuple[str, str]]
"""(path, text) for each problem."""

CLAIM_KEYS = ("enforce", "timeslice")
_ALONE = "means nothing for a device that nobody shares; give it shares"
_MAKES_SURE_OF_AMOUNTS = frozenset({Enforcement.LIBRARY, Enforcement.CGROUP})


def sharing_problems(offer: Offer, path: str) -> Found:
    """What is wrong with the sharing of *offer*, which is at *path*."""
    sharing = offer.sharing
    if not 1 <= sharing.shares <= SHARES_LIMIT:
        yield f"{path}.shares", f"expected 1 to {SHARES_LIMIT}, found {sharing.shares}"
    if sharing.unit < 1:
        yield f"{path}.unit", "must be at least 1"
    yield from _claim_keys(sharing.claims_may_ask, f"{path}.claimsMayAsk")
    yield from _pointless(sharing, path)
    if offer.through == "kubelet":
        yield from _kubelet(sharing, path)
    if offer.extended_resource and sharing.divide is Divide.REQUESTED:
        yield f"{path}.divide", "requested: an extended resource would always ask for everything"
    if sharing.enforce is Enforcement.MPS and _of_partitions(offer.select):
        yield f"{path}.enforce", "mps is not offered on partitions"


def _claim_keys(keys: Iterable[str], path: str) -> Found:
    for n, key in enumerate(keys):
        if key not in CLAIM_KEYS:
            hint = did_you_mean(key, CLAIM_KEYS)
            yield child(path, n), f"expected one of {', '.join(CLAIM_KEYS)}{hint}"


def _pointless(sharing: Sharing, path: str) -> Found:
    """Words that change nothing beside the others."""
    alone = sharing.shares == 1 and sharing.divide is not Divide.REQUESTED
    if alone and sharing.timeslice is not Timeslice.DEFAULT:
        yield f"{path}.timeslice", f"{sharing.timeslice}: {_ALONE}"
    if alone and sharing.divide is Divide.EQUAL:
        yield f"{path}.divide", f"equal: {_ALONE}"
    if sharing.divide is not Divide.NONE:
        return
    if sharing.enforce in _MAKES_SURE_OF_AMOUNTS:
        text = f"{sharing.enforce} has nothing to make sure of: divide is none"
        yield f"{path}.enforce", text
    if sharing.unit != Sharing().unit:
        yield f"{path}.unit", "means nothing unless divide is equal or requested"


def _kubelet(sharing: Sharing, path: str) -> Found:
    if sharing.divide is Divide.REQUESTED:
        yield f"{path}.divide", "requested: pods have no way to ask through kubelet"
    if sharing.enforce is Enforcement.CGROUP:
        yield f"{path}.enforce", "cgroup needs to know the pod, which only dra does"
    if sharing.claims_may_ask:
        yield f"{path}.claimsMayAsk", "there are no claims through kubelet"


def _of_partitions(select: Selection) -> bool:
    """Whether *select* is about partitions alone."""
    return bool(select.partition or select.profile)
