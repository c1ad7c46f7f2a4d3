"""Commands that are a few lines each: render, config, vendor, metrics, version, completion."""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from accelkit.agent.metrics import ALL
from accelkit.agent.reload import read_policy_file
from accelkit.cli.root import COMMANDS
from accelkit.cli.vendor import installed
from accelkit.core.policy import Policy
from accelkit.core.registry import LoadFailure, Registry
from accelkit.core.serde import from_tree
from accelkit.testing.hosts import open_host
from accelkit.testing.simulate import set_state
from tests.cli.conftest import Run

RENDERED = """\
apiVersion: accelkit.dev/v1
kind: KubeletDocument
resources:
  sim.accelkit.dev/accel:
  - id: s00-0000
    healthy: true
    numaNodes:
    - 0
  - id: s00-0001
    healthy: false
    numaNodes:
    - 1
"""


def test_what_the_kubelet_would_be_told_is_rendered(run: Run, basic: Path) -> None:
    set_state(str(basic), ["fault", "accel-1", "too-hot"])

    answer = run("render", "kubelet", "--host", basic)

    assert (answer.code, answer.out) == (0, RENDERED)


def test_rendered_json_says_the_same_as_yaml(run: Run, basic: Path) -> None:
    as_yaml = run("render", "kubelet", "--host", basic).out

    as_json = run("render", "kubelet", "--host", basic, "-o", "json").out

    assert json.loads(as_json) == yaml.safe_load(as_yaml)


@pytest.mark.parametrize("release,shared", [(None, True), ("1.36", True), ("1.34", False)])
def test_slices_are_rendered_for_an_api_server_of_a_release(
    run: Run, basic: Path, policy: Callable[[str], Path], release: str | None, *, shared: bool
) -> None:
    file = policy("offers: [{name: all, through: dra, sharing: {shares: 2}}]")
    words = ("render", "dra", "--host", basic, "--policy", file)

    answer = run(*words, *(("--kubernetes", release) if release else ()))

    only = yaml.safe_load(answer.out)
    assert (answer.code, only["kind"]) == (0, "ResourceSlice")
    assert [device["name"] for device in only["spec"]["devices"]] == ["s00-0000", "s00-0001"]
    assert ["allowMultipleAllocations" in d for d in only["spec"]["devices"]] == [shared] * 2


def test_release_that_was_never_tried_is_refused(run: Run, basic: Path) -> None:
    answer = run("render", "dra", "--host", basic, "--kubernetes", "1.12")

    assert answer.code == 2
    assert "--kubernetes: '1.12' is none of 1.34, 1.35, 1.36, 1.37" in answer.err


def test_backend_that_is_not_installed_cannot_be_rendered(run: Run, basic: Path) -> None:
    answer = run("render", "koordinator", "--host", basic)

    assert answer.code == 2
    assert (
        answer.err == "backend: 'koordinator' is not installed; there are: dra, extended, kubelet\n"
    )


def test_good_policy_is_said_to_be_good(run: Run, policy: Callable[[str], Path]) -> None:
    file = policy("offers: [{name: a}]")

    assert run("config", "check", file) == run("config", "check", file)
    assert run("config", "check", file).out == f"{file}: nothing is wrong\n"


@pytest.mark.parametrize(
    "text, said",
    [
        ("offers: [{name: A}]", "$.offers[0].name: expected a DNS label"),
        ("offers: [{name: a, through: extended}]", "$.offers[0].through: write dra, and the"),
        ("vendors: [{name: nvidea}]", "$.vendors[0].name: no vendor 'nvidea' is installed, did"),
        ("vendors: [{name: nvidia, options: {x: 1}}]", "$.vendors[0].options.x: unknown key"),
        ("a: [", "policy.yaml, line 2, column 1: "),
    ],
)
def test_wrong_policy_is_bad_input(
    run: Run, policy: Callable[[str], Path], text: str, said: str
) -> None:
    answer = run("config", "check", policy(text))

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_shown_policy_has_every_default_and_is_a_policy_again(
    run: Run, policy: Callable[[str], Path]
) -> None:
    file = policy("offers: [{name: a, sharing: {shares: 3}}]")

    shown = run("config", "show", file)
    file.write_text(shown.out)

    assert "graceForUnknown: 30s" in shown.out
    assert read_policy_file(file).offers[0].sharing.shares == 3
    assert run("config", "show", file).out == shown.out


