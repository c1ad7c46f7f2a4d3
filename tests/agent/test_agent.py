import asyncio
import logging
import re
import shutil
import time
from itertools import pairwise
from pathlib import Path

import attrs
import pytest

from accelkit.agent import listening
from accelkit.agent.agent import SOON_S, Agent
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.leader import Lease
from accelkit.cli.agent_socket import ask
from accelkit.core.backend import BackendFactory, NodePort
from accelkit.core.errors import BackendError, ConfigError, TransportError
from accelkit.core.model import Holder, Holding
from accelkit.core.policy import (
    Expect,
    HealthPolicy,
    Http,
    Offer,
    Policy,
    Read,
    Seconds,
    VendorPolicy,
)
from accelkit.core.values import HolderKind
from accelkit.core.view import View
from tests.agent.toys import (
    BOOT,
    Hanging,
    Ill,
    NotReady,
    Raising,
    Rubbish,
    Toy,
    ToyBackend,
    codes_of,
    device,
    get,
    get_json,
    health_of,
    parts,
    policy,
    ready,
    running,
    served,
    until,
    view_of,
)


async def test_devices_of_a_vendor_reach_the_backend_with_their_edits(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy())) as agent:
        await ready(agent)
        document = await get_json(tmp_path / "run" / "agent.sock", "/documents/kubelet")

    assert document == ["toy/a:HEALTHY", "toy/b:HEALTHY"]


async def test_node_is_not_ready_while_devices_are_missing(tmp_path: Path) -> None:
    vendor = Toy()
    wanted = attrs.evolve(policy(tmp_path), expect=(Expect(count=3),))
    async with running(parts(tmp_path, vendor, wanted=wanted)) as agent:
        await ready(agent)
        few = await asyncio.to_thread(ask, str(tmp_path / "run"), "/metrics")
        vendor.names = ("a", "b", "c")
        await until(lambda: not codes_of(agent))
        all_of_them = await asyncio.to_thread(ask, str(tmp_path / "run"), "/metrics")

    assert b"accelkit_ready 1" in few
    assert b"accelkit_node_ready 0" in few
    assert b"accelkit_node_ready 1" in all_of_them


async def test_probes_and_metrics_are_served_on_the_port(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy())) as agent:
        await until(lambda: agent.port)
        await ready(agent)
        assert agent.port is not None
        is_ready = await get(agent.port, "/readyz")
        live = await get(agent.port, "/livez")
        status, metrics = await get(agent.port, "/metrics")
        hidden = await get(agent.port, "/view")

    assert (is_ready, live, status) == ((200, "ok\n"), (200, "ok\n"), 200)
    assert hidden[0] == 404
    assert 'accelkit_devices{vendor="toy",kind="toy",offer="all",health="HEALTHY"' in metrics
    assert 'accelkit_build_info{version="1.2.3"' in metrics
    assert "accelkit_ready 1" in metrics
    assert "accelkit_node_ready 1" in metrics
    assert "accelkit_leader 1" in metrics
    assert 'accelkit_up{backend="kubelet"} 1' in metrics
    assert 'accelkit_backend_restarts_total{backend="kubelet"} 0' in metrics
    assert 'accelkit_vendor_call_seconds_count{vendor="toy",call="inventory",outcome="ok"}' in (
        metrics
    )


async def test_hanging_vendor_keeps_no_other_from_being_offered(tmp_path: Path) -> None:
    hanging = Hanging()
    async with running(parts(tmp_path, Toy(), hanging)) as agent:
        await until(lambda: "toy/a" in health_of(agent))
        waiting = agent.why_not_ready()
        hanging.go.set()
        await until(lambda: "hanging/a" in health_of(agent))
        await ready(agent)

    assert waiting == ("vendor hanging has not answered yet",)


async def test_hanging_vendor_does_not_delay_the_end(tmp_path: Path) -> None:
    hanging = Hanging()
    async with running(parts(tmp_path, hanging)) as agent:
        await until(lambda: agent._knowledge.sources["hanging"].lanes.all[0].running)

    assert not hanging.go.is_set()
    hanging.go.set()


