"""The simulated API server against a real one, which has neither nodes nor controllers."""

import asyncio
import os
from collections.abc import Iterator

import pytest

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.gates import everything_on
from tests.conformance.sims.api import recorded
from tests.conformance.sims.api.asking import Document, Server, differences, loosely
from tests.conformance.sims.api.probes import ALL_PROBES, PROBES
from tests.node.control_plane import start_api_server, trust
from tests.node.processes import Processes
from tests.node.programs import NEWEST, RELEASE, programs_folder

Answers = dict[str, list[Document]]
RECORD = "ACCELKIT_RECORD"
NEW = RELEASE == NEWEST
VERSIONS = ("v1alpha3", "v1beta1", "v1beta2")
"""Of the resource API, for taint rules; served where they are asked for."""


class Alone(Processes):
    """Processes that need no namespace of their own."""

    def entrance(self) -> list[str]:
        return []


@pytest.fixture(scope="module", params=(False,) if NEW else (False, True))
def all_gates(request: pytest.FixtureRequest) -> bool:
    """What is alpha in the newest release is not simulated."""
    found: bool = request.param
    return found


@pytest.fixture(scope="module")
def real(all_gates: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("api")
    on = everything_on(RELEASE).gates if all_gates else {}
    gates = [f"{gate}=true" for gate in on]
    served = [f"resource.k8s.io/{version}=true" for version in VERSIONS] if all_gates else []
    processes = Alone(root)
    try:
        port = start_api_server(processes, programs_folder(), gates, served)
        yield Server(port, trust(root))
    finally:
        processes.kill_left()


def test_simulated_server_answers_every_probe_as_the_real_one(
    real: Server, all_gates: bool
) -> None:
    probes = ALL_PROBES if NEW else PROBES
    expected = {probe.name: real.probe(probe) for probe in probes}
    gates = everything_on(RELEASE).gates if all_gates else {}

    async def simulated() -> Answers:
        async with ApiSim(RELEASE, gates) as sim:
            server = Server(sim.port)
            return await asyncio.to_thread(lambda: {p.name: server.probe(p) for p in probes})

    found = asyncio.run(simulated())

    if os.environ.get(RECORD):
        recorded.save(RELEASE, expected, all_gates=all_gates)
    assert differences(_worded(expected), _worded(found)) == {}


def test_recorded_answers_are_still_those_of_the_real_server(real: Server, all_gates: bool) -> None:
    """A few: the others are asked above."""
    probes = PROBES[::20]
    expected = recorded.load(RELEASE, probes, all_gates=all_gates)

    found = {probe.name: real.probe(probe) for probe in probes}

    assert differences(expected, _worded(found)) == {}


def _worded(answers: Answers) -> Answers:
    """*answers* as they are compared: words count in the newest release alone."""
    return answers if NEW else {name: loosely(found) for name, found in answers.items()}
