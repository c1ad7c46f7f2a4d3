"""Keys of the policy whose function is not there yet."""

import pytest

from accelkit.core.not_yet import NOT_YET, TEXT, not_yet
from accelkit.core.policy import Policy
from accelkit.core.policy_check import parse_policy

EXAMPLES: dict[str, object] = {
    "$.vendors[1].isolation": {"vendors": [{"name": "a"}, {"name": "b", "isolation": "process"}]},
    "$.read.telemetry": {"read": {"telemetry": "1s"}},
    "$.layouts": {"layouts": {"a": {"1g": 1}}},
    "$.partitioning[0].how": {"partitioning": [{"how": "dynamic"}]},
    "$.partitioning[0].layout": {"partitioning": [{"layout": "a"}]},
    "$.partitioning[0].mode": {"partitioning": [{"mode": "a"}]},
    "$.partitioning[0].profiles": {"partitioning": [{"profiles": ["a"]}]},
    "$.partitioning[0].foreign": {"partitioning": [{"foreign": "destroy"}]},
    "$.partitioning[0].when": {"partitioning": [{"when": "drained"}]},
    "$.offers[0].extendedResource": {"offers": [{"name": "a", "extendedResource": "a/b"}]},
    "$.offers[0].sharing.divide": {"offers": [{"name": "a", "sharing": {"divide": "equal"}}]},
    "$.offers[0].sharing.enforce": {"offers": [{"name": "a", "sharing": {"enforce": "mps"}}]},
    "$.offers[0].sharing.unit": {"offers": [{"name": "a", "sharing": {"unit": "2Gi"}}]},
    "$.offers[0].sharing.timeslice": {"offers": [{"name": "a", "sharing": {"timeslice": "long"}}]},
    "$.offers[0].sharing.claimsMayAsk": {
        "offers": [{"name": "a", "sharing": {"claimsMayAsk": ["enforce"]}}]
    },
    "$.health.recoverAfter": {"health": {"recoverAfter": "1s"}},
    "$.health.flap.changes": {"health": {"flap": {"changes": 9}}},
    "$.backends.extended.check": {"backends": {"extended": {"check": False}}},
    "$.http.page": {"http": {"page": "listen"}},
    "$.labels.file": {"labels": {"file": "/labels"}},
    "$.telemetry.names": {"telemetry": {"names": ["dcgm"]}},
}


def test_every_one_of_them_has_an_example() -> None:
    assert len(EXAMPLES) == len(NOT_YET)


@pytest.mark.parametrize("path", EXAMPLES)
def test_key_without_its_function_is_refused(path: str) -> None:
    assert list(not_yet(parse_policy(EXAMPLES[path]))) == [(path, TEXT)]


def test_defaults_are_fine() -> None:
    assert list(not_yet(Policy())) == []


def test_every_changed_part_of_a_block_is_told() -> None:
    tree = {"health": {"flap": {"changes": 9, "within": "1s"}}}

    assert [path for path, _ in not_yet(parse_policy(tree))] == [
        "$.health.flap.changes",
        "$.health.flap.within",
    ]
