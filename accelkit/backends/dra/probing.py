"""What an API server keeps of slices, asked by dry runs: nothing is written.

One question a slice: a field that is refused would hide all others. A version says nothing, as
gates may be set either way, and what is dropped is said nowhere but in the answer. Not here: what
follows.
"""

from collections.abc import Mapping

import attrs

from accelkit.backends.dra.objects import Owner, slice_name, slice_object
from accelkit.backends.dra.pool import (
    Capacity,
    Consumption,
    CounterSet,
    Dialect,
    Effect,
    Pool,
    PoolDevice,
    RequestPolicy,
    Slice,
    Taint,
)
from accelkit.backends.dra.stored import read_slice
from accelkit.core.errors import ApiError
from accelkit.core.kube import SLICES, KubePort
from accelkit.core.limits import LATEST, SLICE_LIMITS
from accelkit.core.model import Binding
from accelkit.core.values import FrozenMap

_REFUSED = frozenset({400, 422})
_DENIED = "denied request"
"""What admission policies answer, with 422 as well (seen on 1.37.2)."""
_NUMBER = 0xFFFFF
"""Of no slice that there ever is."""
_ONE = FrozenMap({"a": 1})
_DEVICE = PoolDevice(name="probe")
_TAINT = Taint(key="accelkit.dev/probe", effect=Effect.NO_SCHEDULE)
_POLICY = RequestPolicy(default=1, values=(1,))


def _of(device: PoolDevice) -> Slice:
    return Slice(devices=(device,))


QUESTIONS: Mapping[str, Slice] = {
    "taints": _of(attrs.evolve(_DEVICE, taints=(_TAINT,))),
    "effect-none": _of(attrs.evolve(_DEVICE, taints=(attrs.evolve(_TAINT, effect=Effect.NONE),))),
    "many-taints": _of(
        attrs.evolve(
            _DEVICE,
            taints=tuple(
                attrs.evolve(_TAINT, key=f"accelkit.dev/probe-{n}") for n in range(LATEST.taints)
            ),
        )
    ),
    "counter-sets": Slice(counter_sets=(CounterSet(name="probe", counters=_ONE),)),
    # The server of 1.34 wants the set in the same slice, and refuses this.
    "counters": _of(
        attrs.evolve(_DEVICE, consumes=(Consumption(counter_set="probe", counters=_ONE),))
    ),
    "shares": _of(
        attrs.evolve(
            _DEVICE,
            shareable=True,
            capacity=FrozenMap({"a": Capacity(value=2, policy=_POLICY)}),
        )
    ),
    "bindings": _of(
        attrs.evolve(
            _DEVICE,
            binding=Binding(
                conditions=("accelkit.dev/probe",), failures=("accelkit.dev/no",), node=True
            ),
        )
    ),
    "lists": _of(attrs.evolve(_DEVICE, attributes=FrozenMap({"a": (1, 2)}))),
}


async def probe(kube: KubePort, driver: str, owner: Owner, *, lists: bool = False) -> Dialect:
    """Ask what the server keeps.

    Args:
        kube: Who answers.
        driver: In whose name; admission may look at it.
        owner: The node.
        lists: Whether attributes that are lists are wished for at all.

    Raises:
        ApiError: It takes no slice of ours.
        TransportError: It is away.
    """
    await _kept(kube, driver, owner, _of(_DEVICE))
    keeps = {
        name: await _keeps(kube, driver, owner, question)
        for name, question in QUESTIONS.items()
        if lists or name != "lists"
    }
    return Dialect(
        taints=keeps["taints"],
        effect_none=keeps["effect-none"],
        most_taints=(LATEST if keeps["many-taints"] else SLICE_LIMITS["1.34"]).taints,
        counters=keeps["counter-sets"] and keeps["counters"],
        consumable=keeps["shares"],
        bindings=keeps["bindings"],
        list_attributes=keeps.get("lists", False),
    )


async def _keeps(kube: KubePort, driver: str, owner: Owner, question: Slice) -> bool:
    try:
        return await _kept(kube, driver, owner, question) == question
    except ApiError as error:
        if error.status in _REFUSED and _DENIED not in str(error):
            return False
        raise


async def _kept(kube: KubePort, driver: str, owner: Owner, question: Slice) -> Slice | None:
    pool = Pool(driver=driver, name=owner.name, slices=(question,))
    metadata = {"name": slice_name(driver, owner.name, _NUMBER)}
    item = {**slice_object(pool, 0), "metadata": metadata}
    return read_slice(await kube.create(SLICES, item, dry_run=True)).slice
