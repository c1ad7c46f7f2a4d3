"""What an agent does for claims: with real files, a toy vendor and an API server in memory."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from accelkit.agent import duties
from accelkit.agent.agent import Agent
from accelkit.core.allocation import Prepared
from accelkit.core.backend import BackendFactory, BackendStatus, NodePort
from accelkit.core.errors import ConfigError
from accelkit.core.host import Host
from accelkit.core.kube import EVENTS
from accelkit.core.model import Device, Holder, Holding, Unreadable
from accelkit.core.policy import (
    Events,
    EventsEnabled,
    Offer,
    Policy,
    Read,
    Seconds,
    Sharing,
    Shutdown,
    Timeslice,
)
from accelkit.core.values import Enforcement, HolderKind, Standing
from accelkit.core.view import View
from tests.agent.api import Api
from tests.agent.claiming import CLAIM, UID, DraToy, claiming, port_of, wish
from tests.agent.toys import (
    BOOT,
    PATIENCE_S,
    Cutting,
    Sets,
    Toy,
    ToyBackend,
    codes_of,
    cut_host,
    device,
    get,
    get_json,
    parts,
    policy,
    ready,
    running,
    until,
    view_of,
)


def claims_on_disk(tmp_path: Path) -> list[str]:
    return sorted(p.stem for p in (tmp_path / "run" / BOOT / "claims").glob("*.json"))


async def test_claim_is_prepared_held_and_released(tmp_path: Path) -> None:
    toy = Toy()
    async with running(claiming(tmp_path, toy)) as agent:
        await ready(agent)
        port = port_of(agent)
        prepared = await port.prepare(wish(toy))
        await until(lambda: view_of(agent).held)
        (holding,) = view_of(agent).holdings
        ledger = await get_json(tmp_path / "run" / "agent.sock", "/ledger")
        metrics = agent._metrics.text().decode()
        files = [path.name for path in (tmp_path / "cdi").iterdir()]
        known = await port.prepared(CLAIM)
        entries = dict(port.claims())
        await port.release(UID)
        await until(lambda: not view_of(agent).held)
        counted = agent._metrics.text().decode()

    assert [answer.device for answer in prepared.answers] == [device("toy", "a")]
    assert known == prepared
    assert entries.keys() == {UID}
    assert holding == Holding(
        device=device("toy", "a"),
        through="dra",
        holder=Holder(kind=HolderKind.CLAIM, namespace="team", claim="trainer-gpu", uid=UID),
    )
    assert isinstance(ledger, list)
    assert [(e["state"], e["claim"]["uid"]) for e in ledger] == [("ready", UID)]
    assert len(files) == 1
    assert 'accelkit_claims{driver="toy.accelkit.dev",state="ready"} 1' in metrics
    assert 'accelkit_oldest_claim_seconds{driver="toy.accelkit.dev",state="ready"}' in metrics
    assert 'accelkit_claims{driver="toy.accelkit.dev",state="ready"} 0' in counted
    assert list((tmp_path / "cdi").iterdir()) == []
    assert claims_on_disk(tmp_path) == []


class Late(Toy):
    """Does not answer before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self.go.wait(PATIENCE_S)
        return super().discover(host)


async def test_claim_waits_for_the_first_answer_of_its_vendor(tmp_path: Path) -> None:
    toy = Late()
    async with running(claiming(tmp_path, toy)) as agent:
        await until(lambda: agent._backends.made)
        task = asyncio.create_task(port_of(agent).prepare(wish(toy)))
        await until(lambda: agent._knowledge.sources["toy"].lanes.all[0].running)
        waiting = not task.done()
        toy.go.set()
        async with asyncio.timeout(PATIENCE_S):
            prepared = await task

    assert waiting
    assert prepared.claim == CLAIM


async def test_claim_that_waits_keeps_no_other_from_being_seen(tmp_path: Path) -> None:
    toy = Toy()
    other = attrs.evolve(CLAIM, uid=UID.replace("1", "2"), name="other")
    seldom = Read(inventory=Seconds(600), health=Seconds(600))
    async with running(claiming(tmp_path, toy, read=seldom)) as agent:
        await ready(agent)
        await until(lambda: len(view_of(agent).edits) == 2)
        toy.missing = frozenset({"b"})
        waiting = asyncio.create_task(port_of(agent).prepare(wish(toy, "b", other)))
        await port_of(agent).prepare(wish(toy, "a"))
        await until(lambda: device("toy", "a") in view_of(agent).held)
        still = not waiting.done()
        toy.missing = frozenset()
        async with asyncio.timeout(PATIENCE_S):
            await waiting

    assert still


