"""Claims that are prepared and given back while something else happens to them."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.backends.wire.serve import dial
from accelkit.testing.simulate import set_state, simulate
from tests.node.agents import REGISTRY, NodeAgent
from tests.node.claims import (
    claim,
    claiming,
    described,
    device_class,
    request,
    said,
    uid,
)
from tests.node.cluster import Cluster
from tests.node.containers import crash, environment
from tests.node.measured import Measured
from tests.node.releases import needs
from tests.node.serving import forget, run, serving_from
from tests.node.simulated import machine_folder

SIM, SET = "sim.accelkit.dev", "simset.accelkit.dev"
COUNT = 2
LISTED = {SIM: COUNT, SET: COUNT}
DYNAMIC = [{"select": {"vendor": "sim"}, "how": "dynamic"}]
REFUSED = "FailedPrepareDynamicResources"


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Path:
    """Accelerators that can be cut, and others that describe sets."""
    folder = machine_folder(whole_run_cluster)
    simulate("sim", "carve", COUNT, str(folder), device_nodes=True)
    simulate("simset", "ring", COUNT, str(folder), device_nodes=True)
    return folder


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Path) -> Iterator[NodeAgent]:
    for driver in LISTED:
        device_class(whole_run_cluster, driver, driver.split(".")[0])
    with serving_from(whole_run_cluster, machine, LISTED, partitioning=DYNAMIC) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent, machine: Path) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    for vendor in ("sim", "simset"):
        let(machine, "calm", vendor)
    forget(cluster)
    for number in range(COUNT):
        let(machine, "mode", f"accel-{number}", "whole")


def let(machine: Path, *words: str) -> None:
    set_state(str(machine), words)


def parts(machine: Path) -> str:
    """What is cut out of all devices."""
    found = machine.glob("sys/bus/pci/devices/*/parts")
    return "".join(path.read_text() for path in found)


def working(agent: NodeAgent, claim_uid: str) -> bool:
    """Whether a claim is in the record."""
    return any(path.stem == claim_uid for path in agent.run.rglob("claims/*.json"))


async def unprepare(cluster: Cluster, driver: str, claim_uid: str, name: str) -> str:
    """Call the driver as the kubelet does; returns why it could not be done."""
    (socket,) = (cluster.kubelet_root / REGISTRY).glob(f"{driver}-*.sock")
    asked = dra.Claim(namespace="default", uid=claim_uid, name=name)
    async with dial(socket) as channel:
        answer = await services.call(
            channel,
            services.UNPREPARE,
            dra.NodeUnprepareResourcesRequest(claims=[asked]),
            timeout_s=45,
        )
    return answer.claims[claim_uid].error


@needs("DRAPartitionableDevices")
@pytest.mark.parametrize("call", ["set_mode", "create", "edits"])
def test_claim_that_is_given_back_while_it_is_prepared_leaves_nothing(
    cluster: Cluster, agent: NodeAgent, machine: Path, call: str
) -> None:
    """The kubelet does so for pods that were deleted by force, and never again."""
    let(machine, "hang", "sim", call, "3s")
    part = f'device.attributes["{SIM}"].profile == "1s"'
    claim(cluster, "brief", request(of="sim", where=part))
    cluster.apply(claiming("user", "brief"))
    name = uid(cluster, "brief")
    cluster.wait_for("work that has begun", lambda: working(agent, name))
    cluster.kubectl("delete", "pod", "user", "--grace-period=0", "--force")

    error = asyncio.run(unprepare(cluster, SIM, name, "brief"))

    assert error == ""
    assert parts(machine) == ""
    assert described(cluster) == set()
    assert not working(agent, name)


def test_descriptions_that_somebody_wiped_are_there_for_the_next_container(
    cluster: Cluster, measured: Measured
) -> None:
    """Without them it could not be made, and nobody would ask for them again."""
    claim(cluster, "kept", request(of="simset", count=2))
    run(cluster, claiming("user", "kept", restart="Always"))
    before = {path.name: path.read_text() for path in cluster.cdi.iterdir()}

    begun = time.monotonic()
    for path in cluster.cdi.iterdir():
        path.unlink()
    cluster.wait_for(
        "again", lambda: {p.name: p.read_text() for p in cluster.cdi.iterdir()} == before
    )
    measured.add("CDI directory wiped: until it is as it was", time.monotonic() - begun)
    crash(cluster, "user")

    assert environment(cluster, "user")["SIM_SET_SIZE"] == "2"


def test_pods_are_served_however_early_they_ask(
    cluster: Cluster, machine: Path, agent: NodeAgent
) -> None:
    """Before the agent runs: at the kubelet's next try; while it starts: at the first."""
    assert agent.end() == 0
    claim(cluster, "early", request(of="simset"))
    cluster.apply(claiming("early", "early"))
    text = cluster.wait_for("an event", lambda: said(cluster, "early", REFUSED))
    assert "is not registered" in text or "Error while dialing" in text  # it has not noticed yet

    let(machine, "hang", "sim", "discover", "3s")
    agent.start_again()
    accepted = f"driver registered driver={SIM}"
    cluster.wait_for("registered", lambda: accepted in agent.log.read_text())
    claim(cluster, "soon", request(of="sim"))
    run(cluster, claiming("soon", "soon"))

    lines = [line for line in agent.log.read_text().splitlines() if uid(cluster, "soon") in line]
    assert ["claim prepared" in line for line in lines] == [True]
    assert said(cluster, "soon", REFUSED) == ""
    cluster.kubectl("label", "pod", "early", "again=now")  # or the kubelet waits for a minute
    cluster.wait_for_phase("early", "Running")
