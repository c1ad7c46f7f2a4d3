"""Claims of every kind that a plugin can serve, and nodes for them. Not here: any check."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

import attrs

from accelkit.conformance.bench import PluginBench
from accelkit.conformance.cuts import carved, lacking, ways
from accelkit.conformance.keeping import Agent, Node
from accelkit.conformance.model import Unanswered
from accelkit.conformance.subjects import Cut
from accelkit.core.allocation import (
    CLAIM_CONFIG,
    Allocation,
    AskedSharing,
    ClaimBody,
    ClaimConfig,
    ClaimRef,
    Grant,
    Granted,
    Piece,
)
from accelkit.core.errors import AccelkitError
from accelkit.core.model import Device, DeviceId, Placement
from accelkit.core.places import can_be_set, mode_for
from accelkit.core.policy import (
    API_VERSION,
    DraPolicy,
    Sharing,
    Timeslice,
)
from accelkit.core.serde import from_tree
from accelkit.core.values import Enforcement, Source
from accelkit.core.vendor import SupportsPartitioning, SupportsPreparation
from accelkit.core.view import View
from accelkit.core.working import needed_settings, set_device_mode
from accelkit.testing.hosts import open_host

T = TypeVar("T")
NAMESPACE = "conformance"
PLAIN, PART, SETTING = "a device", "a partition", "a setting"


@attrs.frozen(kw_only=True)
class Kind:
    """What a claim is for."""

    what: str
    """One of the words above."""
    way: Cut
    """The machine on which there is such a thing."""
    device: DeviceId
    """What the claim gets."""
    others: tuple[DeviceId, ...]
    """What it could get instead, beside it, on a machine of as many units as were asked for."""
    body: ClaimBody | None = None
    root: DeviceId
    """The whole device that it is, or is a part of."""
    placement: Placement | None = None
    """Of a partition."""
    mode: str | None = None
    """The mode in which whole devices have to be, and are not yet."""

    def claim(
        self,
        uid: str = "1",
        device: DeviceId | None = None,
        share: str | None = None,
        name: str = "",
    ) -> Allocation:
        """A claim of this kind."""
        got = device or self.device
        blocks = (ClaimConfig(source=Source.FROM_CLAIM, body=self.body),) if self.body else ()
        return Allocation(
            claim=ClaimRef(uid=uid, namespace=NAMESPACE, name=name or f"claim-{uid}"),
            driver=DraPolicy().driver_of(got.vendor),
            pieces=(Piece(device=got, request="r", share=share),),
            configs=blocks,
        )


def node_of(
    bench: PluginBench,
    kind: Kind,
    *,
    count: int = 1,
    sharing: Sharing = Sharing(),  # noqa: B008 - frozen
    settled: bool = False,
) -> Node:
    """A fresh node on which there is what *kind* is for.

    Args:
        bench: Whose plugin.
        kind: Which claims.
        count: Units of the machine.
        sharing: How devices are offered.
        settled: Devices are in the mode that such claims need.
    """
    node = Node(
        machine=bench.machine(kind.way, count=count),
        home=bench.memory(),
        make=bench.plugin,
        sharing=sharing,
    )
    for device in bench.rigged(node.machine).devices() if settled and kind.mode else ():
        if can_be_set(device, kind.mode or ""):
            set_device_mode(bench.plugin(), open_host(node.machine), device, kind.mode or "")
    return node


def kinds(bench: PluginBench, *, count: int = 1) -> Iterator[Kind]:
    """Every kind of claim that the plugin can serve.

    Raises:
        Unanswered: There is none of a kind that it says it can.
    """
    yield plain(bench, count=count)
    if issubclass(bench.subject.vendor, SupportsPartitioning):
        yield from part(bench, count=count)
    if issubclass(bench.subject.vendor, SupportsPreparation):
        yield setting(bench, count=count)


def plain(bench: PluginBench, *, count: int = 1) -> Kind:
    """Claims for a whole device as it is.

    Raises:
        Unanswered: No machine has such a device.
    """
    return known(bench, PLAIN, lambda: _plain(bench, count), count)


def part(bench: PluginBench, *, count: int = 1) -> tuple[Kind, ...]:
    """Claims for a partition that is made for them; none if partitions only come with modes.

    Raises:
        Unanswered: There is none, though devices can be cut so.
        Inapplicable: There is none of the one product that is looked at.
    """
    return known(bench, PART, lambda: _part(bench, count), count)


def setting(bench: PluginBench, *, count: int = 1) -> Kind:
    """Claims that need a setting.

    Raises:
        Unanswered: Nothing that claims can ask for needs one.
    """
    return known(bench, SETTING, lambda: _setting(bench, count), count)


def known(bench: PluginBench, what: str, find: Callable[[], T], count: int = 1) -> T:
    """What *find* finds out about the subject, which is the same each time."""
    found, key = bench.subject.found, (what, count, bench.seed)
    if key not in found:
        found[key] = find()
    return cast("T", found[key])


def _plain(bench: PluginBench, count: int) -> Kind:
    for way in ways(bench.subject):
        if offered := whole(_view(bench, way, count)):
            return _kind(PLAIN, way, [device.id for device in offered])
    raise Unanswered("no device is offered whole on any machine")


def _part(bench: PluginBench, count: int) -> tuple[Kind, ...]:
    cuttable = False
    for way in ways(bench.subject):
        view = _view(bench, way, count)
        cuttable |= any(carved(device) for device in view.devices.values())
        if view.potential:
            # Of the smallest: others go beside it.
            first = max(view.potential, key=lambda one: len(_beside(one, view.potential)))
            root = view.devices[first.root]
            mode = mode_for(first, root)
            found = _kind(PART, way, [first.id, *_beside(first, view.potential)])
            return (
                attrs.evolve(
                    found,
                    root=first.root,
                    placement=first.placement,
                    mode=None if mode == root.mode else mode,
                ),
            )
    if cuttable:
        raise lacking(bench.subject, "has a partition that a claim could have made")
    return ()


def _setting(bench: PluginBench, count: int) -> Kind:
    for way in ways(bench.subject):
        offered = whole(_view(bench, way, count))
        for body in _bodies(bench, offered) if offered else ():
            if _needed(bench, way, offered[0], body):
                found = _kind(SETTING, way, [device.id for device in offered])
                return attrs.evolve(found, body=body)
    raise Unanswered(
        "the plugin says that it sets hardware up, and nothing that claims can ask for needs it: "
        "name a block of configuration that does (blocks)"
    )


def _needed(bench: PluginBench, way: Cut, device: Device, body: ClaimBody) -> bool:
    """Whether a claim with *body* needs a setting of *device*."""
    rig = bench.rigged(bench.machine(way, count=1))
    try:
        return bool(needed_settings(rig.vendor, rig.door, grant_for(bench, device, body)))
    except AccelkitError:
        return False


def grant_for(bench: PluginBench, device: Device, body: ClaimBody) -> Grant:
    """The grant of a claim with *body* for *device* alone."""
    asked = body.sharing
    kind = bench.subject.vendor.claim_config
    return Grant(
        owner="claim/1",
        granted=(Granted(device=device, request="r"),),
        sharing=Sharing(
            timeslice=asked.timeslice or Timeslice.DEFAULT,
            enforce=asked.enforce or Enforcement.NONE,
        ),
        config=from_tree(kind, body.vendor, "$.vendor") if body.vendor else None,
    )


def _bodies(bench: PluginBench, devices: Iterable[Device]) -> Iterator[ClaimBody]:
    """What claims may ask for."""
    yield _body(AskedSharing(timeslice=Timeslice.LONG))
    if bench.subject.blocks is not None:
        yield from_tree(ClaimBody, bench.subject.blocks.first)
    can = {enforcement for device in devices for enforcement in device.sharing}
    for enforcement in sorted(can - {Enforcement.NONE}):
        yield _body(AskedSharing(enforce=enforcement))


def _body(asked: AskedSharing) -> ClaimBody:
    return ClaimBody(api_version=API_VERSION, kind=CLAIM_CONFIG, sharing=asked)


def _kind(what: str, way: Cut, devices: list[DeviceId]) -> Kind:
    return Kind(what=what, way=way, device=devices[0], root=devices[0], others=tuple(devices[1:]))


def _view(bench: PluginBench, way: Cut, count: int) -> View:
    """What an agent sees of a fresh machine."""
    node = Node(machine=bench.machine(way, count=count), home=bench.memory(), make=bench.plugin)

    async def look(agent: Agent) -> View:
        return agent.view

    return node.during(look)


def whole(view: View) -> list[Device]:
    """Whole devices that can be had as they are."""
    return [d for i, d in view.offered.items() if d.parent is None and d.usable and i in view.edits]


def _beside(first: Device, parts: Iterable[Device]) -> list[DeviceId]:
    """Partitions that have no slot of *first*."""
    assert first.placement is not None
    mine = set(first.placement.slots)
    return [
        part.id
        for part in parts
        if part.root != first.root
        or (part.placement is not None and mine.isdisjoint(part.placement.slots))
    ]
