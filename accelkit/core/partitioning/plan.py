"""What every device shall be cut to, and what is in the way. Not here: the steps, and doing them.

Partitions that somebody holds stay where they are, and so do those that somebody else made, unless
their rule says ``foreign: destroy``. What stays keeps its place and so its name.
"""

from collections.abc import Collection, Iterable, Iterator

import attrs

from accelkit.core.errors import PartitionError
from accelkit.core.model import DeviceId, Holding, Problem, Snapshot
from accelkit.core.partitioning.rules import mode_named, partitioning_of, parts_by_parent
from accelkit.core.partitioning.site import Holders, Site
from accelkit.core.partitioning.targets import target
from accelkit.core.partitioning.wanted import Plan, Wanted
from accelkit.core.policy import PartitioningHow, Policy
from accelkit.core.values import Standing

WAITS = "partitioning-waits"
"""Problem: something is left to do, and somebody is in the way."""
NO_MAKER = "cannot-partition"
"""Problem: something is left to do, and the plugin of the vendor cannot do it."""
MOST_TOLD = 4
"""How many of those in the way a problem names."""


def plan(
    snapshot: Snapshot,
    policy: Policy,
    holdings: Iterable[Holding] = (),
    *,
    made: Collection[DeviceId] = (),
    claimed: Collection[DeviceId] = (),
    makers: Collection[str] | None = None,
) -> Plan:
    """Find what every device shall be by the policy's ``partitioning``.

    Devices that could not be read, or are gone, are left out: nothing is done to them.

    Args:
        snapshot: What is there.
        policy: Its ``partitioning``, ``layouts`` and ``only``.
        holdings: Who holds what; processes that vendors see count, too.
        made: Partitions that accelkit made, for claims or by an earlier plan; all others are
            somebody else's.
        claimed: Those of them that were made for claims.
        makers: Vendors whose plugins can make partitions; None: all.
    """
    wanted: list[Wanted] = []
    problems: list[Problem] = []
    for site in _sites(snapshot, policy, holdings, frozenset(made), frozenset(claimed)):
        device = site.device
        try:
            found = target(site, policy.layouts)
        except PartitionError as error:
            said = (str(error), *tuple(site.staying())[:MOST_TOLD])
            problems.append(_problem(site, error.code, "; ".join(said), error.remedy))
            continue
        helpless = makers is not None and device.id.vendor not in makers
        if helpless and (_differs(site, found) or _hopes(site)):
            reason = f"the plugin for {device.id.vendor} cannot make partitions"
            remedy = "leave the device out of partitioning in the policy"
            problems.append(_problem(site, NO_MAKER, reason, remedy))
            continue
        waits = _in_the_way(site, found) if _differs(site, found) else ()
        wanted.append(attrs.evolve(found, waits=waits))
        if told := waits or tuple(site.lingering()):
            reason = "; ".join(told[:MOST_TOLD])
            problems.append(_problem(site, WAITS, reason, "it is done when they are gone"))
    return Plan(wanted=tuple(wanted), problems=tuple(problems))


def _sites(
    snapshot: Snapshot,
    policy: Policy,
    holdings: Iterable[Holding],
    made: frozenset[DeviceId],
    claimed: frozenset[DeviceId],
) -> Iterator[Site]:
    """The devices that a rule wants something of."""
    parts = parts_by_parent(snapshot)
    of: dict[DeviceId, tuple[Holding, ...]] = {}
    for holding in holdings:
        of[holding.device] = (*of.get(holding.device, ()), holding)
    holders = Holders(of=of)
    for device in snapshot.devices:
        if device.parent is None and device.standing is Standing.PRESENT:
            rule = partitioning_of(device, policy, snapshot.node)
            here = parts.get(device.id, ())
            if rule.how is not PartitioningHow.NONE:
                yield Site(
                    device=device,
                    parts=here,
                    rule=rule,
                    holders=holders,
                    made=made,
                    claimed=claimed,
                )


def _differs(site: Site, wanted: Wanted) -> bool:
    changes = wanted.mode not in {None, site.device.mode}
    return changes or {*wanted.places} != site.there or bool(wanted.begun)


def _hopes(site: Site) -> bool:
    """Whether claims should have partitions made."""
    return site.rule.how is PartitioningHow.DYNAMIC and bool(site.device.profiles)


def _in_the_way(site: Site, wanted: Wanted) -> tuple[str, ...]:
    """Who must be gone before the device can be as *wanted*, a sentence each."""
    mode = mode_named(site.device, wanted.mode)
    if mode is not None and mode.name != site.device.mode:
        return site.in_the_way(mode)
    return tuple(site.holders.said(site.device.id))


def _problem(site: Site, code: str, reason: str, remedy: str) -> Problem:
    device = site.device.id
    return Problem(
        vendor=device.vendor, subject=device.name, code=code, reason=reason, remedy=remedy
    )
