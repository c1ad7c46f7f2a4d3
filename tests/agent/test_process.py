"""An agent in a process of its own, with real signals."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.agent.remotes import PATIENCE_S
from tests.agent.toys import BOOT, get, get_json
from tests.processes import ROOT, running

pytestmark = pytest.mark.slow  # its processes and pauses take seconds


def started(
    tmp_path: Path, *vendors: str
) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    """An agent process."""
    return running(sys.executable, "-m", "tests.agent.process", str(tmp_path), *vendors)


def written(tmp_path: Path, offer: str = "one") -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(
        f"paths: {{run: {tmp_path / 'run'}, cdi: {tmp_path / 'cdi'}}}\n"
        "http: {listen: ''}\n"
        "read: {inventory: 100ms}\n"
        f"offers: [{{name: {offer}}}]\n"
    )
    return file


async def answered(tmp_path: Path, path: str, fits: Callable[[str], bool]) -> str:
    """The body of *path* on the agent's socket, once it *fits*."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                status, body = await get(tmp_path / "run" / "agent.sock", path)
            except (OSError, IndexError):  # not there yet, or cut off
                status, body = 0, ""
            if status == 200 and fits(body):
                return body
            await asyncio.sleep(0.02)


async def ready(tmp_path: Path) -> None:
    await answered(tmp_path, "/readyz", lambda body: body == "ok\n")


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, list[dict[str, object]]]:
    """Exit code and log lines."""
    async with asyncio.timeout(PATIENCE_S):
        _, log = await process.communicate()
    return process.returncode, [json.loads(line) for line in log.decode().splitlines()]


async def test_sigterm_ends_the_agent_cleanly(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy") as process:
        await ready(tmp_path)
        process.send_signal(signal.SIGTERM)
        code, log = await ended(process)

    assert code == 0
    assert {path.name for path in (tmp_path / "run").iterdir()} == {BOOT, "leader.lock"}
    events = [line["event"] for line in log]
    assert events[-1] == "agent ended"
    assert "agent started" in events


async def test_hanging_vendor_does_not_hold_the_process(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy", "hanging") as process:
        await answered(tmp_path, "/documents/kubelet", lambda body: "toy/a:HEALTHY" in body)
        process.send_signal(signal.SIGTERM)
        code, _ = await ended(process)

    assert code == 0


async def test_killed_agent_is_succeeded_by_a_new_one(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy") as first:
        await ready(tmp_path)
        first.kill()
        await ended(first)
        assert (tmp_path / "run" / "agent.sock").exists()
        async with started(tmp_path, "toy"):
            await ready(tmp_path)
            document = await get_json(tmp_path / "run" / "agent.sock", "/documents/kubelet")

    assert document == ["toy/a:HEALTHY", "toy/b:HEALTHY"]


async def test_second_process_takes_over_when_the_first_is_told_to_end(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy") as first:
        await ready(tmp_path)
        async with started(tmp_path, "toy") as second:
            first.send_signal(signal.SIGTERM)
            code, _ = await ended(first)
            await ready(tmp_path)
            second.send_signal(signal.SIGTERM)
            second_code, log = await ended(second)

    assert (code, second_code) == (0, 0)
    assert "leading" in [line["event"] for line in log]


async def test_sighup_reads_the_policy_and_sigusr1_tells_what_runs(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy") as process:
        await ready(tmp_path)
        written(tmp_path, "two")
        process.send_signal(signal.SIGHUP)
        await answered(tmp_path, "/view", lambda body: '"name": "two"' in body)
        process.send_signal(signal.SIGUSR1)
        process.send_signal(signal.SIGTERM)
        code, log = await ended(process)

    events = [line["event"] for line in log]
    assert code == 0
    assert {"policy read", "task", "lanes", "view"} <= set(events)


async def test_agent_does_without_anywhere_to_write_to(tmp_path: Path) -> None:
    """Seen: the exit code was 1, and a line that could not be written ended the agent."""
    written(tmp_path)
    command = f"exec {sys.executable} -m tests.agent.process {tmp_path} toy >&- 2>&-"
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", command, cwd=ROOT)

    await ready(tmp_path)
    process.send_signal(signal.SIGTERM)

    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == 0


async def test_broken_loop_ends_the_process_with_70(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy", "--break") as process:
        code, log = await ended(process)

    assert code == 70
    broken = next(line for line in log if line["event"] == "the loop broke")
    assert "ZeroDivisionError" in str(broken["traceback"])


async def test_loop_of_ours_that_goes_on_does_not_hold_the_process(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy", "--stubborn") as process:
        assert process.stderr is not None
        while b"agent started" not in await process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        code, log = await ended(process)

    assert code == 70
    late = next(n for n, line in enumerate(log) if line["event"] == "the agent did not end in time")
    assert any("read_holdings" in str(line["what"]) for line in log[late + 1 :] if "what" in line)


async def test_backend_that_goes_on_does_not_hold_the_process(tmp_path: Path) -> None:
    written(tmp_path)
    async with started(tmp_path, "toy", "--stay") as process:
        await ready(tmp_path)
        process.send_signal(signal.SIGTERM)
        code, log = await ended(process)

    assert code == 0
    assert [line["event"] for line in log][-2:] == ["backend did not end", "agent ended"]


async def test_loop_that_hangs_at_the_end_ends_and_says_where(tmp_path: Path) -> None:
    """Seen once: nothing more was said after the backends were told to end."""
    written(tmp_path)
    async with started(tmp_path, "toy", "--block") as process:
        await ready(tmp_path)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            _, said = await process.communicate()

    assert process.returncode == 1
    assert b"agent ended" not in said
    assert b"(most recent call first):" in said
    assert b"in serve" in said
