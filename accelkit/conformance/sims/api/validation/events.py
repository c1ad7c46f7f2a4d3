"""What a server refuses in events, in the words of the core group. Not here: other kinds.

Source:
    kubernetes v1.37.2, pkg/apis/core/validation/events.go, and answers seen.
"""

from collections.abc import Iterator

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.refusals import Cause, required, wrong
from accelkit.conformance.sims.api.validation import common, names
from accelkit.conformance.sims.api.values import number, part, text

_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "note": 1024}
"""Bytes."""
_SHOWN = {
    "note": "message",
    "regarding": "involvedObject",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""How fields of events.k8s.io are called in the core group."""
_FIXED = (
    *_SHOWN, "eventTime", "reason", "type", "action", "related", "reportingController",
    "reportingInstance",
)  # fmt: skip
_ANYWHERE = {"default", "kube-system"}
"""Where events may be of things that are in no namespace."""


def validate(item: Object, old: Object | None, *, strict: bool) -> Iterator[Cause]:
    """An event that is made, or written over *old*; *strict*: through events.k8s.io."""
    yield from _always(item)
    if not strict:
        return
    if old is None:
        yield from common.metadata(item)
        yield from _new(item)
        yield from _series(item)
        return
    if item.get("series") != old.get("series"):
        yield from _series(item)
    for name in _FIXED:
        if item.get(name) != old.get(name):
            yield wrong(_SHOWN.get(name, name), item.get(name), "field is immutable")


def _always(item: Object) -> Iterator[Cause]:
    about, here = text(item, "regarding", "namespace"), text(item, "metadata", "namespace")
    dated = bool(item.get("eventTime"))
    if about:
        elsewhere = not dated and about != here
    else:
        elsewhere = here not in (_ANYWHERE if dated else {"default"})
    if elsewhere:
        yield wrong("involvedObject.namespace", about, "does not match event.namespace")
    if not dated:
        return
    if not text(item, "reportingController"):
        yield required("reportingController")
    yield from names.label_key("reportingController", text(item, "reportingController"))
    for name, limit in _LIMITS.items():
        if not text(item, name) and name != "note":
            yield required(name)
        if len(text(item, name).encode()) > limit:
            yield wrong(_SHOWN.get(name, name), "", f"can have at most {limit} characters")


def _new(item: Object) -> Iterator[Cause]:
    if not item.get("eventTime"):
        yield required("eventTime")
    if text(item, "type") not in {"Normal", "Warning"}:
        yield wrong("type", "", f"has invalid value: {text(item, 'type')}")
    for name, shown in _SHOWN.items():
        if name.startswith("deprecated") and item.get(name):
            yield wrong(shown, "", "needs to be unset")


def _series(item: Object) -> Iterator[Cause]:
    series = part(item, "series")
    if series and number(series, "count") < 2:
        yield wrong("series.count", "", "should be at least 2")
    if series and not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")
