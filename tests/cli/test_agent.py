"""The agent's command as a process: real plugins, a simulated machine and kubelet."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from accelkit.cli.agent import _parser, compose
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.errors import ConfigError
from accelkit.testing.simulate import simulate
from tests.processes import running

PATIENCE_S = 15.0
RUN = "from accelkit.cli.main import main; raise SystemExit(main())"
RESOURCE = "sim.accelkit.dev/accel"


def written(tmp_path: Path, rest: str = "") -> Path:
    """A policy below *tmp_path* for the simulated vendor alone."""
    file = tmp_path / "policy.yaml"
    file.write_text(
        f"paths: {{run: {tmp_path / 'run'}, kubelet: {tmp_path / 'kubelet'}}}\n"
        "http: {listen: ''}\n"
        "vendors: [{name: sim}]\n"
        f"{rest}\n"
    )
    return file


def machine(tmp_path: Path) -> str:
    simulate("sim", None, 2, str(tmp_path / "machine"))
    return str(tmp_path / "machine")


def agent(tmp_path: Path) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    return running(
        *(sys.executable, "-c", RUN, "agent", "--node", "n1"),
        *("--policy", str(tmp_path / "policy.yaml"), "--host", str(tmp_path / "machine")),
    )


async def test_agent_lists_a_machine_to_the_kubelet_and_takes_it_back_at_the_end(
    tmp_path: Path,
) -> None:
    written(tmp_path)
    machine(tmp_path)
    async with KubeletSim(tmp_path / "kubelet") as kubelet:
        async with agent(tmp_path) as process:
            await kubelet.wait_for(lambda: kubelet.amounts().get(RESOURCE) == (2, 2), PATIENCE_S)
            pod = await kubelet.admit("p", {RESOURCE: 1})
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                _, log = await process.communicate()
        await kubelet.wait_for(lambda: kubelet.amounts().get(RESOURCE) == (2, 0), PATIENCE_S)

    assert process.returncode == 0
    assert pod.container("main").running
    events = [json.loads(line)["event"] for line in log.decode().splitlines()]
    assert events[-1] == "agent ended"


@pytest.mark.slow
async def test_agent_that_was_killed_lists_again_when_it_is_started_again(tmp_path: Path) -> None:
    written(tmp_path)
    machine(tmp_path)
    async with KubeletSim(tmp_path / "kubelet") as kubelet:
        async with agent(tmp_path) as first:
            await kubelet.wait_for(lambda: kubelet.amounts().get(RESOURCE) == (2, 2), PATIENCE_S)
            first.kill()
            await kubelet.wait_for(lambda: kubelet.amounts().get(RESOURCE) == (2, 0), PATIENCE_S)
        async with agent(tmp_path):
            await kubelet.wait_for(lambda: kubelet.amounts().get(RESOURCE) == (2, 2), PATIENCE_S)


@pytest.mark.parametrize(
    "rest, paths",
    [
        (
            "offers: [{name: a, through: nowhere}]\nread: {health: 0s}",
            {"$.offers[0].through", "$.read.health"},
        ),
        ("offers: [{name: a}, {name: a}]", {"$.offers[1]"}),
    ],
)
def test_policy_that_is_wrong_ends_with_2_and_starts_nothing(
    tmp_path: Path, rest: str, paths: set[str]
) -> None:
    file = written(tmp_path, rest)

    done = subprocess.run(
        [sys.executable, "-c", RUN, "agent", "--policy", str(file), "--node", "n1"],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        text=True,
    )

    assert done.returncode == 2
    assert {line.split(": ")[0] for line in done.stderr.splitlines()} == paths
    assert not (tmp_path / "run").exists()


def test_vendor_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace("name: sim", "name: simm"))

    with pytest.raises(ConfigError, match=r"\$\.vendors\[0\]\.name: .*did you mean 'sim'"):
        compose(file, "n1", machine(tmp_path))


def test_host_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a directory"):
        compose(written(tmp_path), "n1", str(tmp_path / "nothing"))


def test_host_that_is_asked_for_is_the_host_of_the_policy_read_first_and_again(
    tmp_path: Path,
) -> None:
    file, asked_for = written(tmp_path), machine(tmp_path)
    file.write_text(file.read_text().replace("paths: {", "paths: {host: /elsewhere, "))

    parts = compose(file, "n1", asked_for)

    assert parts.read_policy is not None
    assert [p.paths.host for p in (parts.policy, parts.read_policy())] == [asked_for, asked_for]


@pytest.mark.parametrize("flags, grace", [([], 30.0), (["--grace", "90"], 90.0)])
def test_time_to_end_is_that_of_the_pod(flags: list[str], grace: float) -> None:
    assert _parser().parse_args(flags).grace == grace


def test_way_to_the_api_server_is_there_and_not_gone(tmp_path: Path) -> None:
    """Nothing of it is loaded before somebody needs it."""
    file = written(tmp_path, "kube: {config: none}")
    parts = compose(file, "n1", machine(tmp_path))

    assert parts.connect is not None
    assert parts.connect(lambda _verb, _resource, _code: None) is None


def test_vendors_without_hardware_are_not_made(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace("vendors:", "only: {}\n#"))

    parts = compose(file, "n1", machine(tmp_path))

    assert "nvidia" not in {vendor.name for vendor in parts.vendors}
    assert "sim" in {vendor.name for vendor in parts.vendors}


def test_disabled_vendor_is_not_made(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace("name: sim", "name: sim, enabled: false"))

    assert compose(file, "n1", machine(tmp_path)).vendors == ()


def test_policy_is_read_again_with_the_same_strictness(tmp_path: Path) -> None:
    parts = compose(written(tmp_path), "n1", machine(tmp_path))
    assert parts.read_policy is not None
    assert parts.read_policy() == parts.policy
    written(tmp_path, "offers: [{name: a, through: nowhere}]")

    with pytest.raises(ConfigError, match="nowhere"):
        parts.read_policy()


def loaded(program: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after *program*."""
    tell = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{tell}"],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
        text=True,
    )
    return set(done.stdout.splitlines()[-1].split())