async def test_vendor_that_overran_counts_as_heard_and_recovers(tmp_path: Path) -> None:
    hanging = Hanging()
    made = parts(tmp_path, hanging, wanted=scaled(policy(tmp_path), "hanging", 0.02))
    async with running(made) as agent:
        await until(lambda: codes_of(agent) == {"source-timeout"})
        reasons = agent.why_not_ready()
        metrics = agent._metrics.text().decode()
        hanging.go.set()
        await until(lambda: health_of(agent) == {"hanging/a": "HEALTHY", "hanging/b": "HEALTHY"})

    assert reasons == ("backend kubelet has not registered yet",)
    assert 'accelkit_lane_stuck{vendor="hanging"} 1' in metrics
    assert 'accelkit_problems{vendor="hanging",code="source-timeout"} 1' in metrics


def scaled(wanted: Policy, vendor: str, scale: float) -> Policy:
    return attrs.evolve(wanted, vendors=(VendorPolicy(name=vendor, deadline_scale=scale),))


@pytest.mark.parametrize(
    "vendor, code",
    [(Raising, "plugin-bug"), (NotReady, "driver-not-ready"), (Rubbish, "plugin-bug")],
)
async def test_failing_vendor_is_a_problem_and_no_more(
    tmp_path: Path, vendor: type[Toy], code: str
) -> None:
    async with running(parts(tmp_path, vendor(), Toy())) as agent:
        await ready(agent)
        await until(lambda: "toy/a" in health_of(agent))

        assert codes_of(agent) == {code}


async def test_devices_of_a_vendor_that_fails_stay_and_become_overdue(tmp_path: Path) -> None:
    """Time alone decides then: nothing else is read."""
    wanted = attrs.evolve(policy(tmp_path), health=HealthPolicy(grace_for_unknown=Seconds(0.2)))
    toy = Toy()
    async with running(parts(tmp_path, toy, wanted=wanted)) as agent:
        await until(lambda: health_of(agent) == {"toy/a": "HEALTHY", "toy/b": "HEALTHY"})
        toy.failing = True
        await until(lambda: health_of(agent) == {"toy/a": "UNKNOWN", "toy/b": "UNKNOWN"})
        await until(lambda: view_of(agent).verdicts[device("toy", "a")].overdue)
        edits = view_of(agent).edits
        toy.failing = False
        await until(lambda: health_of(agent) == {"toy/a": "HEALTHY", "toy/b": "HEALTHY"})

    assert edits.keys() == {device("toy", "a"), device("toy", "b")}


async def test_device_that_is_well_counts_as_well_when_its_hold_ends(tmp_path: Path) -> None:
    """Time alone decides then: nothing is read again."""
    seldom = Read(inventory=Seconds(600), health=Seconds(600), holdings=Seconds(600))
    health = HealthPolicy(recover_after=Seconds(0.3))
    vendor = Ill()
    made = attrs.evolve(policy(tmp_path), read=seldom, health=health)
    async with running(parts(tmp_path, vendor, wanted=made)) as agent:
        await until(lambda: health_of(agent) == {"ill/a": "UNHEALTHY", "ill/b": "UNHEALTHY"})
        a = device("ill", "a")
        vendor.ill = False
        agent._knowledge.sources["ill"].health.ring()
        await until(lambda: view_of(agent).verdicts[a].until is not None)
        reasons, looks = view_of(agent).verdicts[a].reasons, vendor.looks
        await until(lambda: health_of(agent) == {"ill/a": "HEALTHY", "ill/b": "HEALTHY"})

    assert [reason.code for reason in reasons] == ["recovering"]
    assert vendor.looks == looks


async def test_device_that_is_reported_no_more_is_gone(tmp_path: Path) -> None:
    toy = Toy()
    async with running(parts(tmp_path, toy)) as agent:
        await until(lambda: health_of(agent).keys() == {"toy/a", "toy/b"})
        toy.names = ("b", "c")
        await until(lambda: health_of(agent).keys() == {"toy/b", "toy/c"})

        assert view_of(agent).edits.keys() == {device("toy", "b"), device("toy", "c")}


async def test_backend_that_fails_is_started_again_alone(tmp_path: Path) -> None:
    class Failing(ToyBackend):
        name = "failing"

        def __init__(self, policy: Policy) -> None:
            super().__init__(policy)
            self.fail = BackendError("no socket")

    offers = (Offer(name="all"), Offer(name="more", through="failing"))
    made = parts(tmp_path, Toy(), wanted=attrs.evolve(policy(tmp_path), offers=offers))
    failing = BackendFactory(name="failing", create=Failing)
    made = attrs.evolve(made, backends={**made.backends, "failing": failing})
    async with running(made) as agent:
        await until(lambda: "backend-failed" in codes_of(agent))
        await until(lambda: served(agent).seen[-1:] == [("toy/a:HEALTHY", "toy/b:HEALTHY")])
        reasons = agent.why_not_ready()
        metrics = agent._metrics.text().decode()

    assert reasons == ("backend failing has not registered yet: no socket",)
    assert re.search(r'accelkit_backend_restarts_total\{backend="failing"\} [1-9]', metrics)
    assert 'accelkit_up{backend="failing"} 0' in metrics


