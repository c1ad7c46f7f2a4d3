import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import yaml

from accelkit.agent.http import HttpServer, Response
from accelkit.agent.memory import Memory
from accelkit.agent.problems import Problems
from accelkit.core.clock import RealClock
from accelkit.core.model import Device, DeviceId, Snapshot
from accelkit.core.policy import Offer
from accelkit.core.values import FrozenMap
from accelkit.core.view import Assignment, View
from accelkit.testing.simulate import set_state, simulate
from tests.cli.claims import UID, claim, stuck, write_down
from tests.cli.conftest import Run

OLD = DeviceId(vendor="sim", name="s00-0000")

BASIC = """\
DEVICE        PRODUCT  HEALTH   OFFER  NUMA  MEMORY  HELD BY
sim/s00-0000  basic    HEALTHY  all    0     16Gi    -
sim/s00-0001  basic    HEALTHY  all    1     16Gi    -
"""
SPLIT = """\
DEVICE                  PRODUCT  HEALTH   OFFER  NUMA  MEMORY  HELD BY
sim/s00-0000            split    HEALTHY  -      0     16Gi    -
├─ sim/s00-0000-half-0  half     HEALTHY  all    0     8Gi     -
└─ sim/s00-0000-half-1  half     HEALTHY  all    0     8Gi     -
sim/s00-0001            split    HEALTHY  -      1     16Gi    -
├─ sim/s00-0001-half-0  half     HEALTHY  all    1     8Gi     -
└─ sim/s00-0001-half-1  half     HEALTHY  all    1     8Gi     -
"""


def test_devices_are_listed(run: Run, basic: Path) -> None:
    answer = run("devices", "--host", basic)

    assert (answer.code, answer.out, answer.err) == (0, BASIC, "")


def test_partitions_are_listed_below_what_they_are_parts_of(run: Run, split: Path) -> None:
    assert run("devices", "--host", split).out == SPLIT


def test_unhealthy_device_makes_the_answer_no_and_is_explained(run: Run, basic: Path) -> None:
    set_state(str(basic), ["fault", "accel-1", "too-hot"])

    answer = run("devices", "--host", basic)

    assert answer.code == 1
    assert answer.lines[2].split()[2] == "UNHEALTHY"
    assert answer.lines[4].split() == ["DEVICE", "CONDITION", "SEVERITY", "WHAT"]
    assert answer.lines[5].split()[:3] == ["sim/s00-0001", "too-hot", "FATAL"]


def test_processes_that_hold_a_device_are_named(run: Run, basic: Path) -> None:
    set_state(str(basic), ["hold", "accel-0", "4711"])

    assert run("devices", "--host", basic).lines[1].endswith("16Gi    process 4711")


def test_device_is_found_by_any_of_its_ids(run: Run, split: Path) -> None:
    by_id, by_name, by_place = (
        run("devices", text, "--host", split)
        for text in ("sim/s00-0001", "s00-0001", "0000:04:00.0")
    )

    assert by_id.lines[1].startswith("sim/s00-0001")
    assert by_id.lines[3].startswith("└─ sim/s00-0001-half-1")
    assert by_id.lines[5] == "sim/s00-0001: it cannot be handed out as it stands"
    assert by_name == by_place == by_id


def test_one_device_as_yaml_is_its_whole_value(run: Run, basic: Path) -> None:
    answer = run("devices", "sim/s00-0000", "--host", basic, "-o", "yaml")
    tree = yaml.safe_load(answer.out)

    assert (tree["id"], tree["kind"], tree["capacity"]) == (
        "sim/s00-0000",
        "accel",
        {"memory": 2**34},
    )
    assert tree["verdict"]["health"] == "HEALTHY"
    assert tree["assignment"]["terms"]["name"] == "all"


def test_device_that_is_not_there_is_a_no_with_a_hint(run: Run, basic: Path) -> None:
    answer = run("devices", "sim/s00-0002", "--host", basic)

    assert answer.code == 1
    assert answer.err.splitlines() == [
        "error: there is no device sim/s00-0002 here, did you mean sim/s00-0001?",
        "remedy: see: accelkit devices",
    ]


