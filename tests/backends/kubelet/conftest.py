"""A simulated kubelet that ends with its test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.timing import QUICK


@pytest.fixture
async def sim(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[KubeletSim, None]:
    release = getattr(request, "param", "1.37")
    async with KubeletSim(
        tmp_path / "k", release=release, timing=QUICK, numa_nodes=(0, 1)
    ) as started:
        yield started
