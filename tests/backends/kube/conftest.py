"""Both kinds of clients, and a server that answers as the test says."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from accelkit.backends.kube.objects import Objects
from tests.backends.kube.clients import BOTH, Clients
from tests.backends.kube.scripted import Scripted, kubeconfig, scripted


@pytest.fixture(params=BOTH, ids=str)
async def clients(request: pytest.FixtureRequest) -> AsyncGenerator[Clients, None]:
    found = Clients(request.param)
    yield found
    await found.close()


@pytest.fixture
async def server() -> AsyncGenerator[Scripted, None]:
    async with scripted() as found:
        yield found


@pytest.fixture
def kube(server: Scripted, clients: Clients, tmp_path: Path) -> Objects:
    """A client of *server*."""
    return clients.dial(kubeconfig(tmp_path, server.url))