def test_json_is_a_list_of_values_and_the_same_each_time(run: Run, basic: Path) -> None:
    once, again = (run("devices", "--host", basic, "-o", "json").out for _ in range(2))
    tree = json.loads(once)

    assert once == again
    assert (tree["apiVersion"], tree["kind"], tree["node"]) == (
        "accelkit.dev/v1",
        "DeviceList",
        "n1",
    )
    assert [item["id"] for item in tree["items"]] == ["sim/s00-0000", "sim/s00-0001"]
    assert tree["problems"] == []


def test_yaml_says_the_same_as_json(run: Run, split: Path) -> None:
    as_json = run("devices", "--host", split, "-o", "json")
    as_yaml = run("devices", "--host", split, "-o", "yaml")

    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)


def test_policy_decides_what_is_offered_and_why_not(
    run: Run, basic: Path, policy: Callable[[str], Path]
) -> None:
    file = policy(
        "offers: [{name: four, select: {name: s00-0000}, resource: example.com/x, "
        "sharing: {shares: 4}}]"
    )

    answer = run("devices", "--host", basic, "--policy", file)

    assert answer.lines[1].split()[3:5] == ["four", "×4"]  # noqa: RUF001 - times
    assert answer.lines[2].split()[3] == "-"
    assert answer.lines[4] == "sim/s00-0001: no offer selects it"


def test_policy_can_select_by_the_name_of_the_node(
    run: Run, basic: Path, policy: Callable[[str], Path]
) -> None:
    file = policy("offers: [{name: here, select: {node: gpu-*}}]")

    there = run("devices", "--host", basic, "--policy", file, "--node", "gpu-7")
    elsewhere = run("devices", "--host", basic, "--policy", file)

    assert [line.split()[3] for line in there.lines[1:3]] == ["here", "here"]
    assert [line.split()[3] for line in elsewhere.lines[1:3]] == ["-", "-"]


def test_wrong_policy_is_told_with_every_problem(
    run: Run, basic: Path, policy: Callable[[str], Path]
) -> None:
    file = policy("offers: [{name: a, sharring: {}}, {name: b, selectt: {}}]")

    answer = run("devices", "--host", basic, "--policy", file)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines() == [
        "$.offers[0].sharring: unknown key, did you mean 'sharing'?",
        "$.offers[1].selectt: unknown key, did you mean 'select'?",
    ]


def test_host_that_is_not_there_is_bad_input(run: Run, tmp_path: Path) -> None:
    answer = run("devices", "--host", tmp_path / "no")

    assert answer.code == 2
    assert answer.err.startswith(f"{tmp_path / 'no'}: is not a directory\n")


def test_host_of_the_policy_is_read_where_no_other_is_named(
    run: Run, basic: Path, split: Path, policy: Callable[[str], Path]
) -> None:
    file = policy(f"paths: {{host: {split}}}")

    assert run("devices", "--policy", file).out == SPLIT
    assert run("devices", "--policy", file, "--host", basic).out == BASIC


def test_host_without_accelerators_says_what_was_asked_and_what_one_can_do(
    run: Run, tmp_path: Path
) -> None:
    answer = run("devices", "--host", tmp_path)

    assert answer.code == 0
    assert answer.lines[:3] == [
        f"No accelerators were found on {tmp_path}.",
        "  asked:      generic",
        "  not there:  amd, gaudi, intel, neuron, nvidia, sim, simset, tpu",
    ]
    assert "accelkit simulate nvidia --product h100 --count 8 /tmp/node" in answer.out


def test_rules_that_are_proposed_where_nothing_was_found_work(
    run: Run, tmp_path: Path, policy: Callable[[str], Path]
) -> None:
    lines = run("devices", "--host", tmp_path).lines
    begin = lines.index("  apiVersion: accelkit.dev/v1")
    end = lines.index("and look again with: accelkit devices --policy FILE")
    file = policy("\n".join(lines[begin:end]).replace("/dev/fuse", "/dev/widget*"))
    simulate("generic", "widget", 2, str(tmp_path / "widgets"))

    answer = run("devices", "--host", tmp_path / "widgets", "--policy", file)

    assert [line.split()[0] for line in answer.lines[1:3]] == [
        "generic/dev-widget0",
        "generic/dev-widget1",
    ]