def test_policy_that_is_wrong_is_shown_and_told(run: Run, policy: Callable[[str], Path]) -> None:
    """Any file of the right keys was shown as if the agent would take it."""
    shown = run("config", "show", policy("kind: Pod\noffers: []\n"))

    assert (shown.code, shown.err) == (2, "$.kind: expected NodePolicy, found 'Pod'\n")
    assert "graceForUnknown: 30s" in shown.out


def test_built_in_policy_is_shown_where_no_file_is_named(run: Run) -> None:
    shown = run("config", "show", "-o", "json")

    assert from_tree(Policy, json.loads(shown.out)) == Policy()


def test_schema_is_a_json_schema_of_the_policy(run: Run) -> None:
    schema = json.loads(run("config", "schema").out)

    assert schema["$ref"] == "#/$defs/Policy"
    assert "offers" in schema["$defs"]["Policy"]["properties"]


def test_vendors_are_listed_with_their_hardware_and_abilities(run: Run, basic: Path) -> None:
    answer = run("vendor", "list", "--host", basic)
    rows = {line.split()[0]: line.split() for line in answer.lines[1:]}

    assert answer.code == 0
    assert answer.lines[0].split() == (
        ["VENDOR", "VERSION", "API", "HARDWARE", "LOADED", "ISOLATION", "ABILITIES", "WHY", "NOT"]
    )
    told = [version("accelkit"), "1", "any", "yes", "thread", "diagnosis", "health", "-"]
    assert rows["generic"][1:] == told
    assert rows["sim"][3:5] == ["yes", "yes"]
    assert " ".join(rows["nvidia"]).endswith("none of its hardware is on the PCI bus")


def test_vendors_as_json_have_numbers_and_lists(run: Run, basic: Path) -> None:
    tree = json.loads(run("vendor", "list", "--host", basic, "-o", "json").out)
    nvidia = next(item for item in tree["items"] if item["vendor"] == "nvidia")

    assert (tree["kind"], nvidia["api"], nvidia["hardware"], nvidia["loaded"]) == (
        "VendorList",
        1,
        False,
        True,
    )
    assert "health" in nvidia["abilities"]


def test_plugin_that_could_not_be_loaded_is_listed_with_the_reason(basic: Path) -> None:
    broken = LoadFailure(plugin="acme", code="plugin-load", reason="no module", remedy="install it")

    (row,) = installed(Registry(failures=(broken,)), open_host(str(basic)))

    assert row.cells == ("acme", *"---", "no", *"--", "no module [plugin-load]; install it")


def test_every_metric_is_listed(run: Run) -> None:
    table = run("metrics")
    tree = json.loads(run("metrics", "-o", "json").out)

    assert [line.split()[0] for line in table.lines] == ["NAME", *(m.name for m in ALL)]
    assert [item["name"] for item in tree["items"]] == [m.name for m in ALL]


def test_versions_of_what_is_spoken_are_told(run: Run) -> None:
    tree = json.loads(run("version", "-o", "json").out)

    assert run("version").lines[1] == f"accelkit            {version('accelkit')}"
    assert (tree["accelkit"], tree["pluginApi"], tree["machine"]) == (
        version("accelkit"),
        "1",
        "machine/1",
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_asks_accelkit(run: Run, shell: str) -> None:
    answer = run("completion", shell)

    assert answer.code == 0
    assert f"_ACCELKIT_COMPLETE={shell}_complete" in answer.out


def test_help_lists_every_command_with_what_it_is_for(run: Run) -> None:
    text = " ".join(run("--help").out.split())

    assert [word for word, (_, said) in COMMANDS.items() if f"{word} {said}" not in text] == []


@pytest.mark.parametrize("word", sorted(COMMANDS.keys() - {"agent"}))
def test_every_command_has_help(run: Run, word: str) -> None:
    answer = run(word, "--help")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.lower().startswith(f"usage: accelkit {word}")


def test_misspelt_command_is_bad_input_with_a_guess(run: Run) -> None:
    answer = run("devces")

    assert answer.code == 2
    assert answer.err.endswith("Error: there is no command 'devces', did you mean 'devices'?\n")
