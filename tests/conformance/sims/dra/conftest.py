"""A simulated node that ends with its test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.conformance.sims.dra.world import World, world


@pytest.fixture(params=["1.37"])
async def here(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[World, None]:
    async with world(tmp_path, release=request.param) as made:
        yield made