async def test_prepared_claim_is_answered_after_a_restart_before_any_vendor(
    tmp_path: Path,
) -> None:
    toy, late = Toy(), Late()
    async with running(claiming(tmp_path, toy)) as agent:
        await ready(agent)
        before = await port_of(agent).prepare(wish(toy))
    for path in (tmp_path / "cdi").iterdir():
        path.unlink()
    async with running(claiming(tmp_path, late)) as agent:
        await until(lambda: agent._backends.made)
        after = await port_of(agent).prepared(CLAIM)
        held = view_of(agent).held
        file_is_back = len(list((tmp_path / "cdi").iterdir())) == 1
        late.go.set()

    assert after == before
    assert held == {device("toy", "a")}
    assert file_is_back


async def test_held_device_that_went_while_no_agent_ran_is_in_the_first_view_that_is_served(
    tmp_path: Path,
) -> None:
    """What is not listed would be given away a second time."""
    toy = Toy()
    async with running(claiming(tmp_path, toy)) as agent:
        await ready(agent)
        await port_of(agent).prepare(wish(toy))
    served: list[View] = []

    class Watching(DraToy):
        async def serve(self, node: NodePort) -> None:
            async for view in node.views():
                served.extend([view] if node.answered() else [])

    toy.names = ("b",)
    made = claiming(tmp_path, toy)
    factory = BackendFactory(name="dra", create=Watching)
    async with running(attrs.evolve(made, backends={"dra": factory})):
        await until(lambda: served)

    assert served[0].devices[device("toy", "a")].standing is Standing.LOST
    assert device("toy", "b") in served[0].devices


async def test_terms_of_a_held_device_outlive_a_restart_with_another_policy(
    tmp_path: Path,
) -> None:
    toy = Toy()
    async with running(claiming(tmp_path, toy)) as agent:
        await ready(agent)
        await port_of(agent).prepare(wish(toy))
    async with running(parts(tmp_path, toy)) as agent:  # everything through the kubelet
        await until(lambda: len(view_of(agent).edits) == 2)
        given = view_of(agent).assignments

    first, second = given[device("toy", "a")], given[device("toy", "b")]
    assert first.leaving
    assert first.terms is not None
    assert (first.terms.through, second.terms and second.terms.through) == ("dra", "kubelet")


async def test_other_boots_are_forgotten_before_the_record_is_read(tmp_path: Path) -> None:
    other = tmp_path / "run" / BOOT.replace("2", "3")
    (other / "claims").mkdir(parents=True)
    async with running(claiming(tmp_path, Toy())) as agent:
        await ready(agent)

        assert not other.exists()


async def test_record_that_cannot_be_read_is_waited_for_and_nothing_is_served(
    tmp_path: Path,
) -> None:
    in_the_way = tmp_path / "run" / BOOT
    in_the_way.parent.mkdir()
    in_the_way.touch()
    async with running(claiming(tmp_path, Toy())) as agent:
        await until(lambda: "ledger-failed" in codes_of(agent))
        state = (agent.live(), dict(agent._backends.made), bool(agent.why_not_ready()))
        probe = await get(tmp_path / "run" / "agent.sock", "/livez")
        in_the_way.unlink()
        await ready(agent)

        assert "ledger-failed" not in codes_of(agent)

    assert state == (True, {}, True)
    assert probe == (200, "ok\n")


async def test_agent_that_waits_for_its_record_can_be_ended(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / BOOT).touch()
    async with running(claiming(tmp_path, Toy())) as agent:
        await until(lambda: "ledger-failed" in codes_of(agent))

    assert not (tmp_path / "run" / "agent.sock").exists()


async def test_preparation_that_runs_is_ended_before_the_agent_is(tmp_path: Path) -> None:
    cutting = Cutting()
    cut_host(tmp_path, "whole")
    made = claiming(tmp_path, cutting, sharing=Sharing(timeslice=Timeslice.LONG))
    agent = Agent(made)
    life = asyncio.create_task(agent.run())
    await ready(agent)
    cutting.go.clear()
    task = asyncio.create_task(port_of(agent).prepare(wish(cutting)))
    await until(lambda: cutting.works == ["apply long"])
    agent.stop()
    await until(lambda: agent.why_not_ready() == ("the agent ends",))
    serving = not agent._backends._running["dra"].task.done()
    cutting.go.set()
    async with asyncio.timeout(PATIENCE_S):
        prepared = await task
        await life

    assert serving
    assert isinstance(prepared, Prepared)
    assert claims_on_disk(tmp_path) == [UID]


