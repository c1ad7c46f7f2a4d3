"""A restart neither heals nor condemns, and an operator's word lasts."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from accelkit.agent.agent import Agent, Parts
from accelkit.agent.memory import COURSE, DAMAGED
from accelkit.cli.agent_socket import NotKnown, ask
from accelkit.core.errors import TransportError
from accelkit.core.host import Host
from accelkit.core.model import Condition, Device, Event, Evidence, Profile, Unreadable
from accelkit.core.policy import Flap, HealthPolicy, Seconds
from accelkit.core.values import Scope
from accelkit.core.vendor import Vendor
from accelkit.core.view import Verdict
from tests.agent.toys import (
    BOOT,
    Ill,
    Listening,
    codes_of,
    device,
    health_of,
    parts,
    policy,
    running,
    until,
    view_of,
)

XID = Event(subject="a", code="xid-79", source="library")
HELD = {"ill/a": "UNHEALTHY", "ill/b": "UNHEALTHY"}
WELL = {"ill/a": "HEALTHY", "ill/b": "HEALTHY"}


def of(tmp_path: Path, vendor: Vendor, health: HealthPolicy | None = None) -> Parts:
    wanted = attrs.evolve(policy(tmp_path), health=health or HealthPolicy())
    return parts(tmp_path, vendor, wanted=wanted)


def kept(tmp_path: Path) -> Path:
    return tmp_path / "run" / BOOT / COURSE


def heard(agent: Agent) -> dict[str, int]:
    return {entry.code: entry.count for entry in agent._knowledge.heard.evidence}


def verdict(agent: Agent, name: str = "ill/a") -> Verdict:
    return view_of(agent).verdicts[device(*name.split("/"))]


async def clear(tmp_path: Path, subject: str, code: str | None = None) -> object:
    body = json.dumps({"subject": subject, "code": code}).encode()
    return json.loads(await post(tmp_path, body))


async def post(tmp_path: Path, body: bytes) -> bytes:
    run = str(tmp_path / "run")
    return await asyncio.to_thread(ask, run, "/evidence/clear", post=True, body=body)


async def test_what_was_told_once_still_counts_after_a_restart(tmp_path: Path) -> None:
    vendor = Listening()
    async with running(of(tmp_path, vendor)) as agent:
        vendor.tell(XID)
        await until(lambda: health_of(agent).get("listening/a") == "UNHEALTHY")
        before, (entry,) = verdict(agent, "listening/a"), agent._knowledge.heard.evidence

    async with running(of(tmp_path, Listening())) as agent:
        await until(lambda: agent._knowledge.answered.now)
        after, (recalled,) = verdict(agent, "listening/a"), agent._knowledge.heard.evidence

    assert (after, after.since) == (before, before.since)
    assert (recalled, recalled.last_s) == (entry, entry.last_s)


async def test_what_was_heard_is_written_down_while_the_agent_runs(tmp_path: Path) -> None:
    """It may be killed at any time."""
    vendor = Listening()
    async with running(of(tmp_path, vendor)):
        vendor.tell(XID)
        await until(lambda: kept(tmp_path).exists() and "xid-79" in kept(tmp_path).read_text())


async def test_healthy_device_is_so_since_before_the_restart(tmp_path: Path) -> None:
    vendor = Ill()
    vendor.ill = False
    async with running(of(tmp_path, vendor)) as agent:
        await until(lambda: health_of(agent) == WELL)
        before = verdict(agent).since

    async with running(of(tmp_path, vendor)) as agent:
        await until(lambda: health_of(agent) == WELL)
        after = verdict(agent).since

    assert after == before


async def test_hold_goes_on_after_a_restart(tmp_path: Path) -> None:
    vendor = Ill()
    async with running(of(tmp_path, vendor)) as agent:
        await until(lambda: health_of(agent) == HELD)
        vendor.ill = False
        await until(lambda: verdict(agent).until is not None)
        since, past = verdict(agent).since, verdict(agent).past

    async with running(of(tmp_path, vendor)) as agent:
        await until(lambda: agent._knowledge.answered.now)
        after = verdict(agent)

    assert [reason.code for reason in after.reasons] == ["recovering"]
    assert (after.since, after.past) == (since, past)


async def test_changes_before_and_after_a_restart_are_counted_together(tmp_path: Path) -> None:
    health = HealthPolicy(recover_after=Seconds(0), flap=Flap(changes=1))
    vendor = Ill()
    vendor.ill = False
    async with running(of(tmp_path, vendor, health)) as agent:
        await until(lambda: health_of(agent) == WELL)
        vendor.ill = True
        await until(lambda: health_of(agent) == HELD)

    async with running(of(tmp_path, vendor, health)) as agent:
        await until(lambda: health_of(agent) == HELD)
        vendor.ill = False
        await until(lambda: [c.code for c in verdict(agent).reasons] == ["flapping"])


async def test_device_that_leaves_again_and_again_is_held_though_the_agent_restarts(
    tmp_path: Path,
) -> None:
    vendor = Ill()
    vendor.ill = False

    async def let_go(agent: Agent) -> None:
        await until(lambda: health_of(agent) == WELL)
        vendor.names = ("b",)
        await until(lambda: health_of(agent) == {"ill/b": "HEALTHY"})

    async with running(of(tmp_path, vendor)) as agent:
        await let_go(agent)
    vendor.names = ("a", "b")
    async with running(of(tmp_path, vendor)) as agent:
        await let_go(agent)
    async with running(of(tmp_path, vendor)) as agent:
        await until(lambda: agent._knowledge.answered.now)
        vendor.names = ("a", "b")
        await until(lambda: "ill/a" in health_of(agent))

        assert [reason.code for reason in verdict(agent).reasons] == ["flapping"]
        assert health_of(agent)["ill/b"] == "HEALTHY"


async def test_damaged_file_is_set_aside_and_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept(tmp_path).parent.mkdir(parents=True)
    kept(tmp_path).write_text('{"format": "1.0", "told": 7}')
    vendor = Ill()
    async with running(of(tmp_path, vendor)) as agent:
        await until(lambda: health_of(agent) == HELD and kept(tmp_path).exists())
        await until(lambda: not codes_of(agent))

    assert "what was heard is set aside" in caplog.messages
    assert kept(tmp_path).with_name(DAMAGED).read_text() == '{"format": "1.0", "told": 7}'


async def test_follower_knows_what_the_leader_heard_and_what_was_cleared(tmp_path: Path) -> None:
    vendor, other = Listening(), Listening()
    async with running(of(tmp_path, vendor)) as leader:
        await until(lambda: leader._shared.leading.now)
        async with running(of(tmp_path, other)) as follower:
            vendor.tell(XID)
            other.tell(XID)
            await until(lambda: heard(leader) == heard(follower) == {"xid-79": 1})
            other.tell(attrs.evolve(XID, code="own"))
            await until(lambda: heard(follower) == {"xid-79": 1, "own": 1})
            await until(lambda: "xid-79" in kept(tmp_path).read_text())
            await clear(tmp_path, "a")
            await until(lambda: heard(follower) == {"own": 1})
            leader.stop()
            await until(lambda: '"own"' in kept(tmp_path).read_text())

            assert heard(follower) == {"own": 1}


async def test_operator_says_that_a_fault_is_gone(tmp_path: Path) -> None:
    vendor = Listening()
    async with running(of(tmp_path, vendor)) as agent:
        vendor.tell(XID)
        await until(lambda: health_of(agent).get("listening/a") == "UNHEALTHY")
        answer = await clear(tmp_path, "listening/a", "xid-79")
        after = health_of(agent)

    assert isinstance(answer, dict)
    assert answer["devices"] == ["listening/a"]
    assert [entry["code"] for entry in answer["evidence"]] == ["xid-79"]
    assert after == {"listening/a": "HEALTHY", "listening/b": "HEALTHY"}
    assert '"xid-79"' not in json.dumps(json.loads(kept(tmp_path).read_text())["told"]["evidence"])


async def test_operator_ends_what_holds_a_device_down(tmp_path: Path) -> None:
    health = HealthPolicy(flap=Flap(changes=1))
    vendor = Ill()
    vendor.ill = False
    async with running(of(tmp_path, vendor, health)) as agent:
        await until(lambda: health_of(agent) == WELL)
        vendor.ill = True
        await until(lambda: health_of(agent) == HELD)
        vendor.ill = False
        await until(lambda: verdict(agent).until is not None)
        await clear(tmp_path, "a", "flapping")
        left = [reason.code for reason in verdict(agent).reasons]
        await clear(tmp_path, "ill/a")
        after = health_of(agent)

    assert left == ["recovering"]
    assert after == {"ill/a": "HEALTHY", "ill/b": "UNHEALTHY"}


class IllTree(Ill):
    """A device that is cut, and falls ill with all of its parts."""

    half = Profile(name="half", slug="half", size=1, starts=(0, 1))

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        del host
        whole = self.device("a", kind="toy", slots=2, profiles=(self.half,), usable=False)
        yield whole
        yield self.partition(whole, self.half, 1)

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        for condition in super().conditions(host, device, evidence):
            if device.parent is None:
                yield attrs.evolve(condition, scope=Scope.TREE)


async def test_operator_ends_what_holds_the_partitions_of_a_device_down(tmp_path: Path) -> None:
    both, part = {"ill/a", "ill/a-half-1"}, "ill/a-half-1"
    health = HealthPolicy(flap=Flap(changes=1))
    vendor = IllTree()
    vendor.ill = False
    async with running(of(tmp_path, vendor, health)) as agent:
        await until(lambda: health_of(agent) == dict.fromkeys(both, "HEALTHY"))
        vendor.ill = True
        await until(lambda: health_of(agent) == dict.fromkeys(both, "UNHEALTHY"))
        vendor.ill = False
        await until(lambda: verdict(agent, part).until is not None)
        held = [reason.code for reason in verdict(agent, part).reasons]
        answer = await clear(tmp_path, "ill/a")
        after = health_of(agent)

    assert held == ["flapping", "recovering"]
    assert answer == {"devices": sorted(both), "evidence": []}
    assert after == dict.fromkeys(both, "HEALTHY")


async def test_what_the_vendor_still_reads_stays(tmp_path: Path) -> None:
    async with running(of(tmp_path, Ill())) as agent:
        await until(lambda: health_of(agent) == HELD)
        answer = await clear(tmp_path, "a")
        after = health_of(agent)

    assert answer == {"devices": ["ill/a"], "evidence": []}
    assert after == HELD


async def test_what_is_known_of_a_vendor_as_a_whole_is_cleared_alone(tmp_path: Path) -> None:
    vendor = Listening()
    async with running(of(tmp_path, vendor)) as agent:
        vendor.tell(attrs.evolve(XID, subject=None, code="fabric-down"))
        vendor.tell(XID)
        await until(lambda: set(health_of(agent).values()) == {"UNHEALTHY"})
        await until(lambda: len(heard(agent)) == 2)
        await clear(tmp_path, "listening")
        after = health_of(agent)

    assert after == {"listening/a": "UNHEALTHY", "listening/b": "HEALTHY"}


async def test_what_no_device_is_called_any_more_can_be_cleared(tmp_path: Path) -> None:
    vendor = Listening()
    async with running(of(tmp_path, vendor)) as agent:
        vendor.tell(attrs.evolve(XID, subject="gone"))
        await until(lambda: heard(agent))
        await clear(tmp_path, "listening/gone")

        assert heard(agent) == {}


@pytest.mark.parametrize(
    "subject,code,text",
    [
        ("listening/aa", None, "nothing is called listening/aa here, did you mean 'listening/a'?"),
        ("x" * 9, None, "nothing is called xxxxxxxxx here"),
        ("a", "xid-1", "nothing of a has the code xid-1: there is xid-79"),
        ("b", "xid-79", "nothing of b has the code xid-79: there is nothing to clear"),
    ],
)
async def test_what_is_not_known_cannot_be_cleared(
    tmp_path: Path, subject: str, code: str | None, text: str
) -> None:
    vendor = Listening()
    async with running(of(tmp_path, vendor)) as agent:
        vendor.tell(XID)
        await until(lambda: health_of(agent).get("listening/a") == "UNHEALTHY")
        with pytest.raises(NotKnown) as caught:
            await clear(tmp_path, subject, code)

        assert str(caught.value) == text
        assert heard(agent) == {"xid-79": 1}


@pytest.mark.parametrize("body", [b"", b"[", b"[]", b'{"subject": 7}', b'{"who": "a"}'])
async def test_word_that_cannot_be_read_is_refused(tmp_path: Path, body: bytes) -> None:
    async with running(of(tmp_path, Ill())) as agent:
        await until(lambda: health_of(agent) == HELD)
        with pytest.raises(TransportError, match=r'answers 400: post {"subject": DEVICE'):
            await post(tmp_path, body)
