"""Whether the classes that are there do what offers promise. Pure. Not here: reading them."""

from collections.abc import Iterable, Iterator, Mapping

from accelkit.backends.extended.document import OR, DeviceClass
from accelkit.core.kube import Json
from accelkit.core.model import Problem

MISSING, DIFFERS, TAKEN = "class-missing", "class-differs", "name-taken"
_RENDER = "apply what `accelkit render extended` prints"


def problems_of(wanted: Iterable[DeviceClass], there: Iterable[Json]) -> Iterator[Problem]:
    """What keeps pods that ask for a resource name from its devices, for each class *wanted*.

    A class may have devices of more drivers than this node has: other nodes have others.
    """
    found = {_text(_part(item, "metadata"), "name"): item for item in there}
    for one in wanted:
        item = found.get(one.name)
        if item is None:
            yield _problem(MISSING, one, "there is no such class, so that pods wait", _RENDER)
        elif difference := _difference(one, _part(item, "spec")):
            yield _problem(DIFFERS, one, difference, _RENDER)
        rivals = sorted(
            n for n, i in found.items() if n != one.name and _resource(i) == one.resource
        )
        if rivals:
            # Seen on 1.37.2: the newer class wins; when it goes, the name stays unmapped until
            # the older one is changed or the scheduler starts again.
            yield _problem(
                TAKEN,
                one,
                f"{one.resource} is the name of {', '.join(rivals)}, too, and the newest has it",
                f"delete {', '.join(rivals)}, then label {one.name} so that the scheduler sees it",
            )


def _difference(one: DeviceClass, spec: Mapping[str, object]) -> str:
    name = _text(spec, "extendedResourceName")
    if name != one.resource:
        what = f"has the name {name}" if name else "has no extendedResourceName: 1.36 keeps it"
        return f"it {what}, not {one.resource}"
    selectors = spec.get("selectors")
    expressions = [
        _text(_part(selector, "cel"), "expression")
        for selector in (selectors if isinstance(selectors, list) else [])
    ]
    if len(expressions) != 1:
        return f"it has {len(expressions)} selectors, not the one that is needed"
    terms = {_bare(term) for term in expressions[0].split(OR)}
    lacking = [term for term in one.terms if _bare(term) not in terms]
    return f"it does not select {lacking[0]}" if lacking else ""


def _bare(term: str) -> str:
    """*term* without the brackets around it and without spaces."""
    bare = "".join(term.split())
    return bare[1:-1] if bare.startswith("(") and bare.endswith(")") else bare


def _problem(code: str, one: DeviceClass, reason: str, remedy: str) -> Problem:
    reason = f"class {one.name} of {one.resource}: {reason}"
    return Problem(subject=one.name, code=code, reason=reason, remedy=remedy)


def _resource(item: Json) -> str:
    return _text(_part(item, "spec"), "extendedResourceName")


def _part(item: object, key: str) -> Mapping[str, object]:
    part = item.get(key) if isinstance(item, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _text(item: Mapping[str, object], key: str) -> str:
    found = item.get(key)
    return found if isinstance(found, str) else ""
