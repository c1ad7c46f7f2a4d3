"""The files that tell containers about their devices, and their mounts. Not here: what they say."""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TypeVar

import attrs

from accelkit.backends.dra import metadata
from accelkit.backends.dra.claims import Driver
from accelkit.backends.dra.claims_tree import at, text
from accelkit.backends.dra.node_fetch import fetch
from accelkit.backends.dra.node_settings import Patience
from accelkit.core import cdi
from accelkit.core.allocation import Answer, ClaimRef, Prepared
from accelkit.core.backend import NodePort
from accelkit.core.errors import PrepareFailed
from accelkit.core.kube import Json

log = logging.getLogger(__name__)

T = TypeVar("T")

REMEDY = "make paths.run and paths.cdi writable, or set backends.dra.metadata to false"
PROBLEM = "metadata-files"


class MetadataFiles:
    """Writes a file for each request of a claim, and has it mounted where programs look for it.

    The files are in the run directory and go with the boot.

    Args:
        driver: Whose claims.
        node: The agent.
        attributes: Of published devices.
        patience: How long things may take.
    """

    def __init__(
        self, driver: Driver, node: NodePort, attributes: metadata.Attributes, patience: Patience
    ) -> None:
        self._driver = driver
        self._node = node
        self._attributes = attributes
        self._patience = patience
        self._turn = asyncio.Lock()
        self._strange: dict[str, int] = {}

    async def prepared(self, prepared: Prepared, claim: Json | None) -> Prepared:
        """Write the files of a claim, and add their mounts to its answer.

        Raises:
            PrepareFailed: They cannot be written.
        """
        ref = prepared.claim
        folder = self._folder(ref.uid)
        requests = metadata.requests_of(prepared.answers)
        try:
            before = await self._in_turn(lambda: _read(folder))
            pod_claim = await self._pod_claim(ref, claim, before)
            files = {
                path: self._told(ref, pod_claim, answers, before.get(path))
                for base, answers in requests.items()
                for path in [folder / f"{base}.json"]
            }
            await self._in_turn(lambda: self._write(ref.uid, files))
        except OSError as error:
            raise PrepareFailed(
                f"the metadata of claim {ref.name} cannot be written: {error}",
                claim=ref.uid,
                remedy=REMEDY,
            ) from error
        return _mounted(prepared, self._driver)

    async def released(self, uid: str) -> None:
        """Remove the files of a claim; there may be none.

        Raises:
            PrepareFailed: They cannot be removed.
        """
        try:
            await self._in_turn(lambda: self._remove(uid))
        except OSError as error:
            raise PrepareFailed(
                f"metadata of the claim cannot be removed: {error}", claim=uid, remedy=REMEDY
            ) from error

    async def run(self) -> None:
        """Make mounts again whose CDI files are gone: nobody asks for them, and containers wait.

        Also removes what is left of claims that were released without a call of the kubelet.
        """
        while True:
            await self._node.clock.sleep(self._patience.look_s)
            known = set(self._node.claims())
            try:
                await self._in_turn(partial(self._mend, known))
            except OSError as error:
                self._node.problem(PROBLEM, self._driver.name, str(error), REMEDY)
            else:
                self._node.solved(PROBLEM, self._driver.name)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        async with self._turn:
            return await asyncio.to_thread(work)

    async def _pod_claim(
        self, ref: ClaimRef, claim: Json | None, before: Mapping[Path, object]
    ) -> str:
        if claim is None and before:
            return text(next(iter(before.values())), "podClaimName")
        tree = claim or await fetch(self._node, ref, self._patience)
        return metadata.pod_claim_of(tree)

    def _told(
        self,
        ref: ClaimRef,
        pod_claim: str,
        answers: Mapping[str, Collection[Answer]],
        before: object,
    ) -> Json:
        """What a file has to say; its generation rises if that is something else than *before*."""
        generation = at(before, "metadata", "generation")
        number = generation if isinstance(generation, int) else 0
        same, fresh = (
            metadata.document(self._driver, ref, pod_claim, answers, self._attributes, n)
            for n in (number, number + 1)
        )
        return same if same == before else fresh

    def _folder(self, uid: str = "") -> Path:
        boot = self._node.view().boot or "boot"
        return Path(self._node.paths.run) / boot / "metadata" / self._driver.name / uid

    def _cdi(self, uid: str) -> Path:
        return Path(self._node.paths.cdi) / metadata.cdi_file(self._driver, uid)

    def _write(self, uid: str, files: Mapping[Path, Json]) -> None:
        for path, tree in files.items():
            _overwrite(path, metadata.written(tree))
        if files:
            cdi.write_atomically(self._cdi(uid), metadata.mounts(self._driver, files))

    def _remove(self, uid: str) -> None:
        self._cdi(uid).unlink(missing_ok=True)
        if (folder := self._folder(uid)).exists():
            rmtree(folder)

    def _mend(self, known: Collection[str]) -> None:
        folder = self._folder()
        there = {path.name for path in folder.iterdir()} if folder.exists() else set()
        self._strange = {uid: self._strange.get(uid, 0) + 1 for uid in there - set(known)}
        for uid in there:
            if self._strange.get(uid, 0) > self._patience.forgotten:
                self._remove(uid)
            elif files := _read(folder / uid):
                cdi.write_atomically(self._cdi(uid), metadata.mounts(self._driver, files))


def _read(folder: Path) -> Mapping[Path, object]:
    """What the files in *folder* hold; those that cannot be read hold nothing."""
    found: dict[Path, object] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found[path] = json.loads(path.read_bytes())
        except ValueError:
            log.warning("metadata cannot be read", extra={"file": str(path)})
    return found


def _overwrite(path: Path, content: bytes) -> None:
    """Let the file at *path* hold *content*: the same file, since containers have it mounted."""
    if cdi.holds(path, content):
        return
    try:
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()
    except FileNotFoundError:
        cdi.write_atomically(path, content)


def _mounted(prepared: Prepared, driver: Driver) -> Prepared:
    """*prepared* with the mount of each request at its first device."""
    seen: set[str] = set()
    answers = []
    for answer in prepared.answers:
        fresh = [base for base in metadata.bases_of(answer) if base not in seen]
        seen.update(fresh)
        ids = (metadata.cdi_id(driver, prepared.claim.uid, base) for base in fresh)
        answers.append(attrs.evolve(answer, cdi_ids=(*answer.cdi_ids, *ids)))
    return attrs.evolve(prepared, answers=tuple(answers))
