"""What patches make of an object. Not here: whether the result is accepted.

Source:
    RFC 7386 and RFC 6902; merge keys of k8s.io/api v0.37.2, core/v1/types.go.
"""

import json
from collections.abc import Callable, Mapping

from accelkit.conformance.sims.api.documents import RawJson, parse
from accelkit.conformance.sims.api.refusals import Refused, bad_request, unsupported_patch

Tree = dict[str, object]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "containerStatuses": "name",
    "initContainerStatuses": "name",
    "conditions": "type",
    "resourceClaims": "name",
    "resourceClaimStatuses": "name",
    "ownerReferences": "uid",
    "volumes": "name",
}
"""What tells items of a list apart in a strategic patch; the others are replaced whole."""


def patched(current: Mapping[str, object], body: bytes, content_type: str) -> Tree:
    """*current* after a patch; raw JSON in it has lost its spaces, as in a server.

    Raises:
        Refused: It is no patch, or does not fit.
    """
    tree = _copied(current)
    kind = content_type.partition(";")[0].strip()
    how = _HOW.get(kind)
    if how is None:
        raise unsupported_patch()
    try:
        patch = parse(body.decode()).tree
    except ValueError:
        raise bad_request("invalid JSON patch") from None
    return how(tree, patch)


def _copied(item: object) -> Tree:
    made = _copy(item)
    assert isinstance(made, dict)
    return made


def _copy(item: object) -> object:
    match item:
        case dict():
            return {key: _copy(value) for key, value in item.items()}
        case list():
            return [_copy(value) for value in item]
        case RawJson():
            return item.compact()
        case _:
            return item


def _as_object(patch: object) -> Mapping[str, object]:
    if not isinstance(patch, dict):
        what = "array" if isinstance(patch, list) else type(patch).__name__
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {what} into Go value of type "
            "map[string]interface {}"
        )
    return patch


def _merge(tree: Tree, patch: object) -> Tree:
    return _merged(tree, _as_object(patch), strategic=False)


def _strategic(tree: Tree, patch: object) -> Tree:
    return _merged(tree, _as_object(patch), strategic=True)


def _merged(tree: Tree, patch: Mapping[str, object], *, strategic: bool) -> Tree:
    for key, value in patch.items():
        if isinstance(value, RawJson):
            below = tree.get(key)
            tree[key] = _merged_raw(below if isinstance(below, RawJson) else None, value)
        elif value is None:
            tree.pop(key, None)
        elif isinstance(value, dict):
            below = tree.get(key)
            below = below if isinstance(below, dict) else {}
            tree[key] = _merged(below, value, strategic=strategic)
        elif strategic and isinstance(value, list) and key in _MERGE_KEYS:
            tree[key] = _merged_list(tree.get(key), value, _MERGE_KEYS[key])
        else:
            tree[key] = value
    return tree


def _merged_raw(below: RawJson | None, patch: RawJson) -> RawJson:
    if below is None or not isinstance(below.value, dict) or not isinstance(patch.value, dict):
        return patch.compact()
    return RawJson.of(_merged(dict(below.value), patch.value, strategic=False))


def _merged_list(below: object, patch: list[object], key: str) -> list[object]:
    made = (
        [dict(item) for item in below if isinstance(item, dict)] if isinstance(below, list) else []
    )
    for item in patch:
        if not isinstance(item, dict):
            raise bad_request("a strategic patch needs objects in this list")
        at = next((i for i, old in enumerate(made) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            made = [old for old in made if old.get(key) != item.get(key)]
        elif at is None:
            made.append(item)
        else:
            made[at] = _merged(made[at], item, strategic=True)
    return [*made]


def _json_patch(tree: Tree, patch: object) -> Tree:
    if not isinstance(patch, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    try:
        for step in patch:
            _step(tree, step)
    except (LookupError, ValueError, TypeError):
        message = "the server rejected our request due to an error in our request"
        raise Refused(422, "Invalid", message, details={}) from None
    return tree


def _step(tree: Tree, step: Mapping[str, object]) -> None:
    *names, last = (
        name.replace("~1", "/").replace("~0", "~") for name in str(step["path"]).split("/")[1:]
    )
    holder: object = tree
    for name in names:
        holder = holder[int(name)] if isinstance(holder, list) else holder[name]  # type: ignore[index]  # a TypeError is the answer
    value = step.get("value")
    match step["op"], holder:
        case "add", list():
            holder.insert(len(holder) if last == "-" else int(last), value)
        case "add", dict():
            holder[last] = value
        case "replace", dict() if last in holder:
            holder[last] = value
        case "replace", list():
            holder[int(last)] = value
        case "remove", dict():
            del holder[last]
        case "remove", list():
            del holder[int(last)]
        case "test", dict() if _same(holder.get(last), value):
            pass
        case _:
            raise ValueError(step)


def _same(one: object, other: object) -> bool:
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(
        other, sort_keys=True, default=str
    )


_HOW: Mapping[str, Callable[[Tree, object], Tree]] = {
    MERGE: _merge,
    STRATEGIC: _strategic,
    JSON_PATCH: _json_patch,
}
