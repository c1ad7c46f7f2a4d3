"""What is known of the API server and of the node there. Not here: what is made of it."""

import logging
from collections.abc import Iterable, Mapping

import attrs

from accelkit.backends.dra.dialect import narrowed
from accelkit.backends.dra.objects import Owner
from accelkit.backends.dra.pool import Dialect
from accelkit.backends.dra.probing import probe
from accelkit.core.errors import ApiError
from accelkit.core.kube import NODES, KubePort

log = logging.getLogger(__name__)

AGAIN_S = 6 * 3600.0
"""After which a field that was dropped is sent again: somebody may have turned on its gate."""


@attrs.define
class Server:
    """Asked anew after every time that it was away; what it drops of a write is not sent again."""

    kube: KubePort
    node: str
    lists: bool
    """Whether attributes that are lists are wished for."""
    owner: Owner | None = None
    stale: bool = True
    """It was away, or refused what it should keep."""
    _probed: Dialect = attrs.Factory(Dialect)
    _version: str = ""
    _dropped: dict[str, float] = attrs.Factory(dict)
    """Field to when it may be sent again."""
    _asked_s: float = 0.0

    async def learn(self, driver: str, now_s: float) -> None:
        """Ask what it keeps, if that is not known.

        Raises:
            ApiError: It does not let us.
            TransportError: It is away.
        """
        if not self.stale and now_s < self._asked_s + AGAIN_S:
            return
        version = await self.kube.version()
        if version != self._version:
            self._dropped = {}
        self._version = version
        owner = await self.find_owner()
        self._probed = await probe(self.kube, driver, owner, lists=self.lists)
        self._asked_s, self.stale = now_s, False
        log.info(
            "asked the API server what it keeps of slices",
            extra={"version": version, "dialect": str(self._probed)},
        )

    async def find_owner(self) -> Owner:
        """Ask for the node: one that was made anew is another one, as *owner* is from then on.

        Raises:
            ApiError: There is none, or it may not be read.
            TransportError: The server is away.
        """
        found = await self.kube.get(NODES, self.node)
        metadata = found.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
        if not isinstance(uid, str):
            raise ApiError(f"the API server does not say the uid of node {self.node}")
        self.owner = Owner(name=self.node, uid=uid)
        return self.owner

    def dialect(self, now_s: float) -> Dialect:
        """What it keeps, as far as is known."""
        dropped = [field for field, until in self._dropped.items() if now_s < until]
        return narrowed(self._probed, dropped)

    def drops(self, fields: Iterable[str], now_s: float) -> None:
        """Take note of what it dropped of a write."""
        self._dropped |= dict.fromkeys(fields, now_s + AGAIN_S)
