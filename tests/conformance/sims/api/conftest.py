"""A simulated API server and a client of it."""

from collections.abc import AsyncGenerator

import pytest

from accelkit.conformance.sims.api.server import ApiSim
from tests.conformance.sims.api.client import Client


@pytest.fixture
async def api() -> AsyncGenerator[ApiSim, None]:
    async with ApiSim() as started:
        yield started


@pytest.fixture
def client(api: ApiSim) -> Client:
    return Client(api.port)
