"""Programs that tests start and that never outlive them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@asynccontextmanager
async def running(*argv: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that runs beside the test; killed in the end if it still does."""
    process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, stderr=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
