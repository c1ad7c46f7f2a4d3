# ruff: noqa: ARG002 - toys need little of what they are told
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import attrs
import pytest

from accelkit.agent import loops
from accelkit.agent.agent import Agent
from accelkit.core.errors import SourceError
from accelkit.core.host import Host
from accelkit.core.model import Condition, Device, Event, Evidence, Holder, Holding
from accelkit.core.policy import HealthPolicy, Policy, Seconds
from accelkit.core.values import HolderKind
from accelkit.core.vendor import Signals, SupportsHolders
from tests.agent.toys import (
    Listening,
    Toy,
    Watching,
    codes_of,
    device,
    health_of,
    parts,
    policy,
    running,
    until,
    view_of,
)


def slow(tmp_path: Path) -> Policy:
    """A policy under which only signals wake anybody."""
    wanted = policy(tmp_path)
    return attrs.evolve(wanted, read=type(wanted.read)())


async def test_event_is_written_down_and_makes_its_device_unhealthy(tmp_path: Path) -> None:
    vendor = Listening()
    async with running(parts(tmp_path, vendor, wanted=slow(tmp_path))) as agent:
        await until(lambda: health_of(agent).get("listening/a") == "HEALTHY")
        vendor.tell(Event(subject="a", code="xid-79", source="library"))
        await until(lambda: health_of(agent)["listening/a"] == "UNHEALTHY")

        assert health_of(agent)["listening/b"] == "HEALTHY"
        assert [e.code for e in agent._knowledge.heard.evidence] == ["xid-79"]


async def test_events_of_a_storm_are_looked_at_together(tmp_path: Path) -> None:
    """Seen: one look for each of a thousand events a second, and nothing left of a processor."""

    class Storming(Listening):
        looks = 0

        def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
            return [Event(subject="a", code="xid-79", source="library")]

        def conditions(
            self, host: Host, device: Device, evidence: tuple[Evidence, ...]
        ) -> Iterable[Condition]:
            self.looks += 1
            return super().conditions(host, device, evidence)

    vendor = Storming()
    vendor.names = ("a",)
    async with running(parts(tmp_path, vendor, wanted=slow(tmp_path))) as agent:
        await until(lambda: sum(e.count for e in agent._knowledge.heard.evidence) > 200)
        await until(lambda: health_of(agent).get("listening/a") == "UNHEALTHY")

        heard = sum(e.count for e in agent._knowledge.heard.evidence)
        assert vendor.looks * 10 < heard


async def test_listening_that_fails_is_a_problem_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "LISTEN_PAUSES_S", (0.01, 0.02))
    vendor = Listening()
    async with running(parts(tmp_path, vendor)) as agent:
        await until(lambda: "listening/a" in health_of(agent))
        vendor.tell(SourceError("session lost"))
        await until(lambda: "source-failed" in codes_of(agent))
        vendor.tell(Event(subject="b", code="xid-79", source="library"))
        await until(lambda: health_of(agent)["listening/b"] == "UNHEALTHY")
        await until(lambda: codes_of(agent) == set())


