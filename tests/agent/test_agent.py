from pathlib import Path

from tests.agent.toys import Toy, get, get_json, parts, running, until


async def test_devices_of_a_vendor_reach_the_backend_with_their_edits(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy())) as agent:
        await until(lambda: not agent.why_not_ready())
        document = await get_json(tmp_path / "run" / "agent.sock", "/documents/kubelet")

    assert document == ["toy/a:HEALTHY", "toy/b:HEALTHY"]


async def test_probes_and_metrics_are_served_on_the_port(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy())) as agent:
        await until(lambda: agent.port and not agent.why_not_ready())
        assert agent.port is not None
        ready = await get(agent.port, "/readyz")
        live = await get(agent.port, "/livez")
        status, metrics = await get(agent.port, "/metrics")

    assert (ready, live, status) == ((200, "ok\n"), (200, "ok\n"), 200)
    assert 'accelkit_devices{vendor="toy",kind="toy",offer="all",health="HEALTHY"' in metrics
