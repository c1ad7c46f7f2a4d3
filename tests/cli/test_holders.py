"""Who holds what, as people and scripts ask before they touch a node."""

import asyncio
import json
import os
import re
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from accelkit.agent.http import HttpServer, Response
from accelkit.cli.agent_socket import ask
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.errors import TransportError
from accelkit.testing.simulate import set_state
from tests.cli.claims import UID, claim, stuck, write_down
from tests.cli.conftest import Run
from tests.processes import running

PATIENCE_S = 15.0
RUN = "from accelkit.cli.main import main; raise SystemExit(main())"

Policy = Callable[[str], Path]


@pytest.fixture
def file(tmp_path: Path, policy: Policy) -> Path:
    """A policy of a node whose agent, if any, runs below *tmp_path*."""
    return policy(
        f"paths: {{host: {tmp_path / 'basic'}, run: {tmp_path / 'run'}, "
        f"kubelet: {tmp_path / 'kubelet'}}}\n"
        "http: {listen: ''}\nvendors: [{name: sim}]\n"
        "offers: [{name: all, through: dra}]\n"
    )


@pytest.mark.usefixtures("basic")
def test_node_that_nobody_uses_is_free(run: Run, file: Path) -> None:
    answer = run("holders", "--policy", file)

    assert (answer.code, answer.out) == (0, "nobody holds a device\n")


