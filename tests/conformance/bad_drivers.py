# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""For each check over sockets a device plugin that breaks its rule, and is otherwise fine."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import attrs
import grpc

from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import Server, bind
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.footprint import Footprint
from accelkit.conformance.model import Unanswered
from accelkit.conformance.subjects import DriverSubject
from tests.conformance.toy_driver import RESOURCE, Toy


class Early(Toy):
    """Registers, and binds when the kubelet has begun to dial."""

    watcher = False

    async def bound(self, path: Path) -> Server:
        registering = asyncio.create_task(self.register(path))
        await asyncio.sleep(0.3)
        server = await bind(path, self.handlers())
        await registering
        return server


class Boastful(Toy):
    async def prefer(
        self, request: dp.PreferredAllocationRequest
    ) -> dp.PreferredAllocationResponse:
        raise StatusError(grpc.StatusCode.UNIMPLEMENTED, "not yet")


class Oblivious(Toy):
    """Looks neither after its socket nor after its streams."""

    def lost(self, server: Server) -> bool:
        return False


class Speechless(Toy):
    async def messages(self) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        await asyncio.Event().wait()
        yield dp.ListAndWatchResponse()


class OneEar(Toy):
    """Tells the first of its streams only."""

    async def messages(self) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        if self.streams == 1:
            async for message in super().messages():
                yield message
        yield dp.ListAndWatchResponse(devices=self.listed())
        await asyncio.Event().wait()


class Exhausted(Toy):
    """Has ten places for streams, and frees none."""

    taken = 0

    async def messages(self) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        self.taken += 1
        if self.taken > 10:
            await asyncio.Event().wait()
        async for message in super().messages():
            yield message


class Dropping(Toy):
    def listed(self) -> list[dp.Device]:
        return [device for device in super().listed() if device.health == "Healthy"]


class Credulous(Toy):
    def check(self, ids: Sequence[str]) -> None:
        pass


class Merging(Toy):
    async def allocate(self, request: dp.AllocateRequest) -> dp.AllocateResponse:
        ids = [i for one in request.container_requests for i in one.devices_ids]
        return dp.AllocateResponse(container_responses=[self.answer(ids)])


class Counting(Toy):
    answers = 0

    def answer(self, ids: Sequence[str]) -> dp.ContainerAllocateResponse:
        self.answers += 1
        return dp.ContainerAllocateResponse(envs={"NUMBER": str(self.answers)})


class Fileless(Toy):
    def answer(self, ids: Sequence[str]) -> dp.ContainerAllocateResponse:
        return dp.ContainerAllocateResponse(cdi_devices=[dp.CDIDevice(name="acme.test/npu=gone")])


class Touchy(Toy):
    def choose(self, one: dp.ContainerPreferredAllocationRequest) -> list[str]:
        if one.allocation_size > len(one.available_deviceIDs):
            raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, "so many there are not")
        return super().choose(one)


class Swapped(Toy):
    def nodes(self, number: int) -> Sequence[int]:
        return ((number + 1) % 2,)


class Stuck(Toy):
    """Hangs with its hardware."""

    async def allocate(self, request: dp.AllocateRequest) -> dp.AllocateResponse:
        while self.hung:  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(0.05)
        return await super().allocate(request)

    def stop(self) -> None:
        if self.hung:
            raise Unanswered("it does not end")
        super().stop()


class Renaming(Toy):
    def ids(self) -> list[str]:
        return [f"npu-{self.starts}-{n}" for n in range(self.count)]


class Littering(Toy):
    async def unbind(self, server: Server) -> None:
        await server.close(keep_path=True)


class OnePath(Toy):
    def path(self) -> Path:
        return self.kubelet / self.folder / "acme.sock"


class Late(Toy):
    after_cut_s = 2.0


class Sleepy(Toy):
    async def allocate(self, request: dp.AllocateRequest) -> dp.AllocateResponse:
        await asyncio.sleep(60)
        return await super().allocate(request)


class FarAway(Toy):
    def nodes(self, number: int) -> Sequence[int]:
        return (number + 5,)


class Deaf(Toy):
    """Looks after its socket, not after its streams."""

    def cut_off(self) -> bool:
        return False


class Crowded(Toy):
    count = 3000


class BySocket(Toy):
    watcher = False


class Healing(Toy):
    """Thinks that a new kubelet means new devices."""

    async def bound(self, path: Path) -> Server:
        self.sick = set()
        return await super().bound(path)


