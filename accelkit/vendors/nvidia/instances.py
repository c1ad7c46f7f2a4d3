"""What is cut out of a simulated GPU, and what the hardware allows. Not here: NVML's calls."""

import time
from collections.abc import Iterable
from typing import TypedDict, cast

from accelkit.testing.machines import Json, State
from accelkit.vendors.nvidia import states
from accelkit.vendors.nvidia.products import MigProfile, Product

MOST_COMPUTES = 8
LAG_S = 0.05
"""How long a GPU instance is still listed after the driver has destroyed it, unless told."""


class Compute(TypedDict):
    """A compute instance."""

    ci: int
    slices: int


class Instance(TypedDict):
    """A GPU instance with its compute instances."""

    gi: int
    profile: str
    start: int
    made: int
    """How often one was made in this place before, since the boot."""
    computes: list[Compute]
    until: float | None
    """Destroyed, and listed until then in monotonic seconds; None: it is alive."""


def instances(state: State, unit: str) -> list[Instance]:
    """GPU instances of a unit, by first slot."""
    return cast("list[Instance]", states.of(state, unit).get("instances", []))


def find(state: State, unit: str, gi: int) -> Instance | None:
    return next((i for i in instances(state, unit) if i["gi"] == gi), None)


def slots_of(product: Product, instance: Instance) -> set[int]:
    size = known(product, instance["profile"]).size
    return set(range(instance["start"], instance["start"] + size))


def known(product: Product, name: str) -> MigProfile:
    """The profile that an instance has."""
    return next(p for p in product.profiles if p.name == name)


def room_at(product: Product, present: Iterable[Instance], profile: MigProfile) -> list[int]:
    """First slots where one more of *profile* can be, in ascending order."""
    there = list(present)
    alike = [i for i in there if i["profile"] == profile.name]
    if len(alike) >= profile.limit or not _engines_left(product, there, profile):
        return []
    taken = {slot for instance in there for slot in slots_of(product, instance)}
    return [s for s in profile.starts if not taken & set(range(s, s + profile.size))]


def _engines_left(product: Product, present: list[Instance], profile: MigProfile) -> bool:
    used = [known(product, i["profile"]).engines for i in present] + [profile.engines]
    totals = [max(p.engines[k] for p in product.profiles) for k in range(len(profile.engines))]
    return all(sum(u[k] for u in used) <= total for k, total in enumerate(totals))


def added(
    product: Product, state: State, unit: str, profile: MigProfile, start: int
) -> tuple[State, int]:
    """*state* with one more GPU instance that has no compute instance, and its id."""
    present = instances(state, unit)
    first = _first_id(product.slots // profile.size)
    used = {i["gi"] for i in present}
    gi = next(g for g in range(first, first + 64) if g not in used)
    counts = cast("dict[str, int]", states.of(state, unit).get("made", {}))
    place = f"{profile.name}@{start}"
    made = counts.get(place, 0)
    state = _with(state, unit, [*present, fresh(profile, start, gi, made)])
    counted = cast("Json", {**counts, place: made + 1})
    return states.changed(state, unit, made=counted), gi


def fresh(profile: MigProfile, start: int, gi: int = 0, made: int = 0) -> Instance:
    """A GPU instance as it is made: without a compute instance."""
    return {
        "gi": gi,
        "profile": profile.name,
        "start": start,
        "made": made,
        "computes": [],
        "until": None,
    }


def _first_id(parts: int) -> int:
    """The first id of instances of which *parts* fit a GPU.

    Ids number a binary tree: 0 is the whole GPU, 1 and 2 are its halves, and so on. Seen on A100
    and H100, where the smallest have 7 to 13.
    """
    return (1 << (parts - 1).bit_length()) - 1


def removed(state: State, unit: str, gi: int) -> State:
    return _with(state, unit, [i for i in instances(state, unit) if i["gi"] != gi])


def dying(state: State, unit: str, gi: int) -> State:
    """*state* after the driver has destroyed a GPU instance: it may still be listed for a while."""
    seconds = states.of(state, unit).get("lag", LAG_S)
    if not isinstance(seconds, float) or seconds <= 0:
        return removed(state, unit, gi)
    until = time.monotonic() + seconds
    return _evolved(state, unit, gi, {"until": until})


def compute_slices(profile: MigProfile) -> list[int]:
    """Sizes of compute instances that a GPU instance can have, in ascending order."""
    return [s for s in (1, 2, 3, 4, 7) if s < profile.slices] + [profile.slices]


def slices_left(product: Product, instance: Instance) -> int:
    used = sum(c["slices"] for c in instance["computes"])
    return known(product, instance["profile"]).slices - used


def with_compute(state: State, unit: str, instance: Instance, slices: int) -> tuple[State, int]:
    """*state* with one more compute instance, and its id."""
    used = {c["ci"] for c in instance["computes"]}
    ci = next(c for c in range(MOST_COMPUTES) if c not in used)
    new: Compute = {"ci": ci, "slices": slices}
    computes = sorted([*instance["computes"], new], key=lambda c: c["ci"])
    return _evolved(state, unit, instance["gi"], {"computes": computes}), ci


def without_compute(state: State, unit: str, instance: Instance, ci: int) -> State:
    computes = [c for c in instance["computes"] if c["ci"] != ci]
    return _evolved(state, unit, instance["gi"], {"computes": computes})


def overdue(state: State, units: Iterable[str]) -> bool:
    """Whether something is still listed that is gone by now."""
    return any(_is_over(i) for unit in units for i in instances(state, unit))


def purged(state: State, units: Iterable[str]) -> State:
    """*state* without what is gone by now."""
    for unit in units:
        left = [i for i in instances(state, unit) if not _is_over(i)]
        if len(left) != len(instances(state, unit)):
            state = _with(state, unit, left)
    return state


def _is_over(instance: Instance) -> bool:
    until = instance["until"]
    return until is not None and until <= time.monotonic()


def _evolved(state: State, unit: str, gi: int, fields: dict[str, object]) -> State:
    changed = [
        cast("Instance", {**i, **fields}) if i["gi"] == gi else i for i in instances(state, unit)
    ]
    return _with(state, unit, changed)


def _with(state: State, unit: str, present: list[Instance]) -> State:
    kept = sorted(present, key=lambda i: i["start"])
    return states.changed(state, unit, instances=cast("Json", kept) if kept else None)
