"""`accelkit health`: what an operator reads of faults, and says of them."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from accelkit.agent.agent import Agent
from accelkit.core.model import Event
from tests.agent.toys import Listening, health_of, parts, running, until
from tests.cli.conftest import Answer, Run

XID = Event(subject="a", code="xid-79", source="library")
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
UNHEALTHY = {"listening/a": "UNHEALTHY", "listening/b": "HEALTHY"}


@pytest.fixture
def file(tmp_path: Path, policy: Callable[[str], Path]) -> Path:
    """A policy of the node whose agent, if any, runs below *tmp_path*."""
    return policy(f"paths: {{run: {tmp_path / 'run'}}}\n")


@asynccontextmanager
async def ill(tmp_path: Path) -> AsyncIterator[Agent]:
    """An agent one of whose two devices is ill."""
    vendor = Listening()
    async with running(parts(tmp_path, vendor)) as agent:
        vendor.tell(XID)
        vendor.tell(XID)
        await until(lambda: health_of(agent) == UNHEALTHY)
        await until(lambda: agent._knowledge.heard.evidence[0].count == 2)
        yield agent


async def asked(run: Run, *words: object) -> Answer:
    return await asyncio.to_thread(run, "health", *words)


def cells(answer: Answer) -> list[list[str]]:
    return [re.split(r" {2,}", line) for line in answer.lines]


async def test_each_device_is_told_with_its_reasons_and_what_was_heard_of_it(
    run: Run, tmp_path: Path, file: Path
) -> None:
    async with ill(tmp_path):
        answer = await asked(run, "--policy", file)

    assert answer.code == 1
    head, a, b = cells(answer)
    assert head == ["DEVICE", "STATE", "REASON", "SINCE", "HELD UNTIL", "EVIDENCE"]
    assert a[:3] == ["listening/a", "UNHEALTHY", "xid-79"]
    assert re.fullmatch(MOMENT, a[3])
    assert a[4] == "-"
    assert re.fullmatch(rf"xid-79 by {XID.source}: 2 times, last {MOMENT}", a[5])
    assert (b[:3], b[4:]) == (["listening/b", "HEALTHY", "-"], ["-", "-"])


async def test_programs_read_all_of_it(run: Run, tmp_path: Path, file: Path) -> None:
    async with ill(tmp_path):
        as_json = json.loads((await asked(run, "--policy", file, "-o", "json")).out)
        as_yaml = yaml.safe_load((await asked(run, "--policy", file, "-o", "yaml")).out)

    assert as_yaml == as_json
    assert (as_json["kind"], as_json["others"]) == ("HealthList", [])
    a, _ = as_json["items"]
    assert a["device"] == "listening/a"
    assert a["verdict"].keys() == {"health", "reasons", "overdue", "since"}
    assert [(e["code"], e["count"]) for e in a["evidence"]] == [("xid-79", 2)]


async def test_what_is_held_down_is_told_with_its_end(run: Run, tmp_path: Path, file: Path) -> None:
    async with ill(tmp_path) as agent:
        agent._knowledge.heard.clear(agent._knowledge.heard.evidence)
        agent._knowledge.sources["listening"].health.ring()
        verdicts = agent._knowledge.store
        await until(lambda: any(v.until for v in verdicts.view.verdicts.values()))
        answer = await asked(run, "--policy", file)

    _, a, _ = cells(answer)
    assert a[2] == "recovering: xid-79: gone, but not yet for 1m"
    assert re.fullmatch(MOMENT, a[4])


async def test_what_was_heard_of_no_device_is_told_too(
    run: Run, tmp_path: Path, file: Path
) -> None:
    vendor = Listening()
    async with running(parts(tmp_path, vendor)) as agent:
        vendor.tell(Event(subject="gone", code="link", source="library"))
        vendor.tell(Event(subject=None, code="fabric", source="library"))
        await until(lambda: len(agent._knowledge.heard.evidence) == 2)
        await until(lambda: set(health_of(agent).values()) == {"UNHEALTHY"})
        answer = await asked(run, "--policy", file)

    others = [row for row in cells(answer) if row[0] in {"listening", "listening/gone"}]
    assert [(row[0], row[5].split(":")[0]) for row in others] == [
        ("listening", "fabric by library"),
        ("listening/gone", "link by library"),
    ]


async def test_operator_clears_a_fault(run: Run, tmp_path: Path, file: Path) -> None:
    async with ill(tmp_path):
        answer = await asked(run, "clear", "a", "xid-79", "--policy", file)
        again = await asked(run, "clear", "a", "--policy", file)

    assert answer.code == 0
    assert answer.lines[0] == "forgotten: xid-79 of listening/a, heard 2 times"
    assert cells(answer)[2][:2] == ["listening/a", "HEALTHY"]
    assert again.lines[0] == "nothing was heard of it that could be forgotten"


async def test_programs_clear_faults_too(run: Run, tmp_path: Path, file: Path) -> None:
    async with ill(tmp_path):
        answer = await asked(run, "clear", "listening/a", "--policy", file, "-o", "json")

    tree = json.loads(answer.out)
    assert [(i["device"], i["verdict"]["health"]) for i in tree["items"]] == [
        ("listening/a", "HEALTHY")
    ]


async def test_what_is_not_known_is_told_with_what_is(run: Run, tmp_path: Path, file: Path) -> None:
    async with ill(tmp_path):
        device = await asked(run, "clear", "listening/aa", "--policy", file)
        code = await asked(run, "clear", "a", "xid-7", "--policy", file)

    assert (device.code, code.code) == (1, 1)
    assert device.err == (
        "error: nothing is called listening/aa here, did you mean 'listening/a'?\n"
        "remedy: see: accelkit health\n"
    )
    assert "nothing of a has the code xid-7: there is xid-79" in code.err


@pytest.mark.parametrize("words", [[], ["clear", "a"]])
def test_without_an_agent_nothing_is_known(run: Run, file: Path, words: list[str]) -> None:
    answer = run("health", *words, "--policy", file)

    assert answer.code == 3
    assert "no agent answers at" in answer.err
    assert "remedy: start accelkit agent" in answer.err


async def test_agent_without_devices_says_so(run: Run, tmp_path: Path, file: Path) -> None:
    async with running(parts(tmp_path)) as agent:
        await until(lambda: agent._listening._local.in_place)
        answer = await asked(run, "--policy", file)

    assert (answer.code, answer.out) == (0, "the agent knows no devices\n")
