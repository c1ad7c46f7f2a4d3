"""How a toy of a DRA driver answers for claims. Not here: slices, and its life."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from accelkit.backends.wire.messages import dra
from accelkit.conformance.checks.drivers import METADATA
from accelkit.conformance.setups import Setup
from accelkit.conformance.sims.api.values import part, parts, text
from accelkit.conformance.sims.dra import specs
from accelkit.core.allocation import ClaimRef
from accelkit.core.errors import BackendError
from accelkit.core.kube import CLAIMS, EVENTS, Json, KubePort
from tests.conformance.toy_hardware import Entry, Hardware, Piece, Record
from tests.conformance.toy_records import Notes

DRIVER = "toy.conformance.test"
KIND = f"{DRIVER}/claim"
WAIT_S = 40.0
LOOK_S = 0.01


class Refusal(Exception):
    """Why a claim is not prepared."""


class Answers:
    """Prepares claims, and gives them back; what breaks a rule overrides a method."""

    hardware: Hardware
    record: Record
    cdi: Path
    setup: Setup
    node: str
    kube: KubePort
    notes: Notes

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        """Calls by uid."""
        self.lines: list[Json] = []
        """What it has logged."""
        self.told: set[str] = set()
        """Uids of claims of which it was told that they cannot be prepared."""
        self.unwanted: set[str] = set()
        """Uids that were given back while they were prepared."""

    # Prepare.

    async def prepare(
        self, request: dra.NodePrepareResourcesRequest
    ) -> dra.NodePrepareResourcesResponse:
        refs = [ClaimRef(uid=c.uid, namespace=c.namespace, name=c.name) for c in request.claims]
        answers = await asyncio.gather(*(self.answer(ref) for ref in refs))
        return dra.NodePrepareResourcesResponse(
            claims={ref.uid: answer for ref, answer in zip(refs, answers, strict=True)}
        )

    async def answer(self, ref: ClaimRef) -> dra.NodePrepareResourceResponse:
        self.running[ref.uid] = self.running.get(ref.uid, 0) + 1
        try:
            entry = await self.prepared(ref)
        except Refusal as refusal:
            await self.tell_of(ref, str(refusal))
            return dra.NodePrepareResourceResponse(error=str(refusal))
        finally:
            self.running[ref.uid] -= 1
        return dra.NodePrepareResourceResponse(devices=self.devices_of(entry))

    async def prepared(self, ref: ClaimRef) -> Entry:
        known = self.record.claims.get(ref.uid)
        if known is not None:
            self.write(known)
            return known
        if ref.uid in self.record.unread:
            raise Refusal(f"what is written down of claim {ref.name} cannot be read")
        self.unwanted.discard(ref.uid)
        claim = await self.read(ref)
        self.check(claim, ref)
        pieces = self.pieces(claim)
        pods = [text(one, "name") for one in parts(claim, "status", "reservedFor")]
        self.note("prepare", claim=ref.uid, pods=pods, devices=[piece.device for piece in pieces])
        await self.until_free(pieces, ref)
        return self.record.claims.get(ref.uid) or self.make(ref, claim, pieces)

    def make(self, ref: ClaimRef, claim: Json, pieces: tuple[Piece, ...]) -> Entry:
        """Do it, and write it down; nothing waits here."""
        if ref.uid in self.unwanted:
            raise Refusal(f"claim {ref.name} was given back")
        entry = Entry(ref=ref, pieces=pieces, level=self.level(claim))
        entry.spec = self.spec_of(entry)
        self.write(entry)
        for piece in pieces:
            if entry.level:
                self.hardware.levels[piece.device] = entry.level
        self.record.claims[ref.uid] = entry
        self.notes.write(entry)
        return entry

    async def read(self, ref: ClaimRef) -> Json:
        waited_s = 0.0
        while True:
            try:
                return await self.kube.get(CLAIMS, ref.name, namespace=ref.namespace)
            except BackendError as error:
                if getattr(error, "status", 0) == 404 or waited_s > WAIT_S:
                    raise Refusal(f"claim {ref.name} cannot be read: {error}") from error
            await asyncio.sleep(LOOK_S)
            waited_s += LOOK_S

    def check(self, claim: Json, ref: ClaimRef) -> None:
        if text(claim, "metadata", "uid") != ref.uid:
            raise Refusal(f"claim {ref.name} is another one")
        if not parts(claim, "status", "allocation", "devices", "results"):
            raise Refusal(f"claim {ref.name} is not allocated")
        if {p.device.partition("-half")[0] for p in self.pieces(claim)} - {*self.hardware.names}:
            raise Refusal(f"claim {ref.name} has a device that is not there")
        if len({piece.request for piece in self.pieces(claim)}) > 1:
            raise Refusal(f"claim {ref.name} splits what goes together")

    def pieces(self, claim: Json) -> tuple[Piece, ...]:
        return tuple(
            Piece(
                device=text(one, "device"),
                request=text(one, "request"),
                share=text(one, "shareID") or None,
                admin=one.get("adminAccess") is True,
            )
            for one in parts(claim, "status", "allocation", "devices", "results")
            if text(one, "driver") == DRIVER
        )

    def level(self, claim: Json) -> str:
        """What is configured: classes come first in the list, and later ones win."""
        level = ""
        for block in self.blocks_of(claim):
            level = text(block, "level") or level
        return level

    def blocks_of(self, claim: Json) -> list[Json]:
        config = parts(claim, "status", "allocation", "devices", "config")
        return [
            part(one, "opaque", "parameters")
            for one in config
            if text(one, "opaque", "driver") == DRIVER
        ]

    async def until_free(self, pieces: Sequence[Piece], ref: ClaimRef) -> None:
        waited_s = 0.0
        while self.taken(pieces, ref):
            if waited_s > WAIT_S or ref.uid in self.unwanted:
                raise Refusal(f"claim {ref.name} asks for what another claim has")
            await asyncio.sleep(LOOK_S)
            waited_s += LOOK_S

    def taken(self, pieces: Sequence[Piece], ref: ClaimRef) -> bool:
        holders = [self.record.holder(p.device) for p in pieces if not p.admin]
        return any(holder is not None and holder.ref.uid != ref.uid for holder in holders)

    def devices_of(self, entry: Entry) -> list[dra.Device]:
        return [
            dra.Device(
                request_names=[self.request_name(piece)],
                pool_name=self.node,
                device_name=piece.device,
                cdi_device_ids=[f"{KIND}={self.cdi_name(entry, piece)}"],
                share_id=piece.share,
            )
            for piece in entry.pieces
        ]

    def request_name(self, piece: Piece) -> str:
        return piece.request.partition("/")[0]

    # CDI.

    def cdi_name(self, entry: Entry, piece: Piece) -> str:
        share = f"-{piece.share[:8]}" if piece.share else ""
        return f"c-{entry.ref.uid}-{piece.device}{share}"

    def file_of(self, entry: Entry) -> Path:
        return self.cdi / f"{DRIVER}-claim_{entry.ref.uid}.json"

    def spec_of(self, entry: Entry) -> Json:
        devices = [
            {"name": self.cdi_name(entry, piece), "containerEdits": self.edits(entry, piece)}
            for piece in entry.pieces
        ]
        tree: dict[str, object] = {"kind": KIND, "devices": devices}
        return {**tree, "cdiVersion": specs.needed(tree)}

    def edits(self, entry: Entry, piece: Piece) -> dict[str, object]:
        device = piece.device
        own = device.replace("-", "_").upper()
        edits: dict[str, object] = {
            "env": [f"{own}={entry.level or 'plain'}"],
            "deviceNodes": [
                {"path": f"/dev/{name}", "hostPath": str(self.hardware.file(name))}
                for name in self.given(device)
            ],
        }
        if self.setup.metadata:
            inside = f"{METADATA}resourceclaims/{entry.ref.name}/{piece.request}"
            host = str(self.describe(entry, piece))
            edits["mounts"] = [{"hostPath": host, "containerPath": f"{inside}/{DRIVER}.json"}]
        return edits

    def given(self, device: str) -> list[str]:
        """Whose files a container gets for a device."""
        return [device.partition("-half")[0]]

    def describe(self, entry: Entry, piece: Piece) -> Path:
        """Write what the device is for whoever has it."""
        told = {"name": piece.device, "attributes": self.attributes(piece.device)}
        path = self.hardware.home / f"{entry.ref.uid}-{piece.device}.txt"
        path.write_text(json.dumps({"requests": [{"devices": [told]}]}))
        return path

    def attributes(self, device: str) -> Mapping[str, object]:
        raise NotImplementedError

    def write(self, entry: Entry) -> None:
        path, text_ = self.file_of(entry), json.dumps(entry.spec)
        hidden = path.with_suffix(".tmp")
        try:
            path.parent.mkdir(exist_ok=True)
            if not path.exists() or path.read_text() != text_:
                hidden.write_text(text_)
                hidden.rename(path)
        except OSError as error:
            raise Refusal(f"{path} cannot be written: {error}") from error

    def mend_files(self) -> None:
        """Make again what is missing of CDI files, and remove what belongs to no claim."""
        for entry in self.record.claims.values():
            self.write(entry)
        every = (*self.record.claims.values(), *self.record.unread.values())
        known = {self.file_of(entry) for entry in every}
        for path in self.cdi.glob(f"{DRIVER}-claim_*.json"):
            uid = path.stem.partition("_")[2]
            if path not in known and not self.running.get(uid):
                path.unlink(missing_ok=True)

    # Unprepare.

    async def unprepare(
        self, request: dra.NodeUnprepareResourcesRequest
    ) -> dra.NodeUnprepareResourcesResponse:
        answers = {}
        for claim in request.claims:
            ref = ClaimRef(uid=claim.uid, namespace=claim.namespace, name=claim.name)
            answers[ref.uid] = dra.NodeUnprepareResourceResponse(error=await self.give_back(ref))
        return dra.NodeUnprepareResourcesResponse(claims=answers)

    async def give_back(self, ref: ClaimRef) -> str:
        """Undo a claim; returns why that failed."""
        self.unwanted.add(ref.uid)
        while self.running.get(ref.uid):  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(LOOK_S)
        entry = self.record.claims.get(ref.uid) or self.record.unread.get(ref.uid)
        if entry is None:
            return ""
        if ref.uid in self.record.unread and self.notes.tree(ref.uid) is not None:
            return "a later version has prepared it"
        if self.hardware.stuck and entry.level:
            await self.tell(ref, "its level cannot be undone")
            return "its level cannot be undone"
        self.file_of(entry).unlink(missing_ok=True)
        for piece in entry.pieces:
            self.hardware.levels.pop(piece.device, None)
        self.record.claims.pop(ref.uid, None)
        self.record.unread.pop(ref.uid, None)
        self.notes.remove(ref.uid)
        return ""

    def note(self, event: str, **keys: object) -> None:
        """Log a line."""
        self.lines.append({"event": event, **keys})

    async def tell_of(self, ref: ClaimRef, why: str) -> None:
        """Tell once of a claim that it cannot be prepared."""
        if ref.uid not in self.told:
            self.told.add(ref.uid)
            with contextlib.suppress(BackendError):
                await self.tell(ref, why)

    async def tell(self, ref: ClaimRef, note: str) -> None:
        """Emit an event in the claim's namespace."""
        regarding = {"kind": "ResourceClaim", "namespace": ref.namespace, "name": ref.name}
        item: Json = {
            "metadata": {"generateName": "toy-", "namespace": ref.namespace},
            "eventTime": "2027-01-01T00:00:00.000000Z",
            "reportingController": "conformance.test/toy",
            "reportingInstance": "toy",
            "action": "Release",
            "reason": "ReleaseFailing",
            "type": "Warning",
            "note": note,
            "regarding": {**regarding, "apiVersion": "resource.k8s.io/v1", "uid": ref.uid},
        }
        await self.kube.create(EVENTS, item, namespace=ref.namespace)