class Grieving(Toy):
    """Tells nobody anything once one of its streams has ended."""

    gone = False

    async def messages(self) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        try:
            async for message in super().messages():
                if not self.gone:
                    yield message
        finally:
            self.gone = True


class Shouting(Toy):
    def ids(self) -> list[str]:
        return [i.upper() for i in super().ids()]


class Short(Toy):
    def choose(self, one: dp.ContainerPreferredAllocationRequest) -> list[str]:
        return super().choose(one)[:1]


class Pondering(Toy):
    async def prefer(
        self, request: dp.PreferredAllocationRequest
    ) -> dp.PreferredAllocationResponse:
        await asyncio.sleep(60)
        return await super().prefer(request)


class Garbled(Toy):
    def metrics(self) -> str:
        return super().metrics() + 'accelkit_up{backend="a" x} many\n'


class Unmeasured(Toy):
    def metrics(self) -> str:
        return "# nothing happened yet\n"


class Eager(Toy):
    def probe(self, path: str) -> tuple[int, str]:
        return 200, "ok"


class Immortal(Toy):
    def stop(self) -> None:
        raise Unanswered("it has not ended 30 s after SIGTERM")


class Sympathetic(Toy):
    """Fails with its neighbour."""

    def check(self, ids: Sequence[str]) -> None:
        if self.disturbed:
            raise StatusError(grpc.StatusCode.INTERNAL, "my neighbour is not well")

    def break_device(self) -> None:
        if not self.disturbed:
            super().break_device()


class Busy(Toy):
    """Measures what is in use, as soon as something is."""

    def measured(self) -> list[str]:
        return sorted(self.used) or super().measured()


class Coarse(Toy):
    bounds = ("0.05", "1", "60", "+Inf")


class Restarting(Toy):
    """Starts anew with each configuration."""

    def renew(self, *, valid: bool) -> None:
        self.restart()


class Hoarding(Toy):
    """Keeps a file open for each call."""

    files = 10

    def answer(self, ids: Sequence[str]) -> dp.ContainerAllocateResponse:
        self.files += 1
        return super().answer(ids)

    def footprint(self) -> Footprint:
        return attrs.evolve(super().footprint(), files=self.files)


class Fat(Toy):
    def footprint(self) -> Footprint:
        return attrs.evolve(super().footprint(), memory=1 << 30)


class Mortal(Toy):
    """Never gets over a plugin that kills it."""

    def start(self, kubelet: Path) -> None:
        if not self.endangered:
            super().start(kubelet)


class Resigning(Toy):
    """Ends its lists when it has no devices."""

    async def messages(self) -> AsyncGenerator[dp.ListAndWatchResponse, None]:
        async for message in super().messages():
            if not message.devices:
                return
            yield message


BAD: Mapping[str, type[Toy]] = {
    "AG01": Garbled,
    "AG02": Unmeasured,
    "AG04": Busy,
    "AG06": Coarse,
    "AG09": Eager,
    "AG10": Immortal,
    "AG11": Restarting,
    "AG13": Hoarding,
    "AG14": Fat,
    "AG15": Sympathetic,
    "AG23": Mortal,
    "C08": Sympathetic,
    "C09": Stuck,
    "DP01": Early,
    "DP02": Boastful,
    "DP04": Oblivious,
    "DP05": Speechless,
    "DP06": OneEar,
    "DP07": Exhausted,
    "DP08": Dropping,
    "DP09": Credulous,
    "DP10": Merging,
    "DP11": Counting,
    "DP12": Fileless,
    "DP13": Touchy,
    "DP14": Swapped,
    "DP15": Stuck,
    "DP16": Renaming,
    "DP17": Resigning,
    "DP18": Littering,
    "DP20": OnePath,
    "DP21": Late,
    "DP22": Sleepy,
    "DP23": FarAway,
    "DP24": Dropping,
    "DP25": Deaf,
    "DP26": Crowded,
    "DP27": BySocket,
    "H08": Healing,
    "H09": Grieving,
    "I07": Shouting,
    "T10": Short,
    "T11": Pondering,
}
"""Who breaks the rule of each check."""


def subject(driver: type[Toy], cdi: Path) -> DriverSubject:
    return DriverSubject(resource=RESOURCE, driver=driver(cdi), cdi=cdi)
