"""Keys of the policy whose function is not there yet."""

import pytest

from accelkit.core.not_yet import NOT_YET, TEXT, not_yet
from accelkit.core.policy import Policy
from accelkit.core.policy_check import parse_policy

EXAMPLES: dict[str, object] = {
    "$.offers[0].sharing.enforce": {"offers": [{"name": "a", "sharing": {"enforce": "cgroup"}}]},
    "$.http.page": {"http": {"page": "listen"}},
    "$.labels.file": {"labels": {"file": "/labels"}},
}


def test_every_one_of_them_has_an_example() -> None:
    assert len(EXAMPLES) == len(NOT_YET)


@pytest.mark.parametrize("path", EXAMPLES)
def test_key_without_its_function_is_refused(path: str) -> None:
    assert list(not_yet(parse_policy(EXAMPLES[path]))) == [(path, TEXT)]


def test_defaults_are_fine() -> None:
    assert list(not_yet(Policy())) == []


def test_every_changed_part_of_a_block_is_told() -> None:
    tree = {"labels": {"file": "/labels", "names": ["gfd"]}}

    assert [path for path, _ in not_yet(parse_policy(tree))] == ["$.labels.file", "$.labels.names"]


def test_other_values_of_such_a_key_may_work_already() -> None:
    tree = {"offers": [{"name": "a", "sharing": {"shares": 2, "enforce": "library"}}]}

    assert list(not_yet(parse_policy(tree))) == []
