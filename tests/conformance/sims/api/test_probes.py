"""The simulated API server answers as real ones did."""

import asyncio
from collections.abc import Sequence

import pytest

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.gates import RELEASES, everything_on
from tests.conformance.sims.api import recorded
from tests.conformance.sims.api.asking import Document, Probe, Server, loosely
from tests.conformance.sims.api.probes import ALL_PROBES, PROBES


async def asked(sim: ApiSim, probes: Sequence[Probe] = PROBES) -> dict[str, list[Document]]:
    server = Server(sim.port)
    return await asyncio.to_thread(lambda: {p.name: server.probe(p) for p in probes})


async def test_newest_release_is_imitated_to_the_word() -> None:
    async with ApiSim() as sim:
        found = await asked(sim, ALL_PROBES)

    assert found == recorded.load(recorded.NEWEST, ALL_PROBES)


@pytest.mark.parametrize("release", RELEASES[:-1])
async def test_older_release_keeps_drops_and_refuses_the_same(release: str) -> None:
    async with ApiSim(release) as sim:
        found = await asked(sim)

    assert {name: loosely(answers) for name, answers in found.items()} == recorded.load(
        release, PROBES
    )


@pytest.mark.parametrize("release", RELEASES[:-1])
async def test_release_with_all_gates_keeps_drops_and_refuses_the_same(release: str) -> None:
    async with ApiSim(release, everything_on(release).gates) as sim:
        found = await asked(sim)

    expected = recorded.load(release, PROBES, all_gates=True)
    assert {name: loosely(answers) for name, answers in found.items()} == expected


def test_every_probe_has_its_own_name() -> None:
    names = [probe.name for probe in ALL_PROBES]

    assert len(set(names)) == len(names)
