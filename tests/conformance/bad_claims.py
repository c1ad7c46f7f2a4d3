# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""For each check of what DRA drivers answer one that breaks its rule, and is otherwise fine."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import grpc

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra, registration as reg
from accelkit.backends.wire.serve import Server
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.sims.api.values import parts, text
from accelkit.core.allocation import ClaimRef
from accelkit.core.errors import BackendError
from accelkit.core.kube import CLAIMS, Json
from tests.conformance.toy_answers import DRIVER, Refusal
from tests.conformance.toy_claims import ToyClaims
from tests.conformance.toy_hardware import Entry, Piece, Record


class NewOnly(ToyClaims):
    versions = ("v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")


class Offended(ToyClaims):
    """Leaves for good when it is refused."""

    async def notified(self, status: reg.RegistrationStatus) -> reg.RegistrationStatusResponse:
        if not status.plugin_registered and self._task is not None:
            self._task.cancel()
        return await super().notified(status)


class LongName(ToyClaims):
    def path(self) -> Path:
        return self.kubelet / "plugins_registry" / f"{DRIVER}-registration.sock"


class Forgetful(ToyClaims):
    """Answers for one claim of a call."""

    async def prepare(
        self, request: dra.NodePrepareResourcesRequest
    ) -> dra.NodePrepareResourcesResponse:
        return await super().prepare(
            dra.NodePrepareResourcesRequest(claims=list(request.claims)[:1])
        )


class Fresh(ToyClaims):
    """Answers otherwise each time."""

    answers = 0

    def devices_of(self, entry: Entry) -> list[dra.Device]:
        self.answers += 1
        found = super().devices_of(entry)
        for device in found:
            device.request_names.extend(["r"] * self.answers)
        return found


class AllOrNothing(ToyClaims):
    async def prepare(
        self, request: dra.NodePrepareResourcesRequest
    ) -> dra.NodePrepareResourcesResponse:
        answer = await super().prepare(request)
        if errors := [one.error for one in answer.claims.values() if one.error]:
            raise StatusError(grpc.StatusCode.INTERNAL, errors[0])
        return answer


class Trusting(ToyClaims):
    """Goes by names."""

    def check(self, claim: Json, ref: ClaimRef) -> None:
        super().check(claim, attrs.evolve(ref, uid=text(claim, "metadata", "uid")))


class Guessing(ToyClaims):
    """Gives the first device to whoever has none."""

    def check(self, claim: Json, ref: ClaimRef) -> None:
        if parts(claim, "status", "allocation", "devices", "results"):
            super().check(claim, ref)

    def pieces(self, claim: Json) -> tuple[Piece, ...]:
        guess = Piece(device=self.hardware.names[0], request="r")
        return super().pieces(claim) or (guess,)


class Greedy(ToyClaims):
    """Takes the devices of others for its own."""

    def pieces(self, claim: Json) -> tuple[Piece, ...]:
        results = parts(claim, "status", "allocation", "devices", "results")
        alien = [one for one in results if text(one, "driver") != DRIVER]
        more = tuple(
            Piece(device=text(one, "device"), request=text(one, "request")) for one in alien
        )
        return (*super().pieces(claim), *more)


class Literal(ToyClaims):
    def request_name(self, piece: Piece) -> str:
        return piece.request


class Backwards(ToyClaims):
    def blocks_of(self, claim: Json) -> list[Json]:
        return super().blocks_of(claim)[::-1]


class Certain(ToyClaims):
    """Fails for what it does not know."""

    async def give_back(self, ref: ClaimRef) -> str:
        if ref.uid not in self.record.claims:
            return "no such claim"
        return await super().give_back(ref)


class Rechecking(ToyClaims):
    """Does nothing for a claim that has no devices any more."""

    async def give_back(self, ref: ClaimRef) -> str:
        claim = await self.kube.get(CLAIMS, ref.name, namespace=ref.namespace)
        return await super().give_back(ref) if self.pieces(claim) else ""


class Amnesiac(ToyClaims):
    def start(self, kubelet: Path) -> None:
        self.record = Record()
        super().start(kubelet)


