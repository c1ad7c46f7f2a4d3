"""The pools of a node, made from a view. Pure. Not here: who writes them."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import attrs

from accelkit.backends.dra.attributes import Vocabulary, vocabulary
from accelkit.backends.dra.drawing import amounts_of, unit_of
from accelkit.backends.dra.listing import BACKEND, Listed, competing_of, listed_of
from accelkit.backends.dra.packing import pack
from accelkit.backends.dra.pool import Dialect, Effect, Pool
from accelkit.core.limits import LATEST
from accelkit.core.model import DeviceId, Problem
from accelkit.core.policy import DraPolicy
from accelkit.core.values import FrozenMap, freeze
from accelkit.core.view import View

_FULL = Dialect()
_NO_POOLS = FrozenMap[str, Pool]()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Document:
    """What is published for a node."""

    pools: FrozenMap[str, Pool] = FrozenMap()
    """By driver. A vendor that has not answered has none, which says nothing of its devices, and
    one without devices only if it has a pool already: an empty one would count as complete."""
    problems: tuple[Problem, ...] = ()
    """What cannot be said in slices, or not to this server."""


def render(
    view: View,
    policy: DraPolicy,
    dialect: Dialect = _FULL,
    previous: Mapping[str, Pool] = _NO_POOLS,
) -> Document:
    """Say what is published of *view*.

    Args:
        view: What is offered and who holds it.
        policy: Names of drivers.
        dialect: What the server keeps.
        previous: What is published now, by driver: devices stay in their slices where they can.
    """
    pools: dict[str, Pool] = {}
    problems: list[Problem] = []
    for vendor in vendors_of(view):
        driver = policy.driver_of(vendor)
        competing = competing_of(view, vendor)
        listed = listed_of(view, vendor, dialect, competing)
        words = vocabulary(
            [one.device for one in listed],
            [amounts_of(one, dialect) for one in listed],
            lists=dialect.list_attributes,
        )
        units = [
            unit_of(view.devices[root], family, words, dialect, competing.get(root))
            for root, family in _families(listed).items()
        ]
        before = previous[driver].slices if driver in previous else ()
        if units or before:
            slices = pack(units, before)
            pools[driver] = Pool(driver=driver, name=view.snapshot.node, slices=slices)
        problems += _unsaid(vendor, driver, words)
        problems += _unkept(view, vendor, driver, dialect, listed)
    return Document(pools=FrozenMap(pools), problems=tuple(problems))


def vendors_of(view: View) -> tuple[str, ...]:
    """Vendors whose pools follow from *view*, by name.

    Not one that has not answered, nor one that sees hardware but no device: its driver may come.
    """
    there = {device.id.vendor for device in view.snapshot.devices}
    troubled = {problem.vendor for problem in view.snapshot.problems} - there
    return tuple(sorted((offered_vendors(view) & view.snapshot.answered) - troubled))


def offered_vendors(view: View) -> frozenset[str]:
    """Vendors whose devices are or may be published."""
    globs = [offer.select.vendor for offer in view.offers if offer.through == BACKEND]
    named = {
        vendor
        for vendor in view.domains
        if any(not some or any(fnmatchcase(vendor, glob) for glob in some) for some in globs)
    }
    named |= {
        device.vendor
        for device, given in view.assignments.items()
        if given.terms is not None and given.terms.through == BACKEND
    }
    named |= {holding.device.vendor for holding in view.holdings if holding.through == BACKEND}
    return frozenset(named)


def _families(listed: Sequence[Listed]) -> Mapping[DeviceId, list[Listed]]:
    families: dict[DeviceId, list[Listed]] = {}
    for one in listed:
        families.setdefault(one.root, []).append(one)
    return families


def _unsaid(vendor: str, driver: str, words: Vocabulary) -> Iterator[Problem]:
    """What devices cannot say of themselves."""
    if words.left_out:
        yield Problem(
            vendor=vendor,
            subject=driver,
            code="attributes-trimmed",
            reason=f"a device may have {LATEST.entries} attributes and capacities: "
            f"{', '.join(words.left_out)} are left out",
            remedy="do not select by them",
        )
    for name, lacking in words.gaps.items():
        yield Problem(
            vendor=vendor,
            subject=f"{driver}/{name}",
            code="attribute-missing",
            reason=f"{lacking} devices do not say their {name}",
            remedy=f"a selector that looks at {name} must ask first whether it is there",
        )


def _unkept(
    view: View, vendor: str, driver: str, dialect: Dialect, listed: Sequence[Listed]
) -> Iterator[Problem]:
    """What the server does not keep, and who notices."""
    evicted = [
        one.device.id.name
        for one in listed
        if any(taint.effect is Effect.NO_EXECUTE for taint in one.taints)
    ]
    if evicted and not dialect.taints:
        yield Problem(
            vendor=vendor,
            subject=driver,
            code="evict-unsupported",
            reason=f"the API server keeps no taints: no pod is moved off {', '.join(evicted)}",
            remedy="end their pods by hand, or turn on the feature gate DRADeviceTaints",
        )
    for device in view.snapshot.devices:
        given = view.assignments.get(device.id)
        if device.binding is None or device.id.vendor != vendor or given is None:
            continue
        one = Listed(device=device, terms=given.terms) if given.terms else None
        if one is not None and one.terms.through == BACKEND and not one.bindable(dialect):
            yield _unbindable(one)


def _unbindable(one: Listed) -> Problem:
    device = one.device.id
    if one.binding is None:
        reason, remedy = "its binding conditions cannot be written", "report it to its vendor"
    else:
        reason = "the API server keeps no binding conditions"
        remedy = "turn on the feature gate DRADeviceBindingConditions"
    return Problem(
        vendor=device.vendor,
        subject=device.name,
        code="binding-unsupported",
        reason=f"{reason}: {device} is published only while it is held",
        remedy=remedy,
    )