async def test_preparation_that_takes_too_long_does_not_keep_the_agent_from_ending(
    tmp_path: Path,
) -> None:
    cutting = Cutting()
    cut_host(tmp_path, "whole")
    made = claiming(tmp_path, cutting, sharing=Sharing(timeslice=Timeslice.LONG))
    async with running(attrs.evolve(made, grace_s=0.0)) as agent:
        await ready(agent)
        cutting.go.clear()
        task = asyncio.create_task(port_of(agent).prepare(wish(cutting)))
        await until(lambda: cutting.works == ["apply long"])

    cutting.go.set()
    task.cancel()
    assert claims_on_disk(tmp_path) == [UID]


async def test_claims_that_are_left_at_the_end_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    toy = Toy()
    with caplog.at_level(logging.WARNING):
        async with running(claiming(tmp_path, toy)) as agent:
            await ready(agent)
            await port_of(agent).prepare(wish(toy))

    (left,) = [r for r in caplog.records if r.message == "claims are left prepared"]
    assert left.__dict__["claims"] == ["team/trainer-gpu"]


async def test_end_waits_for_claims_as_the_policy_says(tmp_path: Path) -> None:
    toy = Toy()
    wait = Shutdown(wait_for_claims=Seconds(PATIENCE_S * 3))
    agent = Agent(claiming(tmp_path, toy, shutdown=wait))
    life = asyncio.create_task(agent.run())
    await ready(agent)
    await port_of(agent).prepare(wish(toy))
    agent.stop()
    await until(agent.why_not_ready)
    waiting = not life.done()
    await port_of(agent).release(UID)
    async with asyncio.timeout(PATIENCE_S):
        await life

    assert waiting


async def test_device_that_falls_ill_is_told_by_the_leader(tmp_path: Path) -> None:
    toy, api = Toy(), Api()
    async with running(claiming(tmp_path, toy, api=api)) as agent:
        await ready(agent)
        await port_of(agent).prepare(wish(toy))
        await until(lambda: view_of(agent).held)
        toy.names = ("b",)
        await until(lambda: api.all(EVENTS))
        told = [event["reason"] for event in api.all(EVENTS)]

    assert told == ["DeviceLost"]


async def test_policy_that_is_refused_is_told(tmp_path: Path) -> None:
    api = Api()
    file = tmp_path / "policy.yaml"
    file.write_text("{}")

    def refuse() -> Policy:
        raise ConfigError([("$.offers", "nonsense")])

    made = attrs.evolve(claiming(tmp_path, Toy(), api=api), read_policy=refuse, policy_file=file)
    async with running(made) as agent:
        await ready(agent)
        agent.reload()
        await until(lambda: api.all(EVENTS))
        (event,) = api.all(EVENTS)

    assert event["reason"] == "ConfigInvalid"
    assert "$.offers: nonsense" in str(event["note"])


@pytest.mark.parametrize(
    "enabled, through, reached",
    [
        (EventsEnabled.AUTO, "kubelet", False),
        (EventsEnabled.ALWAYS, "kubelet", True),
        (EventsEnabled.AUTO, "dra", True),
        (EventsEnabled.NEVER, "dra", False),
    ],
)
async def test_events_are_sent_where_the_policy_or_a_backend_uses_the_api(
    tmp_path: Path, enabled: EventsEnabled, through: str, *, reached: bool
) -> None:
    api, toy = Api(), Toy()
    made = claiming(
        tmp_path,
        toy,
        api=api,
        offers=(Offer(name="all", through=through),),
        events=Events(enabled=enabled),
    )
    kubelet = BackendFactory(name="kubelet", create=ToyBackend)
    made = attrs.evolve(made, backends={**made.backends, "kubelet": kubelet})
    async with running(made) as agent:
        await ready(agent)
        agent._shared.tell("DeviceLost", "toy/a is gone")
        if reached:
            await until(lambda: api.all(EVENTS))

    assert [asked.split()[0] for asked in api.asked] == (["create", "close"] if reached else [])


async def test_instance_that_follows_is_ready_when_it_can_prepare_claims(tmp_path: Path) -> None:
    class Slow(DraToy):
        go = asyncio.Event()

        async def serve(self, node: NodePort) -> None:
            self.node = node
            await self.go.wait()
            node.report(BackendStatus(backend="dra", registered=True))
            await asyncio.Event().wait()

    async with running(claiming(tmp_path, Toy())) as first:
        await ready(first)
        factory = BackendFactory(name="dra", create=Slow)
        second_parts = attrs.evolve(claiming(tmp_path, Toy()), backends={"dra": factory})
        async with running(second_parts) as second:
            await until(lambda: "toy/a" in {str(i) for i in view_of(second).devices})
            await until(lambda: len(second.why_not_ready()) == 1)
            before = second.why_not_ready()
            Slow.go.set()
            await ready(second)

            assert not second._shared.leading.now

    assert before == ("backend dra has not registered yet",)


