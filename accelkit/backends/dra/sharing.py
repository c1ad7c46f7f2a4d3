"""Who may have how much of a device at once. Pure. Not here: who makes sure."""

from functools import lru_cache

import attrs

from accelkit.backends.dra.pool import Capacity, RequestPolicy
from accelkit.core.allocation import equal_share
from accelkit.core.policy import Divide, Sharing
from accelkit.core.values import FrozenMap

SHARES = "shares"
"""Capacity: one for each that may use the device."""
CORES = "cores"
"""Capacity: percent of what a device computes."""
MEMORY = "memory"
_ALL_CORES = 100
_ONE = RequestPolicy(default=1, values=(1,))


def is_shared(sharing: Sharing) -> bool:
    """Whether a device on these terms may be had by several claims."""
    return sharing.shares > 1 or sharing.divide is Divide.REQUESTED


@lru_cache(maxsize=256)
def capacity_of(amounts: FrozenMap[str, int], sharing: Sharing) -> FrozenMap[str, Capacity]:
    """What there is of a device with *amounts*, and what claims may ask of it.

    A capacity of the device called shares or cores gives way where sharing needs the name. What
    nobody asks for is not taken, so that all claims together never want more than there is of
    something that they do not divide.
    """
    found = {name: Capacity(value=amount) for name, amount in amounts.items()}
    if not is_shared(sharing):
        return FrozenMap(found)
    found = {
        name: attrs.evolve(one, policy=RequestPolicy(default=0, least=0))
        for name, one in found.items()
    }
    if sharing.shares > 1:
        found[SHARES] = Capacity(value=sharing.shares, policy=_ONE)
    if sharing.divide is Divide.NONE:
        return FrozenMap(found)
    memory = amounts.get(MEMORY, 0)
    if sharing.divide is Divide.EQUAL:
        # Of more than a hundred shares each has one: none would be no limit.
        cores = max(_ALL_CORES, sharing.shares)
        found[CORES] = Capacity(value=cores, policy=_fixed(cores // sharing.shares))
        if memory:
            found[MEMORY] = Capacity(
                value=memory, policy=_fixed(equal_share(amounts, sharing).get(MEMORY, memory))
            )
    else:
        found[CORES] = Capacity(value=_ALL_CORES, policy=_stepped(_ALL_CORES, 1))
        if memory:
            found[MEMORY] = Capacity(value=memory, policy=_stepped(memory, sharing.unit))
    return FrozenMap(found)


def _fixed(amount: int) -> RequestPolicy:
    """Everybody gets *amount*, whatever they ask for."""
    return RequestPolicy(default=amount, values=(amount,))


def _stepped(total: int, unit: int) -> RequestPolicy:
    """From one *unit* up to all of *total* that is whole units; all of it if nothing is asked.

    Source:
        The default and the most are whole steps above the least, and least and step together are
        no more than there is: k8s.io/api/resource/v1, CapacityRequestPolicyRange.
    """
    most = total - total % unit
    if most < 2 * unit:
        return _fixed(total)
    return RequestPolicy(default=most, least=unit, most=most, step=unit)
