import pytest

from accelkit.core.errors import ConfigError
from accelkit.core.policy_check import parse_policy
from accelkit.core.serde.pruning import without


@pytest.mark.parametrize(
    "path, left",
    [
        ("$.a", {"b": [{"c": 1, "x.y": 2}]}),
        ("$.b[0].c", {"a": 0, "b": [{"x.y": 2}]}),
        ('$.b[0]["x.y"]', {"a": 0, "b": [{"c": 1}]}),
        ("$.b[0].missing", {"a": 0}),
        ("$.b[0]", {"a": 0}),
        ("$.b[7].c", {"a": 0}),
        ("$.missing", None),
        ("$", None),
    ],
)
def test_what_is_wrong_goes_and_what_lacks_something_goes_with_it(path: str, left: object) -> None:
    assert without({"a": 0, "b": [{"c": 1, "x.y": 2}]}, [path]) == left


def test_mistakes_of_spelling_and_of_meaning_are_told_at_once() -> None:
    tree = {
        "offers": [
            {"name": "a", "sharring": {"shares": 2}},
            {"name": "a", "resource": "kubernetes.io/x", "sharing": {"shares": 0}},
        ],
        "read": {"health": "0s", "inventory": "fast"},
        "labels": {"file": "/labels"},
    }

    with pytest.raises(ConfigError) as caught:
        parse_policy(tree)

    assert [path for path, _ in caught.value.problems] == [
        "$.read.inventory",
        "$.read.health",
        "$.offers[0].sharring",
        "$.offers[1]",
        "$.offers[1].resource",
        "$.offers[1].sharing.shares",
        "$.labels.file",
    ]


@pytest.mark.parametrize("tree", [7, [], {1: 2}])
def test_what_is_no_mapping_of_words_has_no_rest_to_look_at(tree: object) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_policy(tree)

    assert len(caught.value.problems) == 1
