"""Watches containers, GPUs and the record of claims all the time, and notes what must not be.

It asks neither Kubernetes nor an agent: control groups say what runs, `/dev` of a container says
what it has.
"""

import json
import os
import threading
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from tests.node.cluster import Cluster
from tests.node.isolation import containers
from tests.node.simulated import Gpus

PERIOD_S = 0.1
LIVING = frozenset({"working", "ready"})


@attrs.frozen
class Seen:
    """A container and what it has."""

    pod: str
    """Uid."""
    gpus: frozenset[int]
    """Minor numbers of their nodes, those of GPUs that it has a partition of, too."""
    parts: frozenset[int]
    """Minor numbers of the nodes of partitions."""


class Observer:
    """Looks ten times a second, as long as it is entered.

    Args:
        cluster: The node.
        gpus: Its machine.
        run: The agents' run directory.
        shares: How many pods may have a GPU, by minor number; of others, one.
    """

    def __init__(
        self, cluster: Cluster, gpus: Gpus, run: Path, shares: Mapping[int, int] | None = None
    ) -> None:
        self.wrong: dict[str, None] = {}
        """What must not be, a sentence each, in order."""
        self.looks = 0
        self.most = 0
        """Containers with devices at once."""
        self.seen: set[str] = set()
        """Uids of pods that had devices."""
        self._cluster = cluster
        self._gpus = gpus
        self._run = run
        self._shares = shares or {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="observer")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        return f"{self.looks} looks at {len(self.seen)} pods with devices, {self.most} at once"

    def entries(self) -> dict[str, dict[str, object]]:
        """The record of claims as it is on disk, by uid."""
        found = {}
        for path in self._run.glob("*/claims/*.json"):
            try:
                found[path.stem] = json.loads(path.read_bytes())
            except FileNotFoundError:  # removed meanwhile
                continue
        return found

    def _watch(self) -> None:
        try:
            while not self._over.wait(PERIOD_S):
                self.look()
        except Exception:  # noqa: BLE001 - whatever it is, the test must know that nobody looks
            self.wrong.setdefault(f"nobody looks any more: {traceback.format_exc()}")

    def look(self) -> None:
        """Look once."""
        before = self._gpus.part_nodes()
        found = [one for one in self._containers() if one.gpus]
        there = before | self._gpus.part_nodes()
        self.looks += 1
        self.most = max(self.most, len(found))
        self.seen.update(one.pod for one in found)
        shared = {self._gpus.whole[gpu] for gpu in self._shares}
        for texts in (
            two_owners(found, self._shares),
            gone(found, there),
            recorded_twice(self.entries(), shared),
        ):
            self.wrong.update(dict.fromkeys(texts))

    def _containers(self) -> Iterator[Seen]:
        for pod, pids in containers(self._cluster.name):
            nodes = _nodes(pids[0]) if pids else set()
            stems = (name.removeprefix("nvidia-cap") for name in nodes if "cap" in name)
            yield Seen(
                pod,
                frozenset(int(n[6:]) for n in nodes if n[6:].isdecimal()),
                frozenset(int(stem) for stem in stems if stem.isdecimal()),
            )


def two_owners(found: Collection[Seen], shares: Mapping[int, int]) -> Iterator[str]:
    """What several pods have; of GPUs in *shares* so many pods may have one."""
    for one, other in combinations(found, 2):
        if one.pod == other.pod:
            continue
        for part in sorted(one.parts & other.parts):
            yield f"partition {part} is in pods {one.pod} and {other.pod}"
        if not (one.parts and other.parts):
            for gpu in sorted((one.gpus & other.gpus) - shares.keys()):
                yield f"GPU {gpu} is in pods {one.pod} and {other.pod}"
    for gpu, most in shares.items():
        pods = {one.pod for one in found if gpu in one.gpus}
        if len(pods) > most:
            yield f"GPU {gpu} is in pods {', '.join(sorted(pods))}, more than {most}"


def gone(found: Collection[Seen], there: Collection[int]) -> Iterator[str]:
    """Partitions that pods have and that are not there."""
    for one in found:
        for part in sorted(one.parts - frozenset(there)):
            yield f"pod {one.pod} has partition {part}, which is no more"


def recorded_twice(
    entries: Mapping[str, Mapping[str, object]], shared: Collection[str]
) -> Iterator[str]:
    """Devices that two claims have by the record, or one of them and the other a part of it.

    Args:
        entries: By uid.
        shared: Names of devices that several claims may have.
    """
    owners: dict[str, str] = {}
    for uid, entry in entries.items():
        for name in _devices(entry) if entry["state"] in LIVING else ():
            if name not in shared and owners.setdefault(name, uid) != uid:
                yield f"{name} is of claims {owners[name]} and {uid}"
    for name, uid in owners.items():
        whole = next((w for w in owners if name.startswith(f"{w}-")), name)
        if owners[whole] != uid:
            yield f"{name} is of claim {uid}, and {whole} of {owners[whole]}"


def _devices(entry: Mapping[str, object]) -> Iterator[str]:
    pieces = entry["pieces"]
    for piece in pieces if isinstance(pieces, list) else ():
        yield str(piece["device"]).partition("/")[2]


def _nodes(pid: str) -> set[str]:
    """Names of the device nodes that a process finds."""
    device = Path(f"/proc/{pid}/root/dev")
    found: set[str] = set()
    for folder in (device, device / "nvidia-caps"):
        with suppress(OSError):  # it has none, or has ended meanwhile
            found.update(name for name in os.listdir(folder) if name.startswith("nvidia"))  # noqa: PTH208 - names, not paths
    return found