def test_vendor_that_fails_is_a_problem_with_its_remedy_and_costs_only_itself(
    run: Run, basic: Path
) -> None:
    simulate("generic", "widget", 1, str(basic))
    set_state(str(basic), ["raise", "discover"])

    answer = run("devices", "--host", basic)

    assert answer.code == 0
    assert answer.lines[0].startswith("No accelerators are known on ")
    assert answer.lines[2].startswith("problem: sim: ")
    assert answer.lines[3] == "  remedy: report it to the author of the plugin for sim"


def test_vendor_that_hangs_costs_only_its_own_devices(
    run: Run, basic: Path, policy: Callable[[str], Path]
) -> None:
    simulate("generic", "widget", 1, str(basic))
    set_state(str(basic), ["hang", "discover", "3s"])
    file = policy(
        "vendors:\n"
        "- {name: sim, deadlineScale: 0.02}\n"
        "- {name: generic, options: {devices: [{name: w, match: {path: '/dev/widget*'}}]}}\n"
    )

    answer = run("devices", "--host", basic, "--policy", file)

    assert answer.code == 0
    assert answer.lines[1].startswith("generic/dev-widget2  ")
    assert "problem: sim: inventory got no answer: no answer in 0.2 s" in answer.out


def test_missing_driver_is_told_once_for_each_device_and_by_nothing_else(
    run: Run, tmp_path: Path
) -> None:
    """Links, holders and versions said the same again, of devices that are not there."""
    simulate("nvidia", "l4", 2, str(tmp_path / "m"))
    set_state(str(tmp_path / "m"), ["uninstall"])

    answer = run("devices", "--host", tmp_path / "m")

    told = [line.split()[1] for line in answer.lines if line.startswith("problem: ")]
    assert told == ["nvidia/0000:03:00.0:", "nvidia/0000:04:00.0:"]


def test_gpu_that_is_cut_and_has_no_partitions_says_why_it_is_not_offered(
    run: Run, tmp_path: Path
) -> None:
    simulate("nvidia", "h100", 1, str(tmp_path / "m"))
    set_state(str(tmp_path / "m"), ["mig", "gpu-0", "on"])

    said = run("devices", "--host", tmp_path / "m").lines[-1]

    assert said.endswith(": it cannot be handed out as it stands, only its partitions (mode mig)")


def test_host_that_is_empty_is_not_this_machine(run: Run) -> None:
    """A script with a variable that is not set read the real one."""
    answers = [run(*words, "--host", "") for words in (("devices",), ("vendor", "list"))]

    assert [answer.code for answer in answers] == [2, 2]
    assert {answer.err.splitlines()[0] for answer in answers} == {"host: is not a directory"}


# Claims.

DYNAMIC = """
partitioning: [{how: dynamic}]
offers:
- {name: whole, select: {partition: false}, through: dra}
- {name: parts, through: dra}
"""
FIRST = "nvidia/gpu-86d08246-d995-5f0a-82bf-d3f9ad66e18a"