class Generous(ToyClaims):
    def taken(self, pieces: Sequence[Piece], ref: ClaimRef) -> bool:
        return False


class Jealous(ToyClaims):
    """Lets admins take devices."""

    def pieces(self, claim: Json) -> tuple[Piece, ...]:
        return tuple(attrs.evolve(piece, admin=False) for piece in super().pieces(claim))


class Shareless(ToyClaims):
    def devices_of(self, entry: Entry) -> list[dra.Device]:
        found = super().devices_of(entry)
        for device in found:
            device.ClearField("share_id")
        return found


class Sloppy(ToyClaims):
    """Writes a file before it looks whether it may."""

    def check(self, claim: Json, ref: ClaimRef) -> None:
        spec = {"cdiVersion": "0.3.0", "kind": f"{DRIVER}/claim"}
        edits = {"env": ["A=1"]}
        devices = [{"name": f"c-{ref.uid}", "containerEdits": edits}]
        path = self.cdi / f"{DRIVER}-claim_{ref.uid}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**spec, "devices": devices}))
        super().check(claim, ref)

    def mend_files(self) -> None:
        pass


class Double(ToyClaims):
    """Prepares a claim as often as it is asked to."""

    makes = 0

    async def prepared(self, ref: ClaimRef) -> Entry:
        claim = await self.read(ref)
        self.check(claim, ref)
        self.makes += 1
        return self.make(ref, claim, self.pieces(claim))

    def devices_of(self, entry: Entry) -> list[dra.Device]:
        found = super().devices_of(entry)
        for device in found:
            device.request_names.extend(["r"] * self.makes)
            self.makes += 1
        return found


class OneByOne(ToyClaims):
    """Has one lock for everything."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # as they come
        self.lock = asyncio.Lock()

    async def answer(self, ref: ClaimRef) -> dra.NodePrepareResourceResponse:
        async with self.lock:
            return await super().answer(ref)


class Modern(ToyClaims):
    """Tells kubelets of 1.37 only."""

    def handlers(self) -> list[services.Handler]:
        return [one for one in super().handlers() if "v1alpha1" not in one.path]


class Vague(ToyClaims):
    def describe(self, entry: Entry, piece: Piece) -> Path:
        path = super().describe(entry, piece)
        told = {"name": piece.device, "attributes": {}}
        path.write_text(json.dumps({"requests": [{"devices": [told]}]}))
        return path


class Rash(ToyClaims):
    """Gives the first device where it cannot ask."""

    async def read(self, ref: ClaimRef) -> Json:
        try:
            return await self.kube.get(CLAIMS, ref.name, namespace=ref.namespace)
        except BackendError:
            result = {"driver": DRIVER, "request": "r", "device": self.hardware.names[0]}
            allocation = {"devices": {"results": [result]}}
            return {"metadata": {"uid": ref.uid}, "status": {"allocation": allocation}}

    def taken(self, pieces: Sequence[Piece], ref: ClaimRef) -> bool:
        return False


class Plodding(OneByOne):
    async def answer(self, ref: ClaimRef) -> dra.NodePrepareResourceResponse:
        async with self.lock:
            await asyncio.sleep(0.04)
        return await ToyClaims.answer(self, ref)


class Lax(ToyClaims):
    """Does not care what goes together."""

    def check(self, claim: Json, ref: ClaimRef) -> None:
        if text(claim, "metadata", "uid") != ref.uid or not self.pieces(claim):
            raise Refusal("no")


class Hasty(ToyClaims):
    async def until_free(self, pieces: Sequence[Piece], ref: ClaimRef) -> None:
        if self.taken(pieces, ref):
            raise Refusal("another claim has it")


class Deaf(ToyClaims):
    """Does not know that it is preparing what it is asked to give back."""

    async def give_back(self, ref: ClaimRef) -> str:
        return await super().give_back(ref) if ref.uid in self.record.claims else ""


class Chatty(ToyClaims):
    def message(self, name: str) -> str:
        return "ä" * 600


class Quiet(ToyClaims):
    again_s = 3600.0


class Abrupt(ToyClaims):
    async def unbind(self, server: Server) -> None:
        await server.close(grace_s=0)


class Mute(ToyClaims):
    async def tell(self, ref: ClaimRef, note: str) -> None:
        pass


class Newest(ToyClaims):
    def spec_of(self, entry: Entry) -> Json:
        return {**super().spec_of(entry), "cdiVersion": "1.1.0"}


class InPlace(ToyClaims):
    def write(self, entry: Entry) -> None:
        path = self.file_of(entry)
        path.parent.mkdir(exist_ok=True)
        text_ = json.dumps(entry.spec)
        if not path.exists() or path.read_text() != text_:
            path.write_text(text_)


class Reusing(ToyClaims):
    def cdi_name(self, entry: Entry, piece: Piece) -> str:
        return piece.device


class Late(ToyClaims):
    """Writes when it has time."""

    def write(self, entry: Entry) -> None:
        asyncio.get_running_loop().call_later(0.5, self._write, entry)

    def _write(self, entry: Entry) -> None:
        with contextlib.suppress(Refusal):  # it is late for that, too
            if entry.ref.uid in self.record.claims:
                super().write(entry)

    def mend_files(self) -> None:
        pass


class NeverLooking(ToyClaims):
    """Looks after files when it is asked for claims, and at no other time."""

    def mend_files(self) -> None:
        pass


class Once(NeverLooking):
    """Writes each file once."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # as they come
        self.written: set[str] = set()

    def write(self, entry: Entry) -> None:
        if entry.ref.uid not in self.written:
            self.written.add(entry.ref.uid)
            super().write(entry)


