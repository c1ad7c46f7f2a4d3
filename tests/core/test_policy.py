"""The policy as values: defaults, and the examples that operators start from."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelkit.agent.reload import load_yaml, read_policy_file
from accelkit.core.policy import DEFAULT_OFFERS, DraPolicy, Policy, VendorPolicy
from accelkit.core.policy_check import parse_policy, policy_problems
from accelkit.core.serde import schema_of, to_tree
from accelkit.core.values import FrozenMap

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/policies").glob("*.yaml"))
EVERYTHING = next(p for p in EXAMPLES if p.stem == "everything")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_no_problems(path: Path) -> None:
    assert policy_problems(read_policy_file(path)) == ()


def test_example_of_everything_is_the_defaults() -> None:
    """Vendors, expect and partitioning are examples there, of items with their defaults."""
    policy = read_policy_file(EVERYTHING)

    shown = to_tree(policy)
    assert isinstance(shown, dict)
    for example in ("vendors", "expect", "partitioning"):
        shown[example] = []
    assert shown == to_tree(Policy())
    assert policy.vendors == (VendorPolicy(name="nvidia"), VendorPolicy(name="generic"))


def test_example_of_everything_names_every_key() -> None:
    text = EVERYTHING.read_text()

    definitions = schema_of(Policy)["$defs"]
    assert isinstance(definitions, dict)
    keys = {key for definition in definitions.values() for key in _properties(definition)}
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}:\s", text)] == []


def _properties(definition: object) -> Iterator[str]:
    assert isinstance(definition, dict)
    yield from definition["properties"]


def test_empty_policy_offers_everything_through_the_kubelet() -> None:
    assert parse_policy(None) == parse_policy({}) == Policy()
    assert [(o.name, o.through) for o in DEFAULT_OFFERS] == [("all", "kubelet")]


def test_sockets_of_the_kubelet_are_below_its_directory() -> None:
    found = parse_policy({"paths": {"kubelet": "/k"}}).paths
    moved = parse_policy({"paths": {"podResources": "/p.sock"}}).paths

    assert found.plugins_registry == "/k/plugins_registry"
    assert found.pod_resources_socket == "/k/pod-resources/kubelet.sock"
    assert moved.pod_resources_socket == "/p.sock"


def test_policy_may_offer_nothing() -> None:
    assert parse_policy({"offers": []}).offers == ()


FULL = """
apiVersion: accelkit.dev/v1
kind: NodePolicy
vendors:
- name: nvidia
  enabled: true
  isolation: auto
  deadlineScale: 1.0
  options: {driverRoot: auto, ignoreXids: []}
- name: generic
  options:
    devices:
    - {name: fuse, match: {path: /dev/fuse}, nodes: [], permissions: rw, env: {}, group: false}
layouts:
  small: {"1g.10gb": 7}
  mixed: {"3g.40gb": 1, "1g.10gb": 4}
partitioning:
- select: {vendor: nvidia, product: "*H100*", node: ["gpu-a-*"]}
  how: layout
  layout: mixed
offers:
- name: shared-a10
  select: {vendor: nvidia, product: "*A10*"}
  resource: example.com/a10.shared
  sharing: {shares: 4, divide: equal, unit: 1Gi}
- name: rest
  select: {}
  through: dra
  sharing: {shares: 1}
telemetry: {names: [otel, dcgm]}
"""


def test_policy_with_all_that_can_be_said_is_read() -> None:
    policy = parse_policy(load_yaml(FULL))

    assert policy.layouts["mixed"] == FrozenMap({"1g.10gb": 4, "3g.40gb": 1})
    assert policy.partitioning[0].select.product == ("*H100*",)
    assert policy_problems(policy) == ()


@pytest.mark.parametrize("word", ["on", "off", "yes", "no"])
def test_no_key_is_spelt_as_yaml_spells_booleans(word: str) -> None:
    enums = re.findall(r"'enum': \[([^]]*)\]", str(schema_of(Policy)))

    assert not any(f"'{word}'" in words for words in enums)


def test_driver_is_named_after_its_vendor_unless_the_policy_names_another() -> None:
    dra = DraPolicy(drivers=FrozenMap({"nvidia": "gpu.corp.example"}))

    assert (dra.driver_of("nvidia"), dra.driver_of("amd")) == (
        "gpu.corp.example",
        "amd.accelkit.dev",
    )