def test_processes_and_claims_that_were_written_down_are_holders(
    run: Run, basic: Path, file: Path, tmp_path: Path
) -> None:
    set_state(str(basic), ["hold", "accel-0", "4711"])
    share = "33333333-3333-3333-3333-333333333333"
    write_down(
        tmp_path / "run",
        basic,
        stuck(claim("sim/s00-0000", "c1")),
        claim("sim/s00-0001", "c2", share=share),
    )

    answer = run("holders", "--policy", file)

    assert answer.code == 1
    rows = [re.split(r" {2,}", line) for line in answer.lines]
    assert rows[0] == ["DEVICE", "SHARE", "POD", "CONTAINER", "CLAIM", "THROUGH", "SINCE"]
    assert sorted(row[:6] for row in rows[1:]) == [
        ["sim/s00-0000", "-", "-", "-", "default/c1 (stuck)", "dra"],
        ["sim/s00-0000", "-", "process 4711", "-", "-", "process"],
        ["sim/s00-0001", "33333333", "-", "-", "default/c2", "dra"],
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", rows[-1][6])


def test_claim_that_cannot_be_read_is_a_holder_without_a_name(
    run: Run, basic: Path, file: Path, tmp_path: Path
) -> None:
    where = write_down(tmp_path / "run", basic)
    (where / "quarantine" / f"{UID}.0.json").write_text('{"device": "sim/s00-0000"')

    answer = run("holders", "--policy", file)

    assert answer.code == 1
    assert answer.lines[1].split() == ["sim/s00-0000", "-", "-", "-", UID, "dra", "-"]


def test_holders_as_yaml_say_since_when(run: Run, basic: Path, file: Path, tmp_path: Path) -> None:
    write_down(tmp_path / "run", basic, claim("sim/s00-0001"))

    tree = yaml.safe_load(run("holders", "--policy", file, "-o", "yaml").out)

    (item,) = tree["items"]
    assert tree["kind"] == "HolderList"
    assert item.pop("since")
    assert item == {
        "device": "sim/s00-0001",
        "namespace": "default",
        "claim": "c1",
        "state": "ready",
        "through": "dra",
    }


def test_who_is_not_gone_in_time_keeps_the_gate_shut(run: Run, basic: Path) -> None:
    set_state(str(basic), ["hold", "accel-0", "4711"])

    answer = run("holders", "--host", basic, "--wait", "20ms")

    assert answer.code == 1
    assert answer.err == "waiting for 1 holder\n"


def test_gate_opens_as_soon_as_the_last_is_gone(run: Run, basic: Path) -> None:
    set_state(str(basic), ["hold", "accel-0", "4711"])
    freeing = threading.Timer(0.5, set_state, (str(basic), ["free", "accel-0"]))
    freeing.start()

    answer = run("holders", "--host", basic, "--wait", "1h")

    freeing.join()
    assert (answer.code, answer.out) == (0, "nobody holds a device\n")


def test_time_to_wait_that_is_none_is_bad_input(run: Run, basic: Path) -> None:
    answer = run("holders", "--host", basic, "--wait", "soon")

    assert answer.code == 2
    assert "expected a duration such as 30s" in answer.err


def test_kubelet_that_does_not_say_who_holds_what_keeps_the_gate_shut(
    run: Run, tmp_path: Path, policy: Policy
) -> None:
    """A node without its kubelet's socket may still run pods."""
    (tmp_path / "root").mkdir()
    (tmp_path / "kubelet").mkdir()
    file = policy(f"paths: {{host: {tmp_path / 'root'}, kubelet: {tmp_path / 'kubelet'}}}")

    answer = run("holders", "--policy", file)

    assert answer.code == 3
    assert "it cannot be known who holds devices: there is no agent" in answer.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_claims_that_may_not_be_read_keep_the_gate_shut(
    run: Run, basic: Path, file: Path, tmp_path: Path
) -> None:
    where = write_down(tmp_path / "run", basic, claim("sim/s00-0001"))
    (where / "claims").chmod(0)

    answer = run("holders", "--policy", file)

    (where / "claims").chmod(0o700)
    assert answer.code == 3
    assert "cannot be read: Permission denied" in answer.err


def test_record_of_claims_that_is_no_directory_keeps_the_gate_shut(
    run: Run, basic: Path, file: Path, tmp_path: Path
) -> None:
    where = write_down(tmp_path / "run", basic)
    (where / "claims" / ".kept").unlink()
    (where / "claims").rmdir()
    (where / "claims").write_text("")

    answer = run("holders", "--policy", file)

    assert answer.code == 3
    assert "it cannot be known who holds devices: " in answer.err


@asynccontextmanager
async def agent(tmp_path: Path, file: Path) -> AsyncIterator[None]:
    """The real one, as a process; it answers."""
    words = (sys.executable, "-c", RUN, "agent", "--node", "n1", "--policy", str(file))
    async with running(*words), asyncio.timeout(PATIENCE_S):
        while True:
            try:
                held = json.loads(ask(str(tmp_path / "run"), "/view"))["holdings"]
                problems = ask(str(tmp_path / "run"), "/problems")
            except TransportError:
                held, problems = [], b""
            if len(held) == 2 and b"holders-unknown" not in problems:
                break
            await asyncio.sleep(0.02)
        yield


@pytest.mark.slow
async def test_running_agent_is_asked_what_it_knows(
    run: Run, basic: Path, file: Path, tmp_path: Path
) -> None:
    write_down(tmp_path / "run", basic, claim("sim/s00-0001"))
    set_state(str(basic), ["hold", "accel-0", "4711"])

    alone = await asyncio.to_thread(run, "holders", "--policy", file)
    async with KubeletSim(tmp_path / "kubelet"), agent(tmp_path, file):
        answer = await asyncio.to_thread(run, "holders", "--policy", file)

    assert answer.code == 1
    assert " default/c1 " in answer.lines[2]
    assert answer.lines == alone.lines


@pytest.mark.parametrize("status", [404, 503])
async def test_agent_that_refuses_to_answer_is_no_free_node(
    run: Run, file: Path, tmp_path: Path, status: int
) -> None:
    server = HttpServer(lambda path: Response.of(status, f"{path}: not\nnow"))
    (tmp_path / "run").mkdir()
    await server.listen_unix(tmp_path / "run" / "agent.sock")

    answer = await asyncio.to_thread(run, "holders", "--policy", file)

    await server.close()
    assert answer.code == 3
    assert f"agent.sock answers {status}: /livez: not now" in answer.err


async def test_agent_that_knows_not_who_holds_what_is_no_free_node(
    run: Run, file: Path, tmp_path: Path
) -> None:
    said = {
        "/livez": "ok",
        "/view": "{}",
        "/ledger": "[]",
        "/problems": '[{"code": "holders-unknown", "reason": "the kubelet is silent"}]',
    }
    server = HttpServer(lambda path: Response.of(200, said[path]))
    (tmp_path / "run").mkdir()
    await server.listen_unix(tmp_path / "run" / "agent.sock")

    answer = await asyncio.to_thread(run, "holders", "--policy", file)

    await server.close()
    assert answer.code == 3
    assert "it cannot be known who holds devices: the kubelet is silent" in answer.err


@pytest.mark.usefixtures("basic")
async def test_socket_that_a_killed_agent_left_is_no_agent(
    run: Run, file: Path, tmp_path: Path
) -> None:
    server = HttpServer(lambda _path: None)
    (tmp_path / "run").mkdir()
    await server.listen_unix(tmp_path / "run" / "agent.sock")
    (tmp_path / "run" / "agent.sock").rename(tmp_path / "run" / "kept")
    await server.close()
    (tmp_path / "run" / "kept").rename(tmp_path / "run" / "agent.sock")

    answer = await asyncio.to_thread(run, "holders", "--policy", file)

    assert (answer.code, answer.out) == (0, "nobody holds a device\n")


def test_agent_that_hangs_is_said_to(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "agent.sock"))
        silent.listen()

        with pytest.raises(TransportError, match="does not answer: timed out"):
            ask(str(tmp_path), "/view", within_s=0.01)