class Scattering(ToyClaims):
    """Gives containers the device of somebody else, too."""

    def given(self, device: str) -> list[str]:
        return [*super().given(device), self.hardware.names[-1]]


class Phantom(ToyClaims):
    def edits(self, entry: Entry, piece: Piece) -> dict[str, object]:
        found = super().edits(entry, piece)
        return {**found, "mounts": [{"hostPath": "/nonexistent/lib", "containerPath": "/lib/toy"}]}


class Clashing(ToyClaims):
    def edits(self, entry: Entry, piece: Piece) -> dict[str, object]:
        return {**super().edits(entry, piece), "env": [f"NPU={piece.device}"]}


class Homeless(ToyClaims):
    def write(self, entry: Entry) -> None:
        if not self.cdi.is_dir():
            raise Refusal(f"{self.cdi} is not there")
        super().write(entry)


class Brave(ToyClaims):
    def write(self, entry: Entry) -> None:
        try:
            super().write(entry)
        except Refusal:
            return


BAD: Mapping[str, type[ToyClaims]] = {
    "AG24": Mute,
    "CD01": Newest,
    "CD02": InPlace,
    "CD03": Reusing,
    "CD04": Late,
    "CD05": Once,
    "CD06": NeverLooking,
    "CD07": Scattering,
    "CD08": Phantom,
    "CD09": Clashing,
    "CD10": Homeless,
    "CD11": Brave,
    "CD12": NeverLooking,
    "DR01": NewOnly,
    "DR02": Offended,
    "DR03": LongName,
    "DR04": Forgetful,
    "DR05": Fresh,
    "DR06": AllOrNothing,
    "DR07": Trusting,
    "DR08": Guessing,
    "DR09": Greedy,
    "DR10": Literal,
    "DR11": Backwards,
    "DR12": Certain,
    "DR13": Rechecking,
    "DR14": Amnesiac,
    "DR15": Generous,
    "DR16": Jealous,
    "DR17": Shareless,
    "DR18": Sloppy,
    "DR19": Double,
    "DR20": OneByOne,
    "DR21": Modern,
    "DR22": Vague,
    "DR23": Rash,
    "DR24": Plodding,
    "DR25": Lax,
    "DR26": Hasty,
    "DR27": Deaf,
    "DR28": Chatty,
    "DR29": Quiet,
    "DR30": Abrupt,
}
"""Who breaks the rule of each check."""
