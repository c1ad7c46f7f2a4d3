"""An agent one of whose vendors has a process of its own."""

import os
import signal
from pathlib import Path

import attrs
import pytest

from accelkit.agent import remote
from accelkit.agent.agent import Agent, Parts
from accelkit.agent.remote import Remote
from accelkit.core.real_host import RealHost
from tests.agent.acme import isolated
from tests.agent.acme_host import acme_host, order
from tests.agent.remotes import until
from tests.agent.toys import Toy, codes_of, health_of, parts, running

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]
GOOD = {"acme/a0": "HEALTHY", "acme/a1": "HEALTHY", "toy/a": "HEALTHY", "toy/b": "HEALTHY"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PAUSES_S", (0.3, 0.5))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = acme_host(tmp_path)
    order(root, listen="sleep 0.05")
    return root


def made(tmp_path: Path, root: Path) -> Parts:
    """An agent of Acme in a process, and of a toy."""
    built = parts(tmp_path, Toy())
    host = RealHost(str(root))
    return attrs.evolve(built, vendors=(isolated(root), *built.vendors), host=host)


def worker_of(agent: Agent) -> int | None:
    asked = agent._knowledge.sources["acme"]._asked
    assert isinstance(asked, Remote)
    return asked.pid


async def test_crash_makes_its_devices_stale_and_no_others_until_they_are_read_again(
    tmp_path: Path, root: Path
) -> None:
    async with running(made(tmp_path, root)) as agent:
        await until(lambda: health_of(agent) == GOOD)
        order(root, discover="crash")
        pid = worker_of(agent)
        await until(lambda: "worker-died" in codes_of(agent))
        among_them = health_of(agent)
        order(root, discover="")
        await until(lambda: codes_of(agent) == set() and health_of(agent) == GOOD)
        metrics = agent._metrics.text().decode()
        other = worker_of(agent)

    assert (among_them["toy/a"], among_them["toy/b"]) == ("HEALTHY", "HEALTHY")
    assert pid != other
    restarts = [
        line.rpartition(" ")
        for line in metrics.splitlines()
        if line.startswith('accelkit_worker_restarts_total{vendor="acme",reason="crash"}')
    ]
    assert len(restarts) == 1
    assert float(restarts[0][2]) >= 1
    assert 'accelkit_worker_restarts_total{vendor="acme",reason="start-over"} 0' in metrics
    assert 'accelkit_worker_restarts_total{vendor="toy"' not in metrics
    assert 'accelkit_lane_stuck{vendor="acme"} 0' in metrics


async def test_process_that_was_killed_is_replaced_and_its_devices_are_known_again(
    tmp_path: Path, root: Path
) -> None:
    async with running(made(tmp_path, root)) as agent:
        await until(lambda: health_of(agent) == GOOD)
        pid = worker_of(agent)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: worker_of(agent) not in {pid, None})
        await until(lambda: codes_of(agent) == set() and health_of(agent) == GOOD)


async def test_vendor_that_hangs_in_its_process_does_not_delay_the_end(
    tmp_path: Path, root: Path
) -> None:
    order(root, discover="hang")
    async with running(made(tmp_path, root)) as agent:
        await until(lambda: health_of(agent).keys() == {"toy/a", "toy/b"})
        waiting = agent.why_not_ready()

    assert "vendor acme has not answered yet" in waiting