def test_claims_that_were_written_down_hold_their_devices(
    run: Run, basic: Path, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    file = policy(f"paths: {{run: {tmp_path / 'run'}}}\noffers: [{{name: all, through: dra}}]")
    write_down(
        tmp_path / "run", basic, claim("sim/s00-0000", "c1"), stuck(claim("sim/s00-0001", "c2"))
    )

    answer = run("devices", "--host", basic, "--policy", file)

    assert [line.split("  ")[-1].strip() for line in answer.lines[1:]] == [
        "claim default/c1",
        "claim default/c2",
    ]
    assert " all (stuck) " in answer.lines[2]


def test_device_that_a_claim_holds_against_the_policy_is_leaving(
    run: Run, basic: Path, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    where = write_down(tmp_path / "run", basic, claim("sim/s00-0000", "c1"))
    before = View(
        snapshot=Snapshot(node="n1", devices=(Device(id=OLD, kind="accel"),)),
        assignments=FrozenMap({OLD: Assignment(terms=Offer(name="old", through="dra"))}),
    )
    Memory(where, "1.0.0", Problems(RealClock().now)).keep(before)
    file = policy(f"paths: {{run: {tmp_path / 'run'}}}\noffers: [{{name: all}}]")

    answer = run("devices", "--host", basic, "--policy", file)

    assert " old (leaving) " in answer.lines[1]
    assert " all " in answer.lines[2]


def test_device_of_a_claim_that_is_gone_is_lost(
    run: Run, basic: Path, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    where = write_down(tmp_path / "run", basic, claim("sim/gone", "c1"))
    gone = DeviceId.parse("sim/gone")
    before = View(snapshot=Snapshot(node="n1", devices=(Device(id=gone, kind="accel"),)))
    Memory(where, "1.0.0", Problems(RealClock().now)).keep(before)

    answer = run(
        *("devices", "--host", basic),
        *("--policy", policy(f"paths: {{run: {tmp_path / 'run'}}}")),
    )

    row = next(line for line in answer.lines if line.startswith("sim/gone"))
    assert "(lost)" in row
    assert row.endswith("claim default/c1")


def test_claim_that_cannot_be_read_holds_what_it_names(
    run: Run, basic: Path, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    where = write_down(tmp_path / "run", basic)
    damaged = where / "quarantine" / f"{UID}.0.json"
    damaged.write_text('{"format": "1.0", "pieces": [{"device": "sim/s00-0000"}')

    answer = run(
        *("devices", "--host", basic),
        *("--policy", policy(f"paths: {{run: {tmp_path / 'run'}}}")),
    )

    assert answer.lines[1].endswith(f"16Gi    claim {UID}")
    assert f"problem: {UID}: the entry of claim {UID} cannot be read: it is not JSON" in answer.out


def test_what_could_be_made_of_a_gpu_is_one_line(
    run: Run, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    simulate("nvidia", "h100", 1, str(tmp_path / "gpu"))

    answer = run("devices", "--host", tmp_path / "gpu", "--policy", policy(DYNAMIC))

    assert len(answer.lines) == 3
    assert answer.lines[2] == "└─ + 25 could be made"


def test_what_could_be_made_of_the_device_asked_for_is_told_by_profile(
    run: Run, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    host = tmp_path / "gpu"
    simulate("nvidia", "h100", 1, str(host))
    set_state(str(host), ["mig", "gpu-0", "on"])
    set_state(str(host), ["create-mig", "gpu-0", "4g.40gb", "0"])

    answer = run("devices", FIRST, "--host", host, "--policy", policy(DYNAMIC))

    assert [line.split("  ")[0] for line in answer.lines[2:7]] == [
        f"├─ {FIRST}-4g40gb-0",
        "├─ + 1g.10gb at 3 places",
        "├─ + 1g.10gb+me at 3 places",
        "├─ + 1g.20gb at 2 places",
        "├─ + 2g.20gb at 1 place",
    ]


async def test_problems_that_only_the_agent_knows_are_told(
    run: Run, basic: Path, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    file = policy(f"paths: {{host: {basic}, run: {tmp_path / 'run'}}}")
    narrowed = '{"code": "dialect-narrowed", "reason": "no taints", "remedy": "update it"}'
    said = {"/livez": "ok", "/problems": f"[{narrowed}]"}
    server = HttpServer(lambda path: Response.of(200, said[path]))
    (tmp_path / "run").mkdir()
    await server.listen_unix(tmp_path / "run" / "agent.sock")

    table = await asyncio.to_thread(run, "devices", "--policy", file)
    tree = await asyncio.to_thread(run, "devices", "--policy", file, "-o", "json")
    elsewhere = await asyncio.to_thread(run, "devices", "--policy", file, "--host", "/proc")

    await server.close()
    assert table.lines[-2:] == ["problem: : no taints [dialect-narrowed]", "  remedy: update it"]
    assert [problem["code"] for problem in json.loads(tree.out)["problems"]] == ["dialect-narrowed"]
    assert "dialect-narrowed" not in elsewhere.out


async def test_agent_that_may_not_be_asked_keeps_nobody_from_seeing_devices(
    run: Run, basic: Path, policy: Callable[[str], Path], tmp_path: Path
) -> None:
    file = policy(f"paths: {{host: {basic}, run: {tmp_path / 'run'}}}")
    server = HttpServer(lambda _path: Response.of(503, "no"))
    (tmp_path / "run").mkdir()
    await server.listen_unix(tmp_path / "run" / "agent.sock")

    answer = await asyncio.to_thread(run, "devices", "--policy", file)

    await server.close()
    assert (answer.code, answer.out) == (0, BASIC)