async def test_vendor_drops_its_sessions_at_the_end(tmp_path: Path) -> None:
    closed: list[bool] = []

    class Session(Toy):
        def close(self) -> None:
            closed.append(True)

    async with running(parts(tmp_path, Session())) as agent:
        await ready(agent)

    await until(lambda: closed)


async def test_backend_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    def create(_policy: Policy) -> ToyBackend:
        raise ValueError("bug")

    made = parts(tmp_path, Toy())
    broken = BackendFactory(name="kubelet", create=create)
    async with running(attrs.evolve(made, backends={"kubelet": broken})) as agent:
        await until(lambda: "backend-failed" in codes_of(agent))


async def test_backend_that_is_not_installed_keeps_the_agent_unready(tmp_path: Path) -> None:
    async with running(attrs.evolve(parts(tmp_path, Toy()), backends={})) as agent:
        await until(lambda: "toy/a" in health_of(agent))

        assert agent.why_not_ready() == ("backend kubelet has not started",)


async def test_port_in_use_stops_nothing_else_and_is_had_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "REBIND_S", 0.02)
    other = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    wanted = attrs.evolve(policy(tmp_path), http=Http(listen=f"127.0.0.1:{port}"))
    async with running(parts(tmp_path, Toy(), wanted=wanted)) as agent:
        await until(lambda: "http-listen" in codes_of(agent))
        await ready(agent)
        (problem,) = agent.problems()
        other.close()
        await other.wait_closed()
        await until(lambda: agent.port == port)
        await until(lambda: not agent.problems())

    assert problem.reason == (
        f"metrics and probes cannot be served on 127.0.0.1:{port}: Address already in use"
    )
    assert problem.remedy


@pytest.mark.parametrize(
    "listen, run, path",
    [("nonsense", "run", "$.http.listen"), ("", "file/run", "$.paths.run")],
)
def test_agent_that_cannot_start_says_what_is_wrong(
    tmp_path: Path, listen: str, run: str, path: str
) -> None:
    (tmp_path / "file").touch()
    wanted = policy(tmp_path)
    wanted = attrs.evolve(
        wanted,
        http=Http(listen=listen),
        paths=attrs.evolve(wanted.paths, run=str(tmp_path / run)),
    )

    with pytest.raises(ConfigError) as found:
        Agent(parts(tmp_path, wanted=wanted))
    assert [where for where, _ in found.value.problems] == [path]


async def test_socket_that_cannot_be_bound_is_a_problem(tmp_path: Path) -> None:
    wanted = policy(tmp_path)
    deep = tmp_path / ("x" * 100)
    wanted = attrs.evolve(wanted, paths=attrs.evolve(wanted.paths, run=str(deep)))
    async with running(parts(tmp_path, Toy(), wanted=wanted)) as agent:
        await ready(agent)

        assert codes_of(agent) == {"agent-socket"}


async def test_second_agent_follows_and_leads_when_the_first_ends(tmp_path: Path) -> None:
    socket = tmp_path / "run" / "agent.sock"
    async with running(parts(tmp_path, Toy())) as first:
        await ready(first)
        async with running(parts(tmp_path, Toy())) as second:
            await ready(second)
            following = second._shared.leading.now
            inode = socket.stat().st_ino
            first.stop()
            await until(lambda: second._shared.leading.now)
            await ready(second)
            document = await get_json(socket, "/documents/kubelet")

    assert not following
    assert socket.exists() is False
    assert document == ["toy/a:HEALTHY", "toy/b:HEALTHY"]
    assert inode


async def test_run_directory_that_vanishes_is_made_again(tmp_path: Path) -> None:
    socket = tmp_path / "run" / "agent.sock"
    async with running(parts(tmp_path, Toy())) as agent:
        await ready(agent)
        shutil.rmtree(tmp_path / "run")
        await until(socket.exists)
        await until(lambda: agent._shared.leading.now)

        assert (await get(socket, "/readyz"))[0] == 200


async def test_stopped_agent_is_not_ready_and_leaves_no_socket(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy())) as agent:
        await ready(agent)
        agent.stop()
        reasons = agent.why_not_ready()

    assert reasons == ("the agent ends",)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {BOOT, "leader.lock"}