async def test_leader_is_ready_unpublished_only_while_the_api_server_is_away(
    tmp_path: Path,
) -> None:
    class Unpublished(DraToy):
        async def serve(self, node: NodePort) -> None:
            node.report(BackendStatus(backend="dra", registered=True, detail="no answer"))
            await asyncio.Event().wait()

    factory = BackendFactory(name="dra", create=Unpublished)
    made = attrs.evolve(claiming(tmp_path, Toy()), backends={"dra": factory})
    async with running(made) as agent:
        await until(lambda: len(agent.why_not_ready()) == 1)
        reasons = agent.why_not_ready()
        agent._reach._count("get", "nodes", "error")
        away = agent.why_not_ready()
        agent._reach._count("get", "nodes", "200")
        back = agent.why_not_ready()
        metrics = agent._metrics.text().decode()

    assert reasons == back == ("backend dra has not published yet: no answer",)
    assert away == ()
    assert 'accelkit_api_requests_total{verb="get",resource="nodes",code="error"} 1' in metrics


async def test_backend_that_the_policy_wants_without_an_offer_is_started(tmp_path: Path) -> None:
    class Extended(ToyBackend):
        name = "extended"

    def bug(_policy: Policy) -> bool:
        raise ZeroDivisionError

    made = parts(tmp_path, Toy())
    extended = BackendFactory(name="extended", create=Extended, wanted=lambda _policy: True)
    broken = BackendFactory(name="broken", create=Extended, wanted=bug)
    backends = {**made.backends, "extended": extended, "broken": broken}
    async with running(attrs.evolve(made, backends=backends)) as agent:
        await ready(agent)

        assert agent._backends.made.keys() == {"kubelet", "extended"}


async def test_settings_of_the_policy_hold_on_devices_of_the_kubelet(tmp_path: Path) -> None:
    cutting = Cutting()
    cut_host(tmp_path, "whole")
    offer = Offer(name="all", sharing=Sharing(shares=2, timeslice=Timeslice.LONG))
    made = parts(tmp_path, cutting, wanted=attrs.evolve(policy(tmp_path), offers=(offer,)))
    switch = tmp_path / "host" / "cut" / "switch"
    async with running(made) as agent:
        await until(lambda: switch.read_text() == "long")

        assert "setting-failed" not in codes_of(agent)

    kept = json.loads((tmp_path / "run" / BOOT / "standing.json").read_text())
    assert [one["setting"]["value"] for one in kept] == ["long"]


async def test_container_with_two_sets_is_told_until_it_has_one(tmp_path: Path) -> None:
    held = [
        Holding(
            device=device("sets", name),
            through="kubelet",
            resource=f"example.com/{name}",
            holder=Holder(kind=HolderKind.POD, namespace="ns", pod="p", container="main"),
        )
        for name in ("a", "b")
    ]

    async def read(_view: View) -> tuple[Holding, ...]:
        return tuple(held)

    api = Api()
    made = attrs.evolve(claiming(tmp_path, Sets(), api=api), holdings=read)
    async with running(made) as agent:
        await until(lambda: "split-set" in codes_of(agent))
        await until(lambda: api.all(EVENTS))
        held.pop()
        await until(lambda: "split-set" not in codes_of(agent))

    assert [event["reason"] for event in api.all(EVENTS)] == ["SplitSet"]


async def test_device_that_a_daemon_shares_is_kept_back_until_the_daemon_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "SECOND_S", 0.02)

    class Shareable(Toy):
        def discover(self, host: Host) -> Iterable[Device | Unreadable]:
            for found in super().discover(host):
                assert isinstance(found, Device)
                mps = frozenset({Enforcement.NONE, Enforcement.MPS})
                yield attrs.evolve(found, sharing=mps if found.id.name == "a" else frozenset())

    sharing = Sharing(shares=2, enforce=Enforcement.MPS)
    made = claiming(tmp_path, Shareable(), sharing=sharing)
    async with running(made) as agent:
        await until((tmp_path / "run" / "mps" / "a.json").exists)
        await until(lambda: len(view_of(agent).verdicts) == 2)
        verdict = view_of(agent).verdicts[device("toy", "a")]
        other = view_of(agent).verdicts[device("toy", "b")]
        agent._knowledge.commit()
        again = view_of(agent).verdicts[device("toy", "a")]
        (tmp_path / "run" / "mps" / "a.ready").touch()
        await until(lambda: view_of(agent).verdicts[device("toy", "a")].good)
        conditions = view_of(agent).devices[device("toy", "a")].conditions
        files = [path.name for path in (tmp_path / "run" / "mps").glob("*.json")]

    assert [c.code for c in verdict.reasons] == ["service-missing", "unmonitored"]
    assert (verdict.good, other.good) == (False, True)
    assert again.since == verdict.since
    assert [c.code for c in conditions] == ["unmonitored"]
    assert files == ["a.json"]