HEAVY = {"grpc", "google", "yaml", "cattrs", "pluggy", "click", "rich", "pynvml", "asyncio"}


def test_importing_accelkit_loads_nothing_heavy() -> None:
    assert loaded("import accelkit") & HEAVY == set()


@pytest.mark.slow
def test_agent_that_serves_loads_nothing_of_the_human_command_line(tmp_path: Path) -> None:
    program = f"""
import asyncio
from pathlib import Path
import accelkit.cli.main
from accelkit.cli.agent import _parser, compose
from accelkit.agent.agent import Agent

async def serve():
    agent = Agent(compose(Path({str(written(tmp_path))!r}), "n1", {machine(tmp_path)!r}))
    running = asyncio.create_task(agent.run())
    while not agent._knowledge.store.view.edits:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    agent.stop()
    await running

asyncio.run(serve())
"""
    human = {"click", "rich", "kubernetes", "pydantic", "requests", "prometheus_client", "pynvml"}

    assert loaded(program) & human == set()


EARLY = """
import os, signal, sys
class Early:
    def find_spec(self, name, path=None, target=None):
        if name == "accelkit.cli.agent":
            os.kill(os.getpid(), signal.SIG%s)
sys.meta_path.insert(0, Early())
"""


@pytest.mark.parametrize("name", ["HUP", "USR1"])
def test_agent_outlives_a_signal_that_comes_while_it_is_loaded(tmp_path: Path, name: str) -> None:
    """Seen: a reload in the first 0.3 s ended the agent."""
    file = written(tmp_path, "offers: wrong")

    done = subprocess.run(
        [sys.executable, "-c", EARLY % name + RUN, "agent", "--policy", str(file)],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 2


HANGS = """
import time
time.sleep(600)
"""


@pytest.mark.slow
def test_plugin_that_hangs_while_it_is_loaded_is_skipped_after_two_tries(tmp_path: Path) -> None:
    file = written(tmp_path)
    machine(tmp_path)
    (tmp_path / "hangs.py").write_text(HANGS)
    (tmp_path / "hangs-1.dist-info").mkdir()
    (tmp_path / "hangs-1.dist-info" / "METADATA").write_text("Name: hangs\nVersion: 1\n")
    (tmp_path / "hangs-1.dist-info" / "entry_points.txt").write_text("[accelkit]\na = hangs\n")
    quick = (
        "import accelkit.cli.agent as agent\n"
        "agent.LOAD_S = 1.0\n"
        "agent.run = lambda parts: print(parts.load_failures[0].reason)\n"
    )

    def started() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [
                *(sys.executable, "-c", quick + RUN, "agent", "--policy", str(file)),
                *("--host", str(tmp_path / "machine")),
            ],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    first, second, third = started(), started(), started()

    assert (first.returncode, second.returncode, third.returncode) == (1, 1, 0)
    assert 'hangs.py", line 3' in first.stderr
    assert third.stdout == "loading it ended the process 2 times, so it is skipped\n"
