"""Which objects a request means. Not here: which requests there are.

Source:
    k8s.io/apimachinery v0.37.2, pkg/labels/selector.go and pkg/fields/selector.go.
"""

import re
from collections.abc import Callable, Mapping

from accelkit.conformance.sims.api.kinds import Kind
from accelkit.conformance.sims.api.refusals import bad_request
from accelkit.conformance.sims.api.values import part

Object = Mapping[str, object]
Chosen = Callable[[Object], bool]
_FIELD = re.compile(r"(?P<name>[^=!,]*?)(?P<operator>==|!=|=)(?P<value>[^,]*)")
_LABEL = re.compile(
    r"""\s*(?:
      (?P<absent>!)\s*(?P<lacking>[^\s!=<>,()]+)
    | (?P<key>[^\s!=<>,()]+)\s*(?:
        (?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,()]*)
      | (?P<set>in|notin)\s*\((?P<values>[^)]*)\)
      )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


def by_fields(kind: Kind, text: str) -> Chosen:
    """Read ``spec.nodeName=n1,metadata.name!=x``.

    Raises:
        Refused: It is none, or names a field that cannot be selected by.
    """
    wanted = [_field(kind, one) for one in text.split(",") if one]

    def chosen(item: Object) -> bool:
        return all((_at(item, path) == value) is equal for path, value, equal in wanted)

    return chosen


def _field(kind: Kind, text: str) -> tuple[str, str, bool]:
    found = _FIELD.fullmatch(text)
    if not found:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    name = found["name"]
    if name in kind.fields:
        return kind.fields[name], found["value"], found["operator"] != "!="
    resource = kind.resource
    if kind.selectable:
        of = f"{resource.api_version}, Kind={resource.kind}"
        raise bad_request(f"field label not supported for {of}: {name}")
    known = ", ".join(f'"{each}"' for each in ("metadata.name", "metadata.namespace"))
    raise bad_request(f'"{name}" is not a known field selector: only {known}')


def _at(item: Object, path: str) -> str:
    *names, last = path.split(".")
    found = part(item, *names).get(last)
    if isinstance(found, bool) or path == "spec.unschedulable":
        return str(bool(found)).lower()
    return "" if found is None else str(found)


def by_labels(text: str) -> Chosen:
    """Read ``a=b,c!=d,e in (f,g),h,!i``.

    Raises:
        Refused: It is none.
    """
    requirements, at = [], 0
    while text and at < len(text):
        found = _LABEL.match(text, at)
        if not found:
            raise bad_request(_misread(text[at:]))
        requirements.append(_requirement(found))
        at = found.end()

    def chosen(item: Object) -> bool:
        labels = {key: str(value) for key, value in part(item, "metadata", "labels").items()}
        return all(requirement(labels) for requirement in requirements)

    return chosen


def _misread(text: str) -> str:
    words = text.split()
    if len(words) > 1 and words[1] in {"in", "notin"}:
        found = words[2] if len(words) > 2 else ""
        return f"unable to parse requirement: found '{found}' expected: '('"
    found = words[1] if len(words) > 1 else text
    return f"unable to parse requirement: found '{found}', expected: in, notin, =, ==, !=, gt, lt"


def _requirement(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    if found["absent"]:
        lacking = found["lacking"]
        return lambda labels: lacking not in labels
    key, value, operator = found["key"], found["value"], found["operator"] or found["set"]
    values = {each.strip() for each in (found["values"] or value or "").split(",")}
    match operator:
        case "=" | "==" | "in":
            return lambda labels: labels.get(key) in values
        case "!=" | "notin":
            return lambda labels: labels.get(key) not in values
        case ">" | "<":
            return lambda labels: _compares(labels.get(key), operator, value)
        case _:
            return lambda labels: key in labels


def _compares(label: str | None, operator: str, value: str) -> bool:
    if label is None or not re.fullmatch(r"-?\d+", label):
        return False
    return int(label) > int(value) if operator == ">" else int(label) < int(value)
