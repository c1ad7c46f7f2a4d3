"""Slices written one by one, and what the server made of them. Not here: which, and when."""

import logging
from collections.abc import Collection

import attrs

from accelkit.backends.dra.dialect import OTHER, dropped
from accelkit.backends.dra.objects import Owner, slice_object
from accelkit.backends.dra.pool import Pool, Slice
from accelkit.backends.dra.slices_plan import Plan, Verb, Write
from accelkit.backends.dra.slices_seen import Seen
from accelkit.backends.dra.slices_server import Server
from accelkit.backends.dra.stored import Stored, read_slice, with_times
from accelkit.core.backend import NodePort
from accelkit.core.errors import ApiError
from accelkit.core.kube import SLICES, Json

log = logging.getLogger(__name__)

_GONE, _CONFLICT = 404, 409


@attrs.define
class Writer:
    """Writes one driver's slices."""

    driver: str
    node: NodePort
    server: Server
    seen: Seen
    accepted: dict[str, tuple[Slice, str]] = attrs.Factory(dict)
    """What the server keeps otherwise than it was sent, and always will."""
    highest: int = 0
    """Generation."""

    async def write(self, todo: Plan, pool: Pool, stored: Collection[Stored], owner: Owner) -> None:
        """Make the writes of *todo*, up to the first of which the server dropped something.

        Raises:
            ApiError: One was refused.
            TransportError: The server is away.
        """
        self.highest = max(self.highest, todo.generation)
        for write in todo.writes:
            try:
                if write.verb is Verb.DELETE:
                    await self._delete(write)
                    continue
                sent = with_times(pool.slices[write.number], stored)
                item = slice_object(
                    attrs.evolve(pool, slices=_with(pool.slices, write.number, sent)),
                    write.number,
                    generation=todo.generation,
                    owner=owner,
                    version=write.version,
                )
                kept = await self._send(write, item)
            except ApiError as error:
                if error.status in {_GONE, _CONFLICT}:
                    await self._look_again(write.name)
                raise
            if self._drops(write.name, sent, kept):
                return

    async def _delete(self, write: Write) -> None:
        await self.server.kube.delete(SLICES, write.name, version=write.version)
        self._count(write)
        self.seen.answer(write.name, None, self._now())

    async def _send(self, write: Write, item: Json) -> Stored:
        kube = self.server.kube
        send = kube.create if write.verb is Verb.CREATE else kube.replace
        kept = read_slice(await send(SLICES, item))
        self._count(write)
        self.seen.answer(write.name, kept, self._now())
        return kept

    async def _look_again(self, name: str) -> None:
        """Somebody was there between our look and our write."""
        try:
            found = read_slice(await self.server.kube.get(SLICES, name))
        except ApiError as error:
            if error.status != _GONE:
                raise
            self.seen.answer(name, None, self._now())
        else:
            self.seen.answer(name, found, self._now())

    def _drops(self, name: str, sent: Slice, kept: Stored) -> bool:
        """Whether a narrower dialect must be spoken from now on."""
        fields = dropped(sent, kept.slice)
        if not fields:
            self.accepted.pop(name, None)
            return False
        self.accepted[name] = (sent, kept.version)
        if OTHER in fields:
            self.node.meter.count("accelkit_slice_drops_total", (self.driver, OTHER))
        log.warning(
            "the API server dropped fields of a slice",
            extra={"driver": self.driver, "slice": name, "fields": sorted(fields)},
        )
        self.server.drops(fields, self._now())
        return fields != {OTHER}

    def _count(self, write: Write) -> None:
        self.node.meter.count("accelkit_slice_writes_total", (self.driver, write.verb))
        log.info(
            "wrote a slice", extra={"driver": self.driver, "slice": write.name, "verb": write.verb}
        )

    def _now(self) -> float:
        return self.node.clock.monotonic()


def _with(slices: tuple[Slice, ...], number: int, one: Slice) -> tuple[Slice, ...]:
    return (*slices[:number], one, *slices[number + 1 :])
