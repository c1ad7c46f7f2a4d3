"""Why a claim has devices, or none: as far as it can be seen in what is published. Pure.

Not here: reading it, and pods. The scheduler has the last word.
"""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.backends.dra.claims_tree import at, items, mapping, text
from accelkit.backends.dra.explain_devices import Pools, Published, pools_of
from accelkit.backends.dra.explain_terms import truth_of
from accelkit.backends.dra.explain_use import Use, obstacles, use_of
from accelkit.core.kube import Json
from accelkit.core.values import freeze

LAST_WORD = "The scheduler has the last word."
SHOWN = 3
"""Devices that are named."""
_TAKEN, _UNREAD, _OTHER = range(3)
"""Something is in the way; it is not known; it is not what was asked for."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Explanation:
    """What there is to say, a sentence each."""

    verdict: str
    good: bool
    """Whether it has what it asks for."""
    lines: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Cluster:
    """What is published and promised."""

    classes: Mapping[str, Json]
    """By name."""
    pools: Pools
    use: Use
    all_claims: bool = True
    """Whether claims of other namespaces could be read."""

    @classmethod
    def of(
        cls,
        classes: Iterable[Json],
        slices: Iterable[Json],
        claims: Iterable[Json],
        *,
        all_claims: bool = True,
    ) -> "Cluster":
        pools = pools_of(slices)
        return cls(
            classes={text(item, "metadata", "name"): item for item in classes},
            pools=pools,
            use=use_of(claims, pools),
            all_claims=all_claims,
        )


@attrs.frozen(order=True)
class _Against:
    """What speaks against a device."""

    sort: int
    why: str


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Chance:
    """What one request can have now."""

    lines: tuple[str, ...]
    enough: bool = False
    """Whether nothing speaks against as many devices as it wants."""
    unread: bool = False
    """Whether something that may speak against devices was not evaluated."""


def explain_claim(claim: Json, cluster: Cluster) -> Explanation:
    """Why *claim* has its devices, or what can be seen of why it has none."""
    name = f"claim {text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}"
    results = [*items(claim, "status", "allocation", "devices", "results")]
    if mapping(claim, "status", "allocation"):
        users = [text(one, "name") for one in items(claim, "status", "reservedFor")]
        held = f"used by {', '.join(users)}" if users else "used by no pod"
        given = tuple(_given(result, cluster) for result in results)
        return Explanation(verdict=f"{name} is allocated, and {held}", good=True, lines=given)
    chances = [
        chance_of(f"request {label}", request, cluster) for label, request in _requests(claim)
    ]
    lines = [line for chance in chances for line in chance.lines]
    if not all(chance.enough or chance.unread for chance in chances):
        verdict = f"{name} is not allocated, and cannot be now"
    elif not all(chance.enough for chance in chances):
        verdict = f"{name} is not allocated; whether it can be was not evaluated"
    else:
        verdict = f"{name} is not allocated, though there are devices: is there a pod that uses it?"
    return Explanation(verdict=verdict, good=False, lines=(*lines, *_doubts(cluster), LAST_WORD))


def chance_of(label: str, request: Json, cluster: Cluster) -> Chance:
    """What *request* can have now, and why not more."""
    name = text(request, "deviceClassName")
    if name not in cluster.classes:
        return Chance(lines=(f"{label}: there is no device class {name}",))
    free: list[Published] = []
    found: dict[_Against, list[Published]] = {}
    for device in cluster.pools.devices:
        against = _against(device, request, cluster)
        (found.setdefault(against, []) if against else free).append(device)
    total, count = len(cluster.pools.devices), at(request, "count")
    wanted = count if isinstance(count, int) else 1
    said = f"{label} of class {name}: {len(free)} of {total} published devices can be had"
    lines = [said + (f", {wanted} wanted" if wanted > 1 else "")]
    lines += [f"  can be had: {_named(free)}"] if free else []
    lines += [f"  {against.why}: {_named(found[against])}" for against in sorted(found)]
    unread = any(against.sort == _UNREAD for against in found)
    return Chance(lines=tuple(lines), enough=len(free) >= wanted, unread=unread)


def _requests(claim: Json) -> Iterator[tuple[str, Json]]:
    """Every request, and of a choice each of its alternatives."""
    for request in items(claim, "spec", "devices", "requests"):
        name = text(request, "name")
        if exactly := mapping(request, "exactly"):
            yield name, exactly
        for sub in items(request, "firstAvailable"):
            if isinstance(sub, Mapping):
                yield f"{name}/{text(sub, 'name')}", sub


def _against(device: Published, request: Json, cluster: Cluster) -> _Against | None:
    """The first thing that speaks against *device*; None: nothing does."""
    unread = None
    of_class = mapping(cluster.classes[text(request, "deviceClassName")], "spec")
    for selector in (*items(of_class, "selectors"), *items(request, "selectors")):
        truth = truth_of(text(selector, "cel", "expression"), device)
        if truth.holds is False:
            return _Against(_OTHER, truth.why)
        unread = unread or (None if truth.holds else _Against(_UNREAD, truth.why))
    why = next(obstacles(device, request, cluster.pools, cluster.use), "")
    return _Against(_TAKEN, why) if why else unread


def _given(result: object, cluster: Cluster) -> str:
    """What was given, and what is known against it by now."""
    key = text(result, "driver"), text(result, "pool"), text(result, "device")
    share = text(result, "shareID")
    said = f"request {text(result, 'request')}: {key[2]} of pool {key[1]} ({key[0]})"
    said += f", share {share[:8]}" if share else ""
    device = next((one for one in cluster.pools.devices if one.key == key), None)
    if device is None:
        return f"{said}; it is not published any more"
    taints = [f"{text(t, 'key')} ({text(t, 'effect')})" for t in items(device.item, "taints")]
    others = cluster.use.holders.get(key, ())
    more = f"; tainted {', '.join(taints)}" if taints else ""
    return said + more + (f"; {len(others)} claims share it" if len(others) > 1 else "")


def _named(devices: Iterable[Published]) -> str:
    """How many, on which nodes, and some of their names."""
    several = list(devices)
    nodes = sorted({one.node or "any node" for one in several})
    where = ", ".join(nodes[:SHOWN]) + (
        f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
    )
    if len(several) <= SHOWN:
        return f"{', '.join(one.name for one in several)} on {where}"
    return f"{len(several)} devices on {where}"


def _doubts(cluster: Cluster) -> Iterator[str]:
    if not cluster.all_claims:
        yield "claims of other namespaces cannot be read: what they hold is not known"
