import os
import pty
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from accelkit.cli import play_story
from accelkit.cli.play_acts import GPU, SHARE
from accelkit.cli.play_stage import NotSeen, Stage, stage
from accelkit.cli.play_story import ENDING, STORY, Step, title
from accelkit.cli.play_words import choice, given
from accelkit.cli.showing import lively
from accelkit.conformance.sims.events import Answer
from accelkit.core.errors import ConfigError
from tests.cli.playing import PLAY, SABOTAGE, base, environment, gone, read_until

__all__ = ["base"]

SEEN = (
    r"machine    simulated: 8 H100 with NVSwitch, 2 of the vendor sim",
    r"policy     .*/policy.yaml",
    r"agent      accelkit agent --policy policy.yaml is process \d+",
    r"devices    nvidia: found \d+ ms after the agent's start:",
    r"offer      small: 2 devices of sim, 2 shares each",
    r"registered nvidia.com/gpu, found in plugins_registry",
    r"status     sim.accelkit.dev/accel: allocatable 4",
    r"pod        train asked for 4 nvidia.com/gpu, has them after \d+ ms:",
    r"by links: all are alike",
    r"by PCIe and NUMA nodes: 2 of 70 are best",
    r"it leaves 4 together on NUMA node \d for the next pod",
    r"env NVIDIA_VISIBLE_DEVICES: GPU-",
    r"pod        infer-b asked for 1 sim.accelkit.dev/accel: s00-0009::0",
    r"CDI sim.accelkit.dev/static=s00-0009",
    r"pod        big asked for 5 nvidia.com/gpu and is refused:",
    r"fault      gpu-\w+ of pod train falls off the bus \(XID 79\)",
    r"kubelet    7 of 8 are healthy in the agent's list, \d+ ms after",
    r"status     nvidia.com/gpu: allocatable 8 → 7, \d+ ms after",
    r"agent      says why: gpu-lost, xid-79",
    r"pod        train: allocatedResourcesStatus gpu-\w+ Unhealthy",
    r"pod        train: allocatedResourcesStatus gpu-\w+ Healthy",
    r"fault      kill -9 \d+: allocatable 0 of everything",
    r"agent      process \d+: all allocatable \d+ ms after its start",
    r"pod        train, infer-a, infer-b: run on, 0 restarts",
    r"agent      asked the kubelet: 6 are held, as before",
    r"agent      SIGTERM: ended with 0 after \d+ ms",
    r"play       all 9 steps were seen",
)
pytestmark = pytest.mark.timeout(240)


@pytest.mark.slow
def test_whole_story_is_told_in_plain_lines_and_nothing_is_left(base: Path) -> None:
    done = subprocess.run(
        [*PLAY, "--once"], env=environment(base), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    assert [line for line in SEEN if not re.search(line, done.stdout)] == []
    assert "\x1b" not in done.stdout
    assert gone(done.stdout)


@pytest.mark.slow
def test_agent_that_cannot_start_is_not_seen_and_says_why(base: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SABOTAGE)

    done = subprocess.run(
        PLAY,
        env=environment(base, PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert f"play       not seen: {title(STORY[1])}\n" in done.stdout
    assert "each in its offer: the agent ended with 1\n" in done.stdout
    assert "this agent is broken\n" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interrupted_story_cleans_up(number: signal.Signals, code: int, base: Path) -> None:
    with subprocess.Popen(PLAY, env=environment(base), stdout=subprocess.PIPE, text=True) as play:
        assert play.stdout is not None
        said = next(line for line in play.stdout if "is process" in line)
        play.send_signal(number)

    assert play.returncode == code
    assert gone(said)


@pytest.mark.slow
def test_terminal_has_a_table_and_goes_on_until_interrupted(base: Path) -> None:
    ours, theirs = pty.openpty()
    env = environment(base, TERM="xterm", COLUMNS="80", LINES="30")
    with subprocess.Popen(PLAY, env=env, stdout=theirs, stderr=theirs) as play:
        os.close(theirs)
        said = read_until(ours, "GPUs come and go, until Ctrl-C")
        said += read_until(ours, "is lost: 7 nvidia.com/gpu are healthy after")
        play.send_signal(signal.SIGINT)
        code = play.wait(20)
        os.close(ours)

    assert code == 0
    assert re.search(r"DEVICE +PRODUCT +NUMA +HEALTH +HELD BY", said)
    assert re.search(r"gpu-\w{8} +NVIDIA H100 80GB HBM3 +\d +UNHEALTHY +train", said)
    assert "allocatable: nvidia.com/gpu 7 of 8 · sim.accelkit.dev/accel 4 of 4" in said
    assert gone(said)


async def test_nothing_is_waited_for_longer_than_patience_lasts() -> None:
    async with stage() as made:
        made.patience_s = 0.01

        with pytest.raises(NotSeen, match=r"^a miracle: not within 0\.01 s$"):
            await made.seen(lambda: None, "a miracle")
        with pytest.raises(NotSeen, match=r"^a view: not within 0\.01 s$"):
            await made.told(lambda view: view, "a view")
        assert await made.problems() == ()


@pytest.mark.parametrize(
    "step, reason",
    [
        (play_story._four, f"train: the pod does not run: .*{GPU}"),
        (play_story._shares, f"infer-a: the pod does not run: .*{SHARE}"),
    ],
)
async def test_step_that_does_not_happen_is_not_told(step: Step[Stage], reason: str) -> None:
    async with stage() as made:
        with pytest.raises(NotSeen, match=reason):
            await lines(step, made)


async def test_agent_that_refuses_its_policy_is_not_seen() -> None:
    async with stage() as made:
        made.policy.write_text("offers: 7\n")
        await made.start_agent()

        with pytest.raises(NotSeen, match="the agent ended with 2"):
            await made.seen(lambda: None, "anything")
        with pytest.raises(NotSeen, match="ended with 2 after SIGTERM"):
            await lines(ENDING[0], made)


@pytest.mark.slow
async def test_agent_that_does_not_end_is_killed() -> None:
    async with stage() as made:
        await made.start_agent()
        await made.told(lambda view: view.devices or None, "devices")  # signals are handled by now
        assert made.pid is not None
        os.kill(made.pid, signal.SIGSTOP)

        with pytest.raises(NotSeen, match="ended with -9 after SIGTERM"):
            await lines(ENDING[0], made)
        assert made.pid is None


async def lines(step: Step[Stage], made: Stage) -> list[play_story.Line]:
    return [line async for line in step(made)]


async def test_sockets_fit_below_a_directory_with_a_long_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/var/" + "long" * 30)

    async with stage() as made:
        assert made.root.parent == Path("/tmp")
        assert made.sim.socket.is_socket()
    assert not made.root.exists()


async def test_node_without_room_for_sockets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(ConfigError, match="TMPDIR"):
        async with stage():
            raise AssertionError("there is no room")


def test_container_that_was_given_nothing_has_no_lines() -> None:
    assert given(Answer()) == ()


@pytest.mark.slow
async def test_devices_that_are_not_the_closest_are_not_what_is_told() -> None:
    async with stage() as made:
        await made.start_agent()
        view = await made.told(lambda view: view if len(view.devices) == 10 else None, "devices")
        names = sorted(
            (device.locality.pci_address, device.id.name)
            for device in view.snapshot.devices
            if device.id.vendor == "nvidia"
        )

    with pytest.raises(NotSeen, match="others are closest: gpu-"):
        choice(view, GPU, [name for _, name in names], [names[0][1], names[-1][1]])


def test_output_that_is_no_terminal_is_not_redrawn() -> None:
    assert not lively()
