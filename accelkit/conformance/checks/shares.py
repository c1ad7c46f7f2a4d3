"""P: shares of devices, and amounts that claims ask for. Not here: who makes sure of them."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs

from accelkit.backends.dra.document import render
from accelkit.backends.dra.pool import PoolDevice, RequestPolicy
from accelkit.backends.dra.request_policy import policy_faults
from accelkit.conformance.bench import PluginBench, told
from accelkit.conformance.checks.life import came_and_went, prepare, prepared, release, released
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import left_over
from accelkit.conformance.keeping import Agent, Node
from accelkit.conformance.kinds import Kind, node_of, plain
from accelkit.conformance.model import Badge, Check, Feature, Inapplicable, Unanswered
from accelkit.core.allocation import Allocation
from accelkit.core.limits import LATEST
from accelkit.core.model import DeviceId
from accelkit.core.policy import Divide, DraPolicy, Sharing
from accelkit.core.values import Enforcement, FrozenMap
from accelkit.core.view import View

SHARES = 4
DIVIDED = (
    Sharing(shares=SHARES),
    Sharing(shares=SHARES, divide=Divide.EQUAL),
    Sharing(divide=Divide.REQUESTED),
)
"""Every way of dividing devices."""


def amounts(bench: PluginBench) -> Iterator[str]:
    kind = plain(bench)
    _look(node_of(bench, kind), kind)
    for sharing in DIVIDED:
        node = node_of(bench, kind, sharing=sharing)
        before = node.seen()
        for enforce in sorted(node.during(partial(_can, kind=kind))):
            node.sharing = attrs.evolve(sharing, enforce=enforce)
            yield from node.during(partial(_asked, kind=kind))
            yield from told(f"shares of {kind.device}", left_over(before, node.seen()))


def _look(node: Node, kind: Kind) -> None:
    """Look whether the device can be shared at all.

    Raises:
        Inapplicable: It cannot.
    """
    if not node.during(partial(_can, kind=kind)):
        raise Inapplicable("its devices cannot be shared")


async def _can(agent: Agent, kind: Kind) -> frozenset[Enforcement]:
    return agent.view.devices[kind.device].sharing - {Enforcement.MPS}


async def _asked(agent: Agent, kind: Kind) -> list[str]:
    """What is wrong with amounts of a device that may be asked for."""
    device = published(agent.view, kind.device)
    wrong = []
    for name, one in device.capacity.items():
        if one.policy is not None:
            faults = policy_faults(one.policy, one.value, LATEST)
            wrong += [f"{kind.device}, {name}: {fault}" for fault in faults]
    default = {n: one.policy.default for n, one in device.capacity.items() if one.policy}
    for number, asked in enumerate(_choices(device)):
        claim = share_of(kind, str(number), {**default, **asked})
        try:
            await came_and_went(agent, claim)
        except Unanswered as error:
            wrong.append(f"{asked or default} of {kind.device} is asked for: {error}")
    return wrong


def published(view: View, device: DeviceId) -> PoolDevice:
    """*device* as it is published.

    Raises:
        Unanswered: It is not.
    """
    for pool in render(view, DraPolicy()).pools.values():
        for one in pool.slices:
            for found in one.devices:
                if found.name == device.name:
                    return found
    raise Unanswered(f"{device} is not published")


def _choices(device: PoolDevice) -> Iterator[dict[str, int]]:
    """Amounts that a claim may ask for instead of the defaults."""
    yield {}
    for name, one in device.capacity.items():
        if one.policy is not None:
            yield from ({name: amount} for amount in sorted(_allowed(one.policy)))


def _allowed(policy: RequestPolicy) -> set[int]:
    found = {policy.default, *policy.values}
    if policy.least is not None:
        found |= {policy.least, policy.least + (policy.step or 0)}
    return found | ({policy.most} if policy.most is not None else set())


def share_of(kind: Kind, uid: str, asked: dict[str, int] | None = None) -> Allocation:
    """A claim for a share of a device."""
    claim = kind.claim(uid, share=f"{uid * 8}-0000-4000-8000-000000000000")
    pieces = tuple(attrs.evolve(p, amounts=FrozenMap(asked or {})) for p in claim.pieces)
    return attrs.evolve(claim, pieces=pieces)


def in_any_order(bench: PluginBench) -> Iterator[str]:
    kind = plain(bench)
    sharing = Sharing(shares=SHARES, divide=Divide.EQUAL)
    node = node_of(bench, kind, sharing=sharing)
    _look(node, kind)
    before = node.seen()
    prepare(node, share_of(kind, "5"))
    alone = _files(node)
    release(node, share_of(kind, "5"))

    async def story(agent: Agent) -> dict[str, bytes]:
        for uid in "1234":
            await prepared(agent, share_of(kind, uid))
        files = _files(node)
        await released(agent, share_of(kind, "2"))
        await prepared(agent, share_of(kind, "5"))
        return files

    others = node.during(story)
    for name, content in _files(node).items():
        if others.get(name, content) != content:
            yield f"{name}, of a share of {kind.device}, is another one when others come and go"
        if alone.get(name, content) != content:
            yield f"{name}, of a share of {kind.device}, is another one when it comes alone"
    names = [name for path in node.cdi.glob("*.json") for name in _names(path)]
    if len(set(names)) != len(names):
        yield f"two shares of {kind.device} have one name"
    for uid in "1345":
        release(node, share_of(kind, uid))
    yield from told(f"all shares of {kind.device} are given back", left_over(before, node.seen()))


def _names(path: Path) -> list[str]:
    """Names of the devices in a CDI file."""
    return [device["name"] for device in json.loads(path.read_bytes())["devices"]]


def _files(node: Node) -> dict[str, bytes]:
    """CDI files by name."""
    return {path.name: path.read_bytes() for path in Path(node.cdi).glob("*.json")}


_BADGE = (Badge.SHARING,)
CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "P11",
        "Every amount that claims may ask for is published right, and can be had.",
        amounts,
        Feature.MACHINE,
        badges=_BADGE,
    ),
    in_process(
        "P12",
        "Each share is by itself, in whatever order shares come and go.",
        in_any_order,
        Feature.MACHINE,
        badges=_BADGE,
    ),
)
