"""How devices are cut and should be, on simulated GPUs."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from accelkit.agent.http import HttpServer, Response
from accelkit.agent.leader import Lease
from accelkit.cli.agent_socket import ask
from accelkit.cli.partition_export import policy_of
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.errors import TransportError
from accelkit.core.model import Locality, Mode, Snapshot
from accelkit.testing.simulate import set_state, simulate
from tests.cli.conftest import Run
from tests.core.things import cut, gpu, part
from tests.processes import running

PATIENCE_S = 15.0
RUN = "from accelkit.cli.main import main; raise SystemExit(main())"
FIRST = "nvidia/gpu-86d08246-d995-5f0a-82bf-d3f9ad66e18a"
MIXED = """\
layouts: {mixed: {"3g.40gb": 1, "1g.10gb": 2}}
partitioning: [{select: {pci: "*:03:*"}, how: layout, layout: mixed}]
"""
STEPS = f"""\
set-mode {FIRST} mig
create {FIRST}-1g10gb-0
create {FIRST}-1g10gb-1
create {FIRST}-3g40gb-4
"""

Policy = Callable[[str], Path]


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    """Two H100, whole."""
    simulate("nvidia", "h100", 2, str(tmp_path / "gpus"))
    return tmp_path / "gpus"


@pytest.fixture
def base(tmp_path: Path, gpus: Path) -> Path:
    """A policy of a node whose agent, if any, runs below *tmp_path*."""
    file = tmp_path / "base.yaml"
    file.write_text(
        f"paths: {{host: {gpus}, run: {tmp_path / 'run'}, kubelet: {tmp_path / 'kubelet'}}}\n"
        "http: {listen: ''}\n"
    )
    return file


def add(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)


# Plan and assert.


def test_plan_is_the_steps_in_order_and_changes_nothing(
    run: Run, gpus: Path, policy: Policy
) -> None:
    file = policy(MIXED)

    first = run("partition", "plan", "--host", gpus, "-f", file)
    again = run("partition", "plan", "--host", gpus, "--policy", file)

    assert (first.code, first.out, first.err) == (0, STEPS, "")
    assert again == first


def test_policy_that_cuts_nothing_is_said_to(run: Run, gpus: Path) -> None:
    answer = run("partition", "plan", "--host", gpus)

    assert (answer.code, answer.out) == (0, "the policy cuts nothing: it has no partitioning\n")


def test_steps_that_are_left_fail_the_assertion(run: Run, gpus: Path, policy: Policy) -> None:
    answer = run("partition", "assert", "--host", gpus, "-f", policy(MIXED))

    assert (answer.code, answer.out) == (1, STEPS)


def test_layout_that_does_not_fit_fails_the_assertion_and_says_what_does(
    run: Run, gpus: Path, policy: Policy
) -> None:
    file = policy('layouts: {much: {"3g.40gb": 3}}\npartitioning: [{how: layout, layout: much}]\n')

    answer = run("partition", "assert", "--host", gpus, "-f", file)

    assert answer.code == 1
    assert answer.out.startswith(f"problem: {FIRST}: ")
    assert "[unsatisfiable-layout]" in answer.out


def test_who_is_in_the_way_is_named(run: Run, gpus: Path, policy: Policy) -> None:
    set_state(str(gpus), ["hold", "gpu-0", "4711"])
    file = policy(MIXED)

    planned = run("partition", "plan", "--host", gpus, "-f", file)
    asserted = run("partition", "assert", "--host", gpus, "-f", file)

    waits = f"problem: {FIRST}: {FIRST} is held by process 4711 [partitioning-waits]"
    assert (planned.code, asserted.code) == (0, 1)
    assert planned.lines[0] == waits


def test_step_that_waits_to_be_told_says_so(run: Run, gpus: Path, policy: Policy) -> None:
    file = policy(MIXED.replace("layout: mixed}]", "layout: mixed, when: drained}]"))

    answer = run("partition", "plan", "--host", gpus, "-f", file)

    assert answer.lines[0] == f"set-mode {FIRST} mig  (when told: accelkit partition apply)"


def test_plan_as_json_has_each_step_as_a_value(run: Run, gpus: Path, policy: Policy) -> None:
    answer = run("partition", "plan", "--host", gpus, "-f", policy(MIXED), "-o", "json")

    tree = json.loads(answer.out)
    assert (tree["kind"], tree["problems"]) == ("PartitionPlan", [])
    assert tree["steps"][:2] == [
        {"step": "set-mode", "device": FIRST, "mode": "mig", "when": "idle"},
        {"step": "create", "device": f"{FIRST}-1g10gb-0", "when": "idle"},
    ]


def test_file_goes_before_the_policy_key_by_key(run: Run, base: Path, policy: Policy) -> None:
    add(base, "only: {pci: '*:04:*'}\n")

    answer = run("partition", "plan", "--policy", base, "-f", policy(MIXED))

    assert (answer.code, answer.out) == (0, "nothing is left to do\n")


@pytest.mark.parametrize(
    "text, said",
    [
        ("layouts: {a: {x: 0}}", "$.layouts.a.x: expected 1 to"),
        ("7", "expected keys of a policy"),
        ("partitioning: [{how: layout, layout: none}]", "there is no layout 'none'"),
    ],
)
def test_file_that_makes_no_policy_is_bad_input(
    run: Run, gpus: Path, policy: Policy, text: str, said: str
) -> None:
    answer = run("partition", "plan", "--host", gpus, "-f", policy(text))

    assert answer.code == 2
    assert said in answer.err


def test_empty_file_changes_nothing_of_the_policy(run: Run, gpus: Path, policy: Policy) -> None:
    answer = run("partition", "plan", "--host", gpus, "-f", policy(""))

    assert (answer.code, answer.out) == (0, "the policy cuts nothing: it has no partitioning\n")


@pytest.mark.parametrize("command", ["assert", "export"])
def test_devices_that_cannot_be_read_are_not_said_to_be_as_they_should(
    run: Run, gpus: Path, command: str
) -> None:
    set_state(str(gpus), ["unload"])

    answer = run("partition", command, "--host", gpus)

    assert answer.code == 3
    assert "[driver-not-ready]" in answer.err
    assert "error: it is not known what there is of nvidia" in answer.err


# Export.


@pytest.mark.slow
def test_exported_layout_is_a_policy_that_is_met_here_and_makes_the_same_elsewhere(
    run: Run, gpus: Path, base: Path, tmp_path: Path
) -> None:
    set_state(str(gpus), ["mig", "gpu-0", "on"])
    set_state(str(gpus), ["create-mig", "gpu-0", "3g.40gb", "4"])
    set_state(str(gpus), ["create-mig", "gpu-0", "1g.10gb", "0"])
    set_state(str(gpus), ["mig", "gpu-1", "on"])
    exported = tmp_path / "layout.yaml"
    simulate("nvidia", "h100", 2, str(tmp_path / "fresh"))

    answer = run("partition", "export", "--host", gpus)
    exported.write_text(answer.out)

    tree = yaml.safe_load(answer.out)
    assert tree["layouts"] == {"1x1g.10gb-1x3g.40gb": {"1g.10gb": 1, "3g.40gb": 1}}
    assert [rule["how"] for rule in tree["partitioning"]] == ["layout", "mode"]
    assert run("config", "check", exported).code == 0
    assert run("partition", "assert", "--host", gpus, "-f", exported).code == 0
    words = ("--policy", base, "--host", tmp_path / "fresh")
    assert run("partition", "apply", "--without-agent", *words, "-f", exported).code == 0
    assert run("partition", "assert", "--host", tmp_path / "fresh", "-f", exported).code == 0
    assert run("partition", "export", "--host", tmp_path / "fresh").out == answer.out


def test_devices_of_a_product_that_are_alike_have_one_rule(run: Run, gpus: Path) -> None:
    tree = yaml.safe_load(run("partition", "export", "--host", gpus).out)

    assert "layouts" not in tree
    assert tree["partitioning"] == [
        {
            "select": {"vendor": "nvidia", "product": "NVIDIA H100 80GB HBM3"},
            "how": "mode",
            "mode": "whole",
        }
    ]


def test_devices_that_cannot_be_cut_are_in_no_rule(run: Run, basic: Path) -> None:
    assert yaml.safe_load(run("partition", "export", "--host", basic).out)["partitioning"] == []


def test_mode_that_makes_its_partitions_is_exported_as_a_mode() -> None:
    device = cut("a", modes=(Mode(name="halves", cut="1g", count=2),), mode="halves")
    bare = cut("b", product=None, locality=Locality())
    snapshot = Snapshot(devices=(device, part("a", 0), bare, gpu("c")))

    rules = policy_of(snapshot)["partitioning"]

    assert isinstance(rules, list)
    assert [rule["how"] for rule in rules if isinstance(rule, dict)] == ["mode", "layout"]


# Apply.


def test_without_an_agent_nothing_is_applied_unless_it_is_asked_for(run: Run, base: Path) -> None:
    answer = run("partition", "apply", "--policy", base)

    assert answer.code == 3
    assert "error: no agent answers at " in answer.err
    assert "or let this process do it: --without-agent" in answer.err


def test_agent_of_another_host_is_not_asked(run: Run, basic: Path, base: Path) -> None:
    answer = run("partition", "apply", "--policy", base, "--host", basic)

    assert answer.code == 3
    assert f"no agent is known for {basic}" in answer.err


def test_file_is_not_what_the_agent_cuts_by(run: Run, base: Path, policy: Policy) -> None:
    answer = run("partition", "apply", "--policy", base, "-f", policy(MIXED))

    assert answer.code == 2
    assert "the agent cuts as its own policy says" in answer.err


@pytest.mark.slow
def test_what_could_not_be_cut_is_told_with_what_helps(
    run: Run, base: Path, policy: Policy, tmp_path: Path
) -> None:
    chips = tmp_path / "chips"
    simulate("neuron", "trn2", 1, str(chips))
    set_state(str(chips), ["no-lnc-file"])
    file = policy("partitioning: [{select: {vendor: neuron}, how: mode, mode: lnc1}]")
    words = ("--policy", base, "--host", chips, "-f", file)

    answer = run("partition", "apply", "--without-agent", *words)

    (line,) = answer.lines
    assert (answer.code, line.split(": ")[0]) == (1, "failed")
    assert "logical_nc_config is not there; make it, empty: mkdir -p /opt/aws/neuron" in line


@pytest.mark.slow
def test_this_process_cuts_and_remembers_what_it_made(run: Run, base: Path, policy: Policy) -> None:
    words = ("--policy", base, "-f", policy(MIXED))

    first = run("partition", "apply", "--without-agent", *words)
    again = run("partition", "apply", "--without-agent", *words)
    (other := base.with_name("other.yaml")).write_text(MIXED.replace('"3g.40gb": 1, ', ""))
    smaller = run("partition", "plan", "--policy", base, "-f", other)

    assert (first.code, first.lines) == (0, [f"done: {step}" for step in STEPS.splitlines()])
    assert (again.code, again.out) == (0, "nothing was left to do\n")
    assert smaller.out == f"destroy {FIRST}-3g40gb-4\n"


def test_held_device_is_left_as_it_is(run: Run, gpus: Path, base: Path, policy: Policy) -> None:
    set_state(str(gpus), ["hold", "gpu-0", "4711"])

    answer = run("partition", "apply", "--without-agent", "--policy", base, "-f", policy(MIXED))

    assert (answer.code, answer.out) == (
        1,
        f"left: {FIRST}: {FIRST} is held by process 4711\n",
    )


def test_beside_an_agent_that_leads_this_process_cuts_nothing(
    run: Run, base: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    lease = Lease(tmp_path / "run")
    assert lease.check()

    answer = run("partition", "apply", "--without-agent", "--policy", base)

    lease.release()
    assert answer.code == 3
    assert f"an agent leads here, says {tmp_path / 'run'}" in answer.err


def test_kubelet_that_does_not_answer_keeps_this_process_from_cutting(
    run: Run, base: Path, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "kubelet").mkdir()

    answer = run(
        "partition", "apply", "--without-agent", "--policy", base, "--host", tmp_path / "root"
    )

    assert answer.code == 3
    assert "the kubelet does not answer" in answer.err


@asynccontextmanager
async def agent(tmp_path: Path, file: Path) -> AsyncIterator[None]:
    """The real one, as a process; it knows who holds what."""
    words = (sys.executable, "-c", RUN, "agent", "--node", "n1", "--policy", str(file))
    async with KubeletSim(tmp_path / "kubelet"), running(*words), asyncio.timeout(PATIENCE_S):
        while True:
            try:
                ready = ask(str(tmp_path / "run"), "/readyz")
            except TransportError:
                ready = b""
            if ready:
                break
            await asyncio.sleep(0.02)
        yield


@pytest.mark.slow
async def test_agent_is_told_to_cut_what_waits_to_be_told(
    run: Run, base: Path, tmp_path: Path
) -> None:
    add(base, MIXED.replace("mixed}]", "mixed, when: drained}]"))

    async with agent(tmp_path, base):
        answer = await asyncio.to_thread(run, "partition", "apply", "--policy", base)
    asserted = await asyncio.to_thread(run, "partition", "assert", "--policy", base)

    assert (answer.code, answer.lines) == (0, [f"done: {step}" for step in STEPS.splitlines()])
    assert (asserted.code, asserted.out) == (0, "nothing is left to do\n")


async def test_what_the_agent_could_not_do_is_told(run: Run, base: Path, tmp_path: Path) -> None:
    said = {
        "/livez": Response.of(200, "ok"),
        "/apply": Response.of(200, '{"done": ["a"], "failed": ["b: no\\n"], "left": ["c: held"]}'),
    }

    async def post(path: str, _body: bytes) -> Response | None:
        return said[path]

    server = HttpServer(lambda path: said[path], post)
    (tmp_path / "run").mkdir()
    await server.listen_unix(tmp_path / "run" / "agent.sock")

    answer = await asyncio.to_thread(run, "partition", "apply", "--policy", base)

    await server.close()
    assert (answer.code, answer.lines) == (1, ["done: a", "failed: b: no�", "left: c: held"])
