"""Work that only the leader of a node does. Not here: who leads."""

import asyncio
from collections.abc import Coroutine

from accelkit.core.backend import NodePort


async def while_leading(node: NodePort, term: Coroutine[object, object, None]) -> None:
    """Do *term* until it ends or another instance leads."""
    work = asyncio.create_task(term)
    lost = asyncio.create_task(_not_leading(node))
    try:
        await asyncio.wait((work, lost), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
    finally:
        work.cancel()
        lost.cancel()
        await asyncio.gather(work, lost, return_exceptions=True)


async def _not_leading(node: NodePort) -> None:
    while node.leading.now:
        await node.leading.changed()
