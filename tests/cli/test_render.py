"""What Kubernetes would be told of simulated nodes, word for word, and that it would take it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import CLASSES, SLICES
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.nvidia.products import PRODUCTS
from tests.cli.conftest import Run
from tests.cli.golden import Golden

WHOLE = "offers: [{name: gpus, through: dra}]"
SHARES = "offers: [{name: gpus, through: dra, sharing: {shares: 4}}]"
PARTS = """\
partitioning: [{how: dynamic}]
offers:
- name: gpus
  select: {partition: false}
  through: dra
  extendedResource: nvidia.com/gpu
- name: parts
  through: dra
  extendedResource: "nvidia.com/mig-{profile}"
"""
BESIDE = PARTS.replace("[{how: dynamic}]", '[{select: {pci: "*:03:*"}, how: dynamic}]')
"""The first GPU as claims ask, all others whole."""
RELEASES = ("1.34", "1.35", "1.36", "1.37")

Policy = Callable[[str], Path]


@pytest.fixture(params=sorted(PRODUCTS))
def product(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def machine(tmp_path: Path, product: str, count: int = 1) -> Path:
    simulate("nvidia", product, count, str(tmp_path / "machine"))
    return tmp_path / "machine"


@pytest.mark.parametrize("name, text", [("whole", WHOLE), ("shares", SHARES)])
def test_slices_of_a_product_are_those_that_were_looked_at(
    run: Run, tmp_path: Path, policy: Policy, golden: Golden, product: str, name: str, text: str
) -> None:
    host = machine(tmp_path, product)

    answer = run("render", "dra", "--host", host, "--policy", policy(text))

    assert (answer.code, answer.err) == (0, "")
    golden(f"{product}-{name}.yaml", answer.out)


def test_classes_of_a_product_are_those_that_were_looked_at(
    run: Run, tmp_path: Path, policy: Policy, golden: Golden, product: str
) -> None:
    host = machine(tmp_path, product)
    if PRODUCTS[product].profiles:  # some take the mode at a reset only
        set_state(str(host), ["mig", "gpu-0", "on"])

    answer = run("render", "extended", "--host", host, "--policy", policy(PARTS))

    assert (answer.code, answer.err) == (0, "")
    golden(f"{product}-extended.yaml", answer.out)


def test_slices_of_a_gpu_that_claims_cut_are_those_that_were_looked_at(
    run: Run, tmp_path: Path, policy: Policy, golden: Golden
) -> None:
    host = machine(tmp_path, "h100", 2)

    answer = run("render", "dra", "--host", host, "--policy", policy(BESIDE))

    assert (answer.code, answer.err) == (0, "")
    golden("h100-dynamic.yaml", answer.out)


@pytest.mark.parametrize("release", RELEASES)
def test_rendered_objects_are_taken_by_a_server_of_the_release_and_kept_whole(
    run: Run, tmp_path: Path, policy: Policy, release: str
) -> None:
    host, file = machine(tmp_path, "h100", 2), policy(BESIDE)
    words = ("--host", host, "--policy", file)

    slices = run("render", "dra", *words, "--kubernetes", release)
    classes = run("render", "extended", *words)

    api = ApiSim(release)
    for item in yaml.safe_load_all(slices.out):
        kept = api.create(SLICES, item)
        assert kept["spec"] == item["spec"]
    for item in yaml.safe_load_all(classes.out):
        api.create(CLASSES, item)
    assert (len(api.items(SLICES)), len(api.items(CLASSES))) == (2 if release > "1.35" else 1, 8)


@pytest.mark.parametrize("backend", ["dra", "extended"])
def test_json_is_a_list_of_what_yaml_has_as_documents(
    run: Run, tmp_path: Path, policy: Policy, backend: str
) -> None:
    words = ("render", backend, "--host", machine(tmp_path, "h100"), "--policy", policy(PARTS))

    as_yaml = run(*words).out
    as_json = json.loads(run(*words, "-o", "json").out)

    assert (as_json["apiVersion"], as_json["kind"]) == ("v1", "List")
    assert as_json["items"] == [*yaml.safe_load_all(as_yaml)]


def test_what_cannot_be_read_is_told_beside_what_is_rendered(
    run: Run, tmp_path: Path, policy: Policy
) -> None:
    host = machine(tmp_path, "h100", 2)
    set_state(str(host), ["unload"])

    answer = run("render", "dra", "--host", host, "--policy", policy(WHOLE))

    assert (answer.code, answer.out) == (0, "")
    assert "problem: nvidia/" in answer.err
    assert "[driver-not-ready]" in answer.err


@pytest.mark.parametrize(
    "backend, wants", [("dra", "through: dra"), ("extended", "through: dra and extendedResource")]
)
def test_nothing_that_is_rendered_is_explained(
    run: Run, basic: Path, policy: Policy, backend: str, wants: str
) -> None:
    answer = run("render", backend, "--host", basic, "--policy", policy("offers: [{name: all}]"))

    said, _, remedy = answer.err.partition("\n")
    assert (answer.code, answer.out) == (0, "")
    assert said == f"no device of this node is in an offer with {wants}"
    advised = remedy.removeprefix("  remedy: say --policy FILE, with ")
    assert run("render", backend, "--host", basic, "--policy", policy(advised)).out != ""


def test_slices_that_a_server_would_refuse_are_a_no(run: Run, basic: Path, policy: Policy) -> None:
    file = policy(
        "backends: {dra: {drivers: {sim: 'a.example'}}}\noffers: [{name: all, through: dra}]"
    )

    answer = run("render", "dra", "--host", basic, "--policy", file, "--node", "no_such.Node")

    assert answer.code == 1
    assert "problem: a.example: pool 'no_such.Node' is not made of" in answer.err


@pytest.mark.parametrize("backend", ["kubelet", "extended"])
def test_release_matters_to_slices_alone(run: Run, basic: Path, backend: str) -> None:
    answer = run("render", backend, "--host", basic, "--kubernetes", "1.34")

    assert answer.code == 2
    assert f"--kubernetes is for dra, not for {backend}" in answer.err
