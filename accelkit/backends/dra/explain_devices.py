"""Devices as any driver publishes them, for explanations. Pure. Not here: who has them."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.backends.dra.claims_tree import at, items, mapping, text
from accelkit.core.kube import Json
from accelkit.core.units import parse_quantity

Key = tuple[str, str, str]
"""Driver, pool, name."""


@attrs.frozen(kw_only=True)
class Published:
    """A device in a slice."""

    driver: str
    pool: str
    node: str
    """Empty: it is not of one node."""
    item: Json = attrs.field(repr=False)
    fault: str = ""
    """Why nothing of its pool can be had."""

    @property
    def name(self) -> str:
        return text(self.item, "name")

    @property
    def key(self) -> Key:
        return self.driver, self.pool, self.name

    @property
    def shareable(self) -> bool:
        return at(self.item, "allowMultipleAllocations") is True

    @property
    def capacity(self) -> Mapping[str, int]:
        """Those that are whole numbers."""
        found = mapping(self.item, "capacity")
        return {key: n for key in found if (n := amount(text(found, key, "value"))) is not None}

    @property
    def counters(self) -> Mapping[tuple[str, str], int]:
        """What it takes of its pool, by set and counter."""
        return {
            (text(taken, "counterSet"), name): amount(text(taken, "counters", name, "value")) or 0
            for taken in items(self.item, "consumesCounters")
            for name in mapping(taken, "counters")
        }

    def attribute(self, domain: str, name: str) -> str | int | bool | None:
        """A value by its full name; a bare key is in the driver's domain."""
        attributes = mapping(self.item, "attributes")
        for key in (f"{domain}/{name}", *([name] if domain == self.driver else [])):
            for value in mapping(attributes, key).values():
                if isinstance(value, str | int):
                    return value
        return None


@attrs.frozen
class Pools:
    """All that is published."""

    devices: tuple[Published, ...]
    counters: Mapping[tuple[str, str, str, str], int]
    """What there is, by driver, pool, set and counter."""


def pools_of(slices: Iterable[Json]) -> Pools:
    """What is in the newest slices of each pool."""
    by_pool: dict[tuple[str, str], list[Json]] = {}
    for item in slices:
        key = text(item, "spec", "driver"), text(item, "spec", "pool", "name")
        by_pool.setdefault(key, []).append(item)
    devices: list[Published] = []
    counters: dict[tuple[str, str, str, str], int] = {}
    for (driver, pool), several in sorted(by_pool.items()):
        newest = max(_number(item, "generation") for item in several)
        current = [item for item in several if _number(item, "generation") == newest]
        wanted = _number(current[0], "resourceSliceCount")
        fault = (
            "" if len(current) == wanted else f"pool {pool} has {len(current)} of {wanted} slices"
        )
        devices += _devices(driver, pool, current, fault)
        for item in current:
            for one in items(item, "spec", "sharedCounters"):
                for name in mapping(one, "counters"):
                    total = amount(text(one, "counters", name, "value"))
                    counters[driver, pool, text(one, "name"), name] = total or 0
    return Pools(tuple(devices), counters)


def _devices(driver: str, pool: str, slices: Iterable[Json], fault: str) -> Iterator[Published]:
    for item in slices:
        node = text(item, "spec", "nodeName")
        for device in items(item, "spec", "devices"):
            if isinstance(device, Mapping):
                yield Published(driver=driver, pool=pool, node=node, item=device, fault=fault)


def amount(quantity: str) -> int | None:
    """*quantity* as a number; None: it is no whole one."""
    try:
        return parse_quantity(quantity)
    except ValueError:
        return None


def _number(item: Json, key: str) -> int:
    found = at(item, "spec", "pool", key)
    return found if isinstance(found, int) else 0
