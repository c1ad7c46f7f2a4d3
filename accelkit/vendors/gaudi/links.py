"""Which cards are wired together, and which make good sets. Not here: where cards hang."""

from collections.abc import Iterable, Iterator
from itertools import combinations

from accelkit import Device, Group, GroupRule, Link, LinkKind
from accelkit.vendors.gaudi import facts


def modules_of(devices: Iterable[Device]) -> dict[int, Device]:
    """The devices by module id; empty where ids do not tell them apart.

    Two cards with one id are on two boards, or one of them is wrong: then nothing says which
    cards are wired together.
    """
    found: dict[int, Device] = {}
    for device in devices:
        module = device.attributes.get("moduleId")
        if not isinstance(module, int):
            continue
        if module in found:
            return {}
        found[module] = device
    return {module: found[module] for module in sorted(found)}


def links_of(devices: Iterable[Device]) -> Iterator[Link]:
    """All to all on a baseboard; PCIe cards only in fours.

    That the ports work cannot be seen in files: links are told as they are built.
    """
    for (one, a), (other, b) in combinations(modules_of(devices).items(), 2):
        if _board_of(a, one) != _board_of(b, other):
            continue
        generation = next((g for g in facts.GENERATIONS.values() if g.name == a.product), None)
        full = all(d.attributes.get("deviceType") in facts.FULL_NETWORK for d in (a, b))
        ports = generation.ports if generation is not None and full else None
        yield Link.between(
            a.id,
            b.id,
            LinkKind.DIRECT,
            count=ports or 1,
            bandwidth=None if generation is None or ports is None else ports * generation.port,
        )


def _board_of(device: Device, module: int) -> tuple[str | None, int]:
    """What a card shares with those that it is wired to."""
    size = facts.QUAD if device.attributes.get("formFactor") == "PCIe" else facts.BOARD
    return device.product, module // size


def groups_of(devices: Iterable[Device]) -> Iterator[Group]:
    """Pairs and fours of next modules, and boards; such of which all are there."""
    modules = modules_of(devices)
    for size in (*facts.SET_SIZES, facts.BOARD):
        for first in range(0, max(modules, default=-1) + 1, size):
            members = {m: modules[m] for m in range(first, first + size) if m in modules}
            boards = {_board_of(device, module) for module, device in members.items()}
            if len(members) == size and len(boards) == 1:
                yield Group(
                    kind="modules",
                    name=f"{size}-{first}",
                    members=tuple(d.id for d in members.values()),
                    rule=GroupRule.HINT,
                )
