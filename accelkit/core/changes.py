"""What changed between two views, in sentences for people. Not here: anything that decides."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from accelkit.core.model import Device, DeviceId, Problem
from accelkit.core.view import View


def diff(old: View, new: View) -> tuple[str, ...]:
    """What changed from *old* to *new*, a sentence each, devices first; equal views: nothing."""
    return (
        *_device_changes(old, new),
        *_map_changes("software", old.snapshot.software, new.snapshot.software),
        *_problem_changes(old.snapshot.problems, new.snapshot.problems),
        *_other_changes(old, new),
    )


def _device_changes(old: View, new: View) -> Iterator[str]:
    for i in sorted({*old.devices, *new.devices}):
        before, after = old.devices.get(i), new.devices.get(i)
        if after is None:
            yield f"{i} is gone"
            continue
        said = (*_verdict_changes(i, old, new), *_offer_changes(i, old, new))
        if before is None:
            yield "; ".join((f"{i} is new: {after.product or after.kind}", *said))
            continue
        if before != after:
            yield from _fact_changes(before, after)
        yield from (f"{i} {change}" for change in said)


def _fact_changes(before: Device, after: Device) -> Iterator[str]:
    if before.standing is not after.standing:
        yield f"{after.id} is {after.standing}, was {before.standing}"
    for code in sorted({c.code for c in before.conditions} ^ {c.code for c in after.conditions}):
        found = next((c for c in after.conditions if c.code == code), None)
        if found is None:
            yield f"{after.id} has no {code} any more"
        else:
            yield f"{after.id} has {code} ({found.severity})" + _because(found.message)
    fields = [
        field.name
        for field in attrs.fields(Device)
        if field.name not in {"standing", "conditions"}
        and getattr(before, field.name) != getattr(after, field.name)
    ]
    same_codes = [c.code for c in before.conditions] == [c.code for c in after.conditions]
    if same_codes and before.conditions != after.conditions:
        fields.append("conditions")
    if fields:
        yield f"{after.id} changed: {', '.join(fields)}"


def _because(text: str) -> str:
    return f": {text}" if text else ""


def _verdict_changes(i: DeviceId, old: View, new: View) -> Iterator[str]:
    before, after = old.verdicts.get(i), new.verdicts.get(i)
    if after is None or before == after:
        return
    if before is None or (before.health, before.overdue) != (after.health, after.overdue):
        overdue = " for too long" if after.overdue else ""
        worst = after.reasons[0].code if after.reasons else ""
        yield f"is {after.health}{overdue}{_because(worst)}"
    else:
        yield f"is still {after.health}" + _because(", ".join(c.code for c in after.reasons))


def _offer_changes(i: DeviceId, old: View, new: View) -> Iterator[str]:
    before, after = old.assignments.get(i), new.assignments.get(i)
    if after is not None and before != after:
        if after.terms is None:
            yield f"is offered nowhere{_because(after.why)}"
        elif after.leaving:
            yield f"is leaving {after.terms.name}{_because(after.why)}"
        else:
            yield f"is offered in {after.terms.name}{_because(after.why)}"
    if after is not None and after.terms is not None and old.edits.get(i) != new.edits.get(i):
        yield f"has {'new' if i in new.edits else 'no'} edits for containers"


def _map_changes(what: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield f"{what} {name} is {new.get(name, 'gone')}, was {old.get(name, 'not known')}"


def _problem_changes(old: Iterable[Problem], new: Iterable[Problem]) -> Iterator[str]:
    before, after = tuple(old), tuple(new)
    for problem in after:
        if problem not in before:
            yield f"problem: {_named(problem)}{_because(problem.reason)}"
    for problem in before:
        if problem not in after:
            yield f"solved: {_named(problem)}"


def _named(problem: Problem) -> str:
    return " ".join(part for part in (problem.vendor, problem.subject, problem.code) if part)


def _other_changes(old: View, new: View) -> Iterator[str]:
    for holding in sorted({*old.holdings} ^ {*new.holdings}, key=str):
        who = holding.holder.pod or holding.holder.claim or holding.holder.uid or "somebody"
        held = "is held by" if holding in new.holdings else "is no longer held by"
        yield f"{holding.device} {held} {who}"
    for what in ("links", "groups", "answered", "node"):
        if getattr(old.snapshot, what) != getattr(new.snapshot, what):
            yield f"{what} changed"
    for what in ("offers", "domains", "sets", "revision", "boot"):
        if getattr(old, what) != getattr(new, what):
            yield f"{what} changed"
