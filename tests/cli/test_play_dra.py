"""The play that is told through claims."""

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from accelkit.cli import play_dra_faults, play_dra_story
from accelkit.cli.play_dra_acts import claim_object, make, on_disk, pod_object
from accelkit.cli.play_dra_stage import DraStage, stage
from accelkit.cli.play_dra_story import PLAY as CLAIMS
from accelkit.cli.play_stage import NotSeen
from accelkit.cli.play_story import Line, Step, title
from accelkit.core.kube import SLICES
from tests.cli.playing import PLAY, SABOTAGE, base, environment, gone, read_until

__all__ = ["base"]

SEEN = (
    r"machine    simulated: 4 H100 with NVSwitch",
    r"cluster    simulated: API server, scheduler and kubelet of Kubernetes 1\.37",
    r"policy     .*/policy.yaml",
    r"agent      accelkit agent --policy policy.yaml is process \d+",
    r"registered nvidia.accelkit.dev, \d+ ms after its start",
    r"slices     published \d+ ms after its start:",
    r"1 counter set, which partitions of one GPU compete for",
    r"25 devices of offer parts",
    r"2 devices of offer whole",
    r"agent      class whole of nvidia.com/gpu: there is no such class",
    r"class      whole: pods that ask for nvidia.com/gpu get its devices",
    r"agent      has nothing to say any more",
    r"pod        train asked for a 2g.20gb, and runs after \d+ ms",
    r"claim      the scheduler chose gpu-\w{8}-2g20gb-\d, which was not there yet",
    r"prepared   the agent made it: reserve .*modes .*create .*cdi",
    r"hardware   the GPU is in mode mig, and has one partition",
    r"devices /dev/nvidia-caps/nvidia-cap\d+ .*/dev/nvidia0",
    r"pod        train is deleted, and gone after \d+ ms",
    r"hardware   no partition is left",
    r"claim      infer-a has of gpu-16d7ddaf: cores 30, memory 30Gi",
    r"claim      infer-b has of gpu-16d7ddaf: cores 40, memory 40Gi",
    r"pod        infer-c asked for 20Gi, which is not left, and waits:",
    r"0/1 nodes are available: 1 cannot allocate all claims\.",
    r"fault      kill -9 \d+; written down is: batch ready, infer-a ready, infer-b ready",
    r"pod        batch is deleted: its container ends, the pod waits for the driver",
    r"agent      process \d+ gave its claim back, \d+ ms after its start",
    r"hardware   its partition is gone",
    r"slices     are the same objects as before",
    r"pod        infer-a and infer-b run on, and were not started again",
    r"fault      gpu-16d7ddaf falls off the bus \(XID 79\)",
    r"slices     nobody else gets it, \d+ ms after:",
    r"taint accelkit.dev/gpu-lost:NoSchedule",
    r"pod        infer-b: allocatedResourcesStatus Unhealthy:",
    r"delete the pod to get another device; gpu-lost: ",
    r"slices     others may have it again, \d+ ms after",
    r"pod        infer-a and infer-b: allocatedResourcesStatus Healthy",
    r"pod        legacy asked for 1 nvidia.com/gpu, and runs after \d+ ms",
    r"claim      the scheduler made legacy-extended-resources-\w+ for it: gpu-\w{8}",
    r"agent      SIGTERM: ended with 0 after \d+ ms",
    r"slices     stay, and so do pods and what they have",
    r"play       all 11 steps were seen",
)

pytestmark = pytest.mark.timeout(240)


@pytest.mark.slow
def test_whole_story_is_told_in_plain_lines_and_nothing_is_left(base: Path) -> None:
    done = subprocess.run(
        [*PLAY, "--dra", "--once"],
        env=environment(base),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    assert [line for line in SEEN if not re.search(line, done.stdout)] == []
    assert gone(done.stdout)


@pytest.mark.slow
def test_agent_that_cannot_start_is_not_seen_and_says_why(base: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SABOTAGE)

    done = subprocess.run(
        [*PLAY, "--dra"],
        env=environment(base, PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert f"play       not seen: {title(CLAIMS.story[1])}\n" in done.stdout
    assert "slices: 0 devices\n" in done.stdout
    assert "this agent is broken\n" in done.stdout


@pytest.mark.slow
def test_interrupted_story_cleans_up(base: Path) -> None:
    words = [*PLAY, "--dra"]
    with subprocess.Popen(words, env=environment(base), stdout=subprocess.PIPE, text=True) as play:
        assert play.stdout is not None
        said = next(line for line in play.stdout if "is process" in line)
        play.send_signal(signal.SIGINT)

    assert play.returncode == 130
    assert gone(said)


@pytest.mark.slow
def test_terminal_has_a_table_and_goes_on_until_interrupted(base: Path) -> None:
    ours, theirs = pty.openpty()
    env = environment(base, TERM="xterm", COLUMNS="100", LINES="40")
    with subprocess.Popen([*PLAY, "--dra"], env=env, stdout=theirs, stderr=theirs) as play:
        os.close(theirs)
        said = read_until(ours, "now partitions come and go, until Ctrl-C")
        said += read_until(ours, "job-1 is gone after")
        play.send_signal(signal.SIGINT)
        code = play.wait(20)
        os.close(ours)

    assert code == 0
    assert re.search(r"DEVICE +PRODUCT +NUMA +HEALTH +HELD BY", said)
    assert re.search(r"gpu-16d7ddaf +NVIDIA H100 80GB HBM3 +\d +UNHEALTHY +infer-a, infer-b", said)
    assert re.search(r"gpu-86d08246-1g10gb-\d +1g\.10gb +\d +HEALTHY +job-1", said)
    assert "slices: 28 devices · infer-a Running · infer-b Running" in said
    assert gone(said)


# Steps that do not happen.


async def lines(step: Step[DraStage], made: DraStage) -> list[Line]:
    return [line async for line in step(made)]


async def test_pods_that_do_not_run_are_not_told() -> None:
    async with stage() as made:
        made.patience_s = 0.1

        with pytest.raises(NotSeen, match=r"^batch runs: not within 0\.1 s$"):
            await lines(play_dra_faults.crash, made)
        assert made.has() == "slices: 0 devices · batch Pending"
        assert on_disk(made) == {}


async def test_agent_that_refuses_its_policy_is_not_seen() -> None:
    async with stage() as made:
        made.policy.write_text("offers: 7\n")
        await made.start_agent()
        with pytest.raises(NotSeen, match="the agent ended with 2"):
            await made.seen(lambda: None, "anything")
        with pytest.raises(NotSeen, match="ended with 2 after SIGTERM"):
            await lines(play_dra_story._end, made)


@pytest.mark.slow
async def test_slices_that_are_gone_at_the_end_are_missed() -> None:
    async with stage() as made:
        await lines(play_dra_story._start, made)
        for one in made.api.items(SLICES):
            metadata = one["metadata"]
            assert isinstance(metadata, dict)
            made.api.delete(SLICES, str(metadata["name"]))

        with pytest.raises(NotSeen, match=r"^its slices are gone$"):
            await lines(play_dra_story._end, made)


async def test_pod_that_waits_has_no_reason_before_it_was_looked_at() -> None:
    async with stage() as made:
        make(made, pod_object("p", claim="p"), claim_object("p", "parts"))

        assert play_dra_story._waits(made, "p") == ""
        await made.seen(lambda: play_dra_story._waits(made, "p"), "a reason")
        assert "cannot allocate all claims" in play_dra_story._waits(made, "p")
