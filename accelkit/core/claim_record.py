"""A claim's entry as the file that every version reads. Not here: where files are, and when.

The format is written out here, field by field, so that no change of a value changes it unseen.
Within one major version a reader keeps what it does not know, and writes it back.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NoReturn, TypeAlias, TypeVar

import attrs

from accelkit.core.allocation import Answer, ClaimRef, Piece, PodRef, Setting
from accelkit.core.claims import CdiRecord, EntryState, LedgerEntry, is_uid
from accelkit.core.errors import LedgerEntry as BadEntry, LedgerNewer, ModelError
from accelkit.core.model import DeviceId
from accelkit.core.values import FrozenMap

Tree: TypeAlias = Mapping[str, object]
T = TypeVar("T")

MAJOR, MINOR = 1, 0
FORMAT = f"{MAJOR}.{MINOR}"

_OPAQUE = {"spec", "amounts", "drivers"}
"""Keys whose values have keys of their own: replaced as a whole."""
_FORMAT = re.compile(r"(\d{1,9})\.(\d{1,9})")
_DEVICE = re.compile(rb'"device"\s*:\s*"([^"\\/]{1,80}/[^"\\/]{1,80})"')


@attrs.frozen
class Record:
    """An entry, and the tree that it was read from."""

    entry: LedgerEntry
    tree: Tree = attrs.field(factory=dict, hash=False)


def write_record(record: Record) -> bytes:
    """The file of *record*: its entry, and what its tree has beside it."""
    tree: object = _tree(record.entry)
    if record.tree:  # what was read: what we wrote has nothing beside
        tree = _overlaid(tree, record.tree)
    return json.dumps(tree, separators=(",", ":")).encode()


def read_record(content: bytes) -> Record:
    """Read a file of any version of our major.

    Raises:
        LedgerNewer: It was written by a later version, and must be left as it is.
        LedgerEntry: It is no such file.
    """
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadEntry(f"it is not JSON: {error}") from error
    if not isinstance(tree, Mapping):
        raise BadEntry("it is not a mapping")
    found = _FORMAT.fullmatch(str(tree.get("format")))
    if found is None:
        raise BadEntry(f"its format is {tree.get('format')!r}, not {FORMAT}")
    major, minor = map(int, found.groups())
    if major > MAJOR:
        _refuse_newer(tree)
    try:
        return Record(_entry(tree), tree)
    except (BadEntry, ModelError, ValueError) as error:
        if minor > MINOR:  # it may say what we have no word for
            _refuse_newer(tree)
        raise BadEntry(f"it is damaged: {error}") from error


def devices_in(content: bytes) -> tuple[DeviceId, ...]:
    """Every device that a damaged or later file names, as far as it can be seen; sorted."""
    words = (found.decode(errors="replace") for found in _DEVICE.findall(content))
    return tuple(sorted({DeviceId.parse(word) for word in words}))


def _refuse_newer(tree: Tree) -> NoReturn:
    raise LedgerNewer(
        f"it was written by version {tree.get('writer')!r} in format {tree['format']}",
        remedy="run that version again, or let its claims end before it is replaced",
    )


def _overlaid(new: object, old: object) -> object:
    """*new*, with what *old* has in the same places and *new* has no word for."""
    if isinstance(new, dict) and isinstance(old, Mapping):
        known = {
            key: value if key in _OPAQUE else _overlaid(value, old.get(key))
            for key, value in new.items()
        }
        return known | {key: value for key, value in old.items() if key not in new}
    if isinstance(new, list) and isinstance(old, (list, tuple)):
        return [next((o for o in old if _says(o, item)), item) for item in new]
    return new


def _says(old: object, item: object) -> bool:
    """Whether *old* says everything that *item* says."""
    if isinstance(item, dict) and isinstance(old, Mapping):
        return all(key in old and old[key] == value for key, value in item.items())
    return old == item


def _tree(entry: LedgerEntry) -> dict[str, object]:
    return {
        "format": FORMAT,
        "writer": entry.writer,
        "state": entry.state.value,
        "since": None if entry.since is None else _time(entry.since),
        "claim": _ref(entry.claim),
        "driver": entry.driver,
        "drivers": dict(entry.drivers),
        "extended": entry.extended,
        "pods": [_ref(pod) for pod in entry.pods],
        "pieces": [_piece(piece) for piece in entry.pieces],
        "modes": [{"device": str(i), "mode": mode} for i, mode in entry.modes.items()],
        "create": [str(i) for i in entry.create],
        "handles": [{"device": str(i), "handle": h} for i, h in entry.handles.items()],
        "settings": [_setting(setting) for setting in entry.settings],
        "cdi": None if entry.cdi is None else attrs.asdict(entry.cdi, recurse=False),
        "answer": [_answer(answer) for answer in entry.answer],
        "trace": [[step, ms] for step, ms in entry.trace],
    }


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _ref(ref: ClaimRef | PodRef) -> dict[str, object]:
    return {"uid": ref.uid, "namespace": ref.namespace, "name": ref.name}


def _piece(piece: Piece) -> dict[str, object]:
    return {
        "device": str(piece.device),
        "request": piece.request,
        "share": piece.share,
        "amounts": dict(piece.amounts),
        "admin": piece.admin,
        "offer": piece.offer,
    }


def _setting(setting: Setting) -> dict[str, object]:
    device = None if setting.device is None else str(setting.device)
    return {"device": device, "key": setting.key, "value": setting.value}


def _answer(answer: Answer) -> dict[str, object]:
    return {
        "device": str(answer.device),
        "requests": list(answer.requests),
        "share": answer.share,
        "cdi": list(answer.cdi_ids),
    }


def _entry(tree: Tree) -> LedgerEntry:
    cdi = _maybe(tree, "cdi", dict)
    since = _maybe(tree, "since", str)
    return LedgerEntry(
        state=EntryState(_get(tree, "state", str)),
        claim=ClaimRef(**_read_ref(_get(tree, "claim", dict))),
        driver=_get(tree, "driver", str),
        pieces=tuple(_read_piece(item) for item in _items(tree, "pieces")),
        pods=tuple(PodRef(**_read_ref(item)) for item in _items(tree, "pods")),
        drivers=_read_words_by_key(tree, "drivers"),
        extended=_maybe(tree, "extended", str),
        modes=FrozenMap((_device(m), _get(m, "mode", str)) for m in _items(tree, "modes")),
        create=tuple(DeviceId.parse(text) for text in _words(tree, "create")),
        handles=FrozenMap((_device(h), _get(h, "handle", str)) for h in _items(tree, "handles")),
        settings=tuple(_read_setting(item) for item in _items(tree, "settings")),
        cdi=None if cdi is None else _read_cdi(cdi),
        answer=tuple(_read_answer(item) for item in _items(tree, "answer")),
        trace=tuple(_steps(tree)),
        since=None if since is None else datetime.fromisoformat(since),
        writer=_maybe(tree, "writer", str) or "",
    )


def _read_ref(tree: Tree) -> dict[str, str]:
    uid = _get(tree, "uid", str)
    if not is_uid(uid):
        raise BadEntry(f"{uid!r} is no uid")
    return {
        "uid": uid,
        "namespace": _get(tree, "namespace", str),
        "name": _get(tree, "name", str),
    }


def _read_piece(tree: Tree) -> Piece:
    amounts = _maybe(tree, "amounts", dict) or {}
    return Piece(
        device=_device(tree),
        request=_get(tree, "request", str),
        share=_maybe(tree, "share", str),
        amounts=FrozenMap({key: _get(amounts, key, int) for key in amounts}),
        admin=_get(tree, "admin", bool),
        offer=_maybe(tree, "offer", str) or "",
    )


def _read_words_by_key(tree: Tree, key: str) -> FrozenMap[str, str]:
    found = _maybe(tree, key, dict) or {}
    return FrozenMap({one: _get(found, one, str) for one in found})


def _read_setting(tree: Tree) -> Setting:
    return Setting(
        device=None if _maybe(tree, "device", str) is None else _device(tree),
        key=_get(tree, "key", str),
        value=_get(tree, "value", str),
    )


def _read_cdi(tree: Tree) -> CdiRecord:
    return CdiRecord(
        file=_get(tree, "file", str),
        digest=_get(tree, "digest", str),
        spec=_get(tree, "spec", dict),
    )


def _read_answer(tree: Tree) -> Answer:
    return Answer(
        device=_device(tree),
        requests=_words(tree, "requests"),
        share=_maybe(tree, "share", str),
        cdi_ids=_words(tree, "cdi"),
    )


def _steps(tree: Tree) -> Iterator[tuple[str, float]]:
    for item in _maybe(tree, "trace", list) or ():
        match item:
            case [str() as step, int() | float() as ms]:
                yield step, float(ms)
            case _:
                raise BadEntry("trace is not a list of steps and milliseconds")


def _device(tree: Tree) -> DeviceId:
    return DeviceId.parse(_get(tree, "device", str))


def _get(tree: Tree, key: str, kind: type[T]) -> T:
    value = tree.get(key)
    # To Python, true is a number, too.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadEntry(f"{key} is {value!r}")
    return value


def _maybe(tree: Tree, key: str, kind: type[T]) -> T | None:
    return None if tree.get(key) is None else _get(tree, key, kind)


def _items(tree: Tree, key: str) -> Iterable[Tree]:
    for item in _maybe(tree, key, list) or ():
        if not isinstance(item, dict):
            raise BadEntry(f"{key} holds {item!r}")
        yield item


def _words(tree: Tree, key: str) -> tuple[str, ...]:
    words = _maybe(tree, key, list) or []
    if not all(isinstance(word, str) for word in words):
        raise BadEntry(f"{key} is {words!r}")
    return tuple(words)
