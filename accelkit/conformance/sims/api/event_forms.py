"""Events as events.k8s.io and as the core group show them. Not here: what is in them."""

from collections.abc import Mapping

from accelkit.conformance.sims.api.kinds import CORE_EVENTS, Kind

_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: name for name, core in _CORE.items()}
_ALWAYS = {"reportingComponent": "", "reportingInstance": ""}


def shown(kind: Kind, item: Mapping[str, object]) -> Mapping[str, object]:
    """A stored object as *kind* shows it."""
    if kind.resource != CORE_EVENTS:
        return item
    return {**_ALWAYS, **{_CORE.get(name, name): value for name, value in item.items()}}


def stored(kind: Kind, tree: object) -> object:
    """What was sent to *kind*, as it is stored."""
    if kind.resource != CORE_EVENTS or not isinstance(tree, dict):
        return tree
    return {_BACK.get(name, name): value for name, value in tree.items()}