async def test_devices_of_a_vendor_that_is_not_heard_are_unknown_and_overdue_after_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was heard before stays; others of the same vendor are UNKNOWN, never UNHEALTHY."""
    monkeypatch.setattr(loops, "LISTEN_PAUSES_S", (0.01, 0.02))

    class Deaf(Listening):
        deaf = False

        def listen(self, host: Host, timeout_s: float) -> Iterable[Event]:
            if self.deaf:
                raise SourceError("the session is lost")
            return super().listen(host, timeout_s)

    vendor = Deaf()
    wanted = attrs.evolve(policy(tmp_path), health=HealthPolicy(grace_for_unknown=Seconds(0.1)))
    async with running(parts(tmp_path, vendor, wanted=wanted)) as agent:
        vendor.tell(Event(subject="a", code="xid-79", source="library"))
        await until(lambda: health_of(agent).get("listening/a") == "UNHEALTHY")
        vendor.deaf = True
        b = device("listening", "b")
        await until(lambda: view_of(agent).verdicts[b].overdue)

        assert health_of(agent) == {"listening/a": "UNHEALTHY", "listening/b": "UNKNOWN"}
        assert codes_of(agent) == {"source-failed"}

        vendor.deaf = False
        await until(lambda: health_of(agent)["listening/b"] == "HEALTHY")
        assert codes_of(agent) == set()


async def test_rubbish_that_listening_brings_is_a_problem_of_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "LISTEN_PAUSES_S", (5.0, 5.0))

    class Babbling(Listening):
        def listen(self, host: Host, timeout_s: float) -> list[Event]:
            return [7]  # type: ignore[list-item]  # that is the point

    async with running(parts(tmp_path, Babbling())) as agent:
        await until(lambda: "plugin-contract" in codes_of(agent))

        assert "UNHEALTHY" not in health_of(agent).values()


async def test_files_that_come_and_go_wake_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "FILES_S", 0.01)
    monkeypatch.setattr(loops, "SPACING_S", 0.0)
    files = tmp_path / "host" / "dev"
    files.mkdir(parents=True)
    async with running(parts(tmp_path, Watching(), wanted=slow(tmp_path))) as agent:
        await until(lambda: not _unheard(agent))
        (files / "toy0").touch()
        await until(lambda: health_of(agent).keys() == {"watching/toy0"})
        (files / "toy0").rename(files / "toy1")
        await until(lambda: health_of(agent).keys() == {"watching/toy1"})


async def test_file_whose_content_changes_wakes_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "FILES_S", 0.01)
    monkeypatch.setattr(loops, "SPACING_S", 0.0)
    files = tmp_path / "host" / "dev"
    files.mkdir(parents=True)
    (files / "toy0").touch()
    vendor = Watching()
    async with running(parts(tmp_path, vendor, wanted=slow(tmp_path))) as agent:
        await until(lambda: not _unheard(agent))
        before = vendor.discovers
        content = count()

        def written() -> bool:
            # Again and again: it may be written before it is looked at for the first time.
            (files / "toy0").write_text(str(next(content)))
            return vendor.discovers > before

        await until(written)


def _unheard(agent: Agent) -> list[str]:
    return [name for name, source in agent._knowledge.sources.items() if source.report is None]


async def test_vendor_without_signals_is_not_watched(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy())) as agent:
        await until(lambda: not _unheard(agent))

        assert agent._knowledge.sources["toy"]._files._thread is None


class Holders(Toy, SupportsHolders):
    """Knows a process that uses a device."""

    name = "holders"
    domain = "holders.example.com"
    answer: tuple[object, ...] = (
        Holding(
            device=device("holders", "a"),
            through="process",
            holder=Holder(kind=HolderKind.FOREIGN, uid="17"),
        ),
    )

    def holders(self, host: Host, devices: tuple[Device, ...]) -> list[Holding]:
        return list(self.answer)  # type: ignore[arg-type]  # rubbish in one test


async def test_processes_that_a_vendor_sees_are_holders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "HOLDERS_S", 0.01)
    monkeypatch.setattr(loops, "FILES_S", 0.01)
    async with running(parts(tmp_path, Holders())) as agent:
        await until(lambda: view_of(agent).held == {device("holders", "a")})


async def test_holders_that_are_rubbish_are_a_problem_of_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "HOLDERS_S", 0.01)
    monkeypatch.setattr(loops, "FILES_S", 0.01)
    vendor = Holders()
    vendor.answer = (7,)
    async with running(parts(tmp_path, vendor)) as agent:
        await until(lambda: "plugin-contract" in codes_of(agent))
        vendor.answer = ()
        await until(lambda: codes_of(agent) == set())


async def test_device_that_is_held_stays_as_lost_when_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "HOLDERS_S", 0.01)
    monkeypatch.setattr(loops, "FILES_S", 0.01)
    vendor = Holders()
    async with running(parts(tmp_path, vendor)) as agent:
        await until(lambda: view_of(agent).held)
        vendor.names = ()
        await until(lambda: health_of(agent) == {"holders/a": "UNHEALTHY"})
        vendor.answer = ()
        await until(lambda: health_of(agent) == {})


async def test_signals_that_cannot_be_told_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "FILES_S", 0.01)

    class Broken(Toy):
        @property
        def signals(self) -> Signals:  # type: ignore[override]  # the contract allows a property
            raise ValueError("bug")

    async with running(parts(tmp_path, Broken())) as agent:
        await until(lambda: "plugin-bug" in codes_of(agent))
        await until(lambda: "toy/a" in health_of(agent))
