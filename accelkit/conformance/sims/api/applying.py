"""Server-side apply: whose fields are whose. Not here: other patches.

A manager owns what it applied. What it leaves out the next time goes, unless another owns it, too;
what another owns and sees differently is a conflict. Lists are one value, but for those with keys.
"""

from collections.abc import Iterator, Mapping

from attrs import define, field

from accelkit.conformance.sims.api.documents import RawJson
from accelkit.conformance.sims.api.refusals import Refused
from accelkit.conformance.sims.api.schema import Field, field_of, structs

Object = Mapping[str, object]
Step = str | tuple[str, ...]
"""A name, or the values of the keys of an item in a list."""
Path = tuple[Step, ...]
Manager = tuple[str, str]
"""A name, and the API version for what was written without applying."""
_NOT_OWNED = {"uid", "resourceVersion", "generation", "creationTimestamp", "name", "namespace",
              "managedFields", "generateName"}  # fmt: skip


@define
class Owners:
    """Which manager owns which fields, of every object.

    Args:
        by_uid: Of an object: by manager.
    """

    by_uid: dict[str, dict[Manager, set[Path]]] = field(factory=dict)

    def of(self, uid: str) -> dict[Manager, set[Path]]:
        return self.by_uid.setdefault(uid, {})

    def apply(
        self, struct: str, uid: str, current: Object, applied: Object, manager: str, *, force: bool
    ) -> Object:
        """*current* with what *manager* applies.

        Raises:
            Refused: Others own what it would change, and *force* is off.
        """
        owned, me = self.of(uid), (manager, "")
        wanted = dict(_leaves(struct, applied))
        before = dict(_leaves(struct, current))
        others = {
            path: owner
            for owner, paths in owned.items()
            if owner != me
            for path in paths
            if path in wanted and wanted[path] != before.get(path)
        }
        if others and not force:
            raise _conflict(others)
        for paths in owned.values():
            paths.difference_update(others)
        foreign = {path for owner, paths in owned.items() if owner != me for path in paths}
        left_out = owned.get(me, set()) - wanted.keys() - foreign
        return _assembled(struct, {**_without(before, left_out), **wanted}, current)

    def claim(self, struct: str, uid: str, manager: str, applied: Object) -> None:
        """Note that *manager* applied this."""
        self.of(uid)[manager, ""] = set(dict(_leaves(struct, applied)))

    def wrote(self, struct: str, uid: str, manager: Manager, old: Object, new: Object) -> None:
        """Note who changed what without applying."""
        before, after = dict(_leaves(struct, old)), dict(_leaves(struct, new))
        changed = {path for path, value in after.items() if before.get(path) != value}
        gone = before.keys() - after.keys()
        owned = self.of(uid)
        for paths in owned.values():
            paths.difference_update(changed | gone)
        owned.setdefault(manager, set()).update(changed)


def _conflict(others: Mapping[Path, Manager]) -> Refused:
    said = {f".{_shown(path)}": _blamed(owner) for path, owner in others.items()}
    causes = [
        {"reason": "FieldManagerConflict", "message": text, "field": path}
        for path, text in said.items()
    ]
    count = f"{len(said)} conflict{'s' if len(said) > 1 else ''}"
    first, *more = said.items()
    listed = (
        f"{first[1]}: {first[0]}"
        if not more
        else f"{first[1]}:\n" + "\n".join(f"- {path}" for path in said)
    )
    message = f"Apply failed with {count}: {listed}"
    return Refused(409, "Conflict", message, details={"causes": causes})


def _blamed(owner: Manager) -> str:
    name, version = owner
    return f'conflict with "{name}"' + (f" using {version}" if version else "")


def _shown(path: Path) -> str:
    return ".".join(step if isinstance(step, str) else f"[{','.join(step)}]" for step in path)


def _without(leaves: Mapping[Path, object], paths: set[Path]) -> dict[Path, object]:
    return {path: value for path, value in leaves.items() if path not in paths}


def _leaves(struct: str, item: Object, at: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every field that stands by itself, and its value."""
    for name, value in item.items():
        known = field_of(struct, name)
        if known is None or value is None or (at == ("metadata",) and name in _NOT_OWNED):
            continue
        yield from _below(known, value, (*at, name))


def _below(known: Field, value: object, at: Path) -> Iterator[tuple[Path, object]]:
    nested = known.type in structs()
    match known.many, value:
        case "list", list() if known.keys and nested:
            for each in value:
                yield from _item(known, each, at)
        case "map", dict():
            for key, each in value.items():
                if nested and isinstance(each, dict):
                    yield from _leaves(known.type, each, (*at, key))
                else:
                    yield (*at, key), each
        case "", dict() if nested:
            yield from _leaves(known.type, value, at)
        case "", dict() if known.type == "any":
            yield from _anything(value, at)
        case _:
            yield at, value


def _item(known: Field, item: Object, at: Path) -> Iterator[tuple[Path, object]]:
    keys = tuple(str(item.get(key, "")) for key in known.keys)
    yield from _leaves(known.type, item, (*at, keys))


def _anything(item: Object, at: Path) -> Iterator[tuple[Path, object]]:
    for key, value in item.items():
        if isinstance(value, dict):
            yield from _anything(value, (*at, key))
        else:
            yield (*at, key), value


def _assembled(struct: str, leaves: Mapping[Path, object], current: Object) -> Object:
    """An object of *leaves*, with what nobody owns as it is in *current*."""
    meta = current.get("metadata")
    kept = {k: v for k, v in meta.items() if k in _NOT_OWNED} if isinstance(meta, dict) else {}
    root: dict[str, object] = {"metadata": kept}
    for path, value in leaves.items():
        _place(root, struct, path, value)
    return root


def _place(holder: dict[str, object], struct: str, path: Path, value: object) -> None:
    first, *rest = path
    assert isinstance(first, str)
    if not rest:
        holder[first] = RawJson.of(value.value) if isinstance(value, RawJson) else value
        return
    known = field_of(struct, first)
    if known and known.keys and isinstance(rest[0], tuple):
        _place_item(holder.setdefault(first, []), known, tuple(rest), value)
        return
    below = holder.setdefault(first, {})
    assert isinstance(below, dict)
    if known and known.many == "map" and len(rest) > 1 and known.type in structs():
        key, *deeper = rest
        assert isinstance(key, str)
        each = below.setdefault(key, {})
        _place(each, known.type, tuple(deeper), value)
    else:
        _place(below, known.type if known else "", tuple(rest), value)


def _place_item(found: object, known: Field, path: Path, value: object) -> None:
    keys, *rest = path
    assert isinstance(found, list)
    item = next((i for i in found if tuple(str(i.get(k, "")) for k in known.keys) == keys), None)
    if item is None:
        item = {}
        item.update({k: v for k, v in zip(known.keys, keys, strict=True) if v})
        found.append(item)
    _place(item, known.type, tuple(rest), value)