async def test_backend_ends_before_the_lock_is_given_up(tmp_path: Path) -> None:
    """Who leads next must not meet streams of ours."""
    led: list[bool] = []

    class Late(ToyBackend):
        async def serve(self, node: NodePort) -> None:
            self.node = node
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)
                led.append(agent._lease.check())

    made = attrs.evolve(
        parts(tmp_path), backends={"kubelet": BackendFactory(name="kubelet", create=Late)}
    )
    async with running(made) as agent:
        await until(lambda: agent._backends.made)

    assert led == [True]


async def test_loop_that_breaks_ends_the_agent_in_order(tmp_path: Path) -> None:
    agent = Agent(parts(tmp_path, Toy()))

    def broken() -> bool:
        raise ZeroDivisionError

    agent._renewal.file_changed = broken  # type: ignore[method-assign]  # a bug of our own
    with pytest.raises(ExceptionGroup) as found:
        await agent.run()

    assert found.group_contains(ZeroDivisionError)
    assert not (tmp_path / "run" / "agent.sock").exists()


async def test_dump_tells_tasks_and_lanes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hanging = Hanging()
    async with running(parts(tmp_path, hanging)) as agent:
        await until(lambda: agent._knowledge.sources["hanging"].lanes.all[0].running)
        with caplog.at_level(logging.INFO):
            agent.dump()
        hanging.go.set()

    lanes = [record for record in caplog.records if record.message == "lanes"]
    assert [record.__dict__["running"] for record in lanes] == [["inventory"]]
    assert any("_tick" in record.__dict__.get("what", "") for record in caplog.records)


async def test_holders_of_the_kubelet_are_in_the_view(tmp_path: Path) -> None:
    held = Holding(
        device=device("toy", "a"),
        through="kubelet",
        holder=Holder(kind=HolderKind.POD, namespace="ns", pod="p"),
    )

    async def read(_view: View) -> tuple[Holding, ...]:
        return (held,)

    async with running(attrs.evolve(parts(tmp_path, Toy()), holdings=read)) as agent:
        await until(lambda: view_of(agent).holdings == (held,))
        metrics = agent._metrics.text().decode()

    assert 'accelkit_device_holder{device="toy/a",share="",namespace="ns",pod="p"' in metrics


async def test_device_that_is_held_on_other_terms_at_start_is_not_offered_on_new_ones(
    tmp_path: Path,
) -> None:
    """However long the kubelet takes: the first view must not give it away."""
    held = Holding(
        device=device("toy", "a"),
        through="kubelet",
        holder=Holder(kind=HolderKind.POD, pod="p"),
        resource="example.com/old",
    )

    async def read(view: View) -> tuple[Holding, ...]:
        await asyncio.sleep(0.05)
        return (held,) if held.device in view.devices else ()

    async with running(attrs.evolve(parts(tmp_path, Toy()), holdings=read)) as agent:
        await ready(agent)
        offered = {document for document in served(agent).seen if document}

    assert offered == {("toy/b:HEALTHY",)}


async def test_holders_that_cannot_be_asked_are_a_problem_and_the_last_ones_stay(
    tmp_path: Path,
) -> None:
    held = Holding(
        device=device("toy", "a"), through="kubelet", holder=Holder(kind=HolderKind.POD, pod="p")
    )
    down: list[bool] = []

    async def read(_view: View) -> tuple[Holding, ...]:
        if down:
            raise TransportError("no kubelet", remedy="start it")
        return (held,)

    async with running(attrs.evolve(parts(tmp_path, Toy()), holdings=read)) as agent:
        await until(lambda: view_of(agent).holdings == (held,))
        down.append(True)
        await until(lambda: "holders-unknown" in codes_of(agent))
        kept = view_of(agent).holdings
        down.clear()
        await until(lambda: "holders-unknown" not in codes_of(agent))

    assert kept == (held,)


async def test_verdict_that_stayed_due_would_not_keep_the_agent_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Knowledge, "due_at", lambda _knowledge: 0.0)
    check, looks = Lease.check, []

    def checked(lease: Lease) -> bool:
        looks.append(time.monotonic())
        return check(lease)

    monkeypatch.setattr(Lease, "check", checked)
    async with running(parts(tmp_path, Toy())):
        await until(lambda: len(looks) > 20)

    # The first one is made before there are ticks.
    assert all(after - before > SOON_S / 2 for before, after in pairwise(looks[1:]))
