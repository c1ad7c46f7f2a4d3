"""What must be true of a node at every moment, and in the end."""

import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import combinations

from accelkit.core.claim_record import read_record
from accelkit.core.claims import LedgerEntry
from accelkit.core.errors import LedgerError
from accelkit.core.grants import device_names
from accelkit.core.places import exclude, places_on
from tests.agent.keeping.board import Board
from tests.agent.keeping.kubelet import Kubelet, Life
from tests.agent.keeping.world import CDI, CLAIMS, DRIVER, World

FOREIGN_FILE = f"{CDI}/other.example.com-claim_77.json"
STRANGER = "stranger"
FOREIGN = b'{"kind": "other.example.com/claim"}'


def now(world: World, kubelet: Kubelet) -> Iterator[str]:
    """What is wrong at this moment."""
    yield from _two_owners(world)
    for name in strangers_parts(kubelet.facts):
        part = world.board.parts.get(name)
        if part is None or f"{STRANGER} has {name} {part.number}" not in kubelet.facts:
            yield f"the stranger's {name} was touched"
    files = world.storage.contents()
    if files.get(FOREIGN_FILE) != FOREIGN:
        yield "the stranger's file was touched"
    for life in kubelet.running():
        yield from _runs_wrongly(world, kubelet, life, files)


def strangers_parts(facts: Collection[str]) -> set[str]:
    """Partitions that no claim made."""
    return {fact.split()[2] for fact in facts if fact.startswith(f"{STRANGER} has")}


def _two_owners(world: World) -> Iterator[str]:
    """Claims on record that have one place."""
    for one, other in combinations(_entries(world.storage.contents()), 2):
        for mine in one.places:
            root = _root_of(world.board, mine.device.name)
            for theirs in other.places:
                if exclude(mine, theirs, places_on(world.board.device(root))):
                    yield f"{mine.device} and {theirs.device} have two owners"


def _root_of(board: Board, name: str) -> str:
    return next((root for root in board.modes if name.startswith(f"{root}-")), name)


def _entries(files: Mapping[str, bytes]) -> list[LedgerEntry]:
    return [
        entry
        for path, content in files.items()
        if path.startswith(CLAIMS) and path.endswith(".json")
        if (entry := _entry(content)) is not None
    ]


@lru_cache(maxsize=4096)
def _entry(content: bytes) -> LedgerEntry | None:
    try:
        return read_record(content).entry
    except LedgerError:
        return None


def _runs_wrongly(
    world: World, kubelet: Kubelet, life: Life, files: Mapping[str, bytes]
) -> Iterator[str]:
    """What a container that runs would be missing."""
    uid = life.uid
    file = files.get(f"{CDI}/{DRIVER}-claim_{uid}.json")
    if file is None:
        yield f"claim {uid} runs without its CDI file"
    else:
        named = {device["name"] for device in json.loads(file)["devices"]}
        keys = [(piece.device, piece.share) for piece in life.claim.pieces]
        if named != set(device_names(uid, keys).values()):
            yield f"claim {uid} runs, and its CDI file has {named}"
    for piece in life.claim.pieces:
        name = piece.device.name
        if name not in world.board.plain and name not in world.board.modes:
            part = world.board.parts.get(name)
            if part is None or f"{uid} has {name} {part.number}" not in kubelet.facts:
                yield f"claim {uid} runs, and its {name} is another one, or none"
        for config in life.claim.configs:
            for key, value in config.body.vendor.items():
                if world.board.settings.get((name, key)) != value:
                    yield f"claim {uid} runs, and {key} of {name} is not {value}"


def end(world: World, facts: Collection[str]) -> Iterator[str]:
    """What is wrong when all claims have ended."""
    files = set(world.storage.contents()) - {"/run/accelkit/reserve.lock"}
    expected = {FOREIGN_FILE, f"{CLAIMS}/.kept"}
    if files != expected:
        yield f"files that are there: {files - expected}, and missing: {expected - files}"
    if left := [d for d in world.storage.folders() if "/scratch/" in d]:
        yield f"scratch directories are left: {left}"
    if set(world.board.parts) != (strangers := strangers_parts(facts)):
        yield f"partitions are {sorted(world.board.parts)}, not {sorted(strangers)}"
    if world.board.settings:
        yield f"settings are left: {world.board.settings}"
