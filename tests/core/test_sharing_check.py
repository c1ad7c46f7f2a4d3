"""What is wrong with how offers share."""

import pytest

from accelkit.core.policy import Offer
from accelkit.core.serde import from_tree
from accelkit.core.sharing_check import sharing_problems

DRA = {"through": "dra"}


def found(sharing: dict[str, object], **offer: object) -> list[tuple[str, str]]:
    tree = {"name": "a", **offer, "sharing": sharing}
    return [*sharing_problems(from_tree(Offer, tree), "$")]


@pytest.mark.parametrize(
    "sharing,offer",
    [
        ({}, {}),
        ({"shares": 4, "divide": "equal", "unit": "2Gi", "timeslice": "long"}, {}),
        ({"shares": 4, "enforce": "mps"}, {"select": {"partition": False}}),
        ({"divide": "requested", "unit": "2Gi", "timeslice": "short"}, DRA),
        ({"divide": "requested", "enforce": "cgroup"}, DRA),
        ({"shares": 128, "claimsMayAsk": ["timeslice", "enforce"]}, DRA),
        ({"shares": 2, "divide": "equal", "enforce": "library"}, {"extendedResource": "x.y/z"}),
    ],
)
def test_sharing_that_makes_sense_is_fine(
    sharing: dict[str, object], offer: dict[str, object]
) -> None:
    assert found(sharing, **offer) == []


@pytest.mark.parametrize(
    "sharing,offer,path,text",
    [
        ({"shares": 0}, {}, "$.shares", "expected 1 to 128, found 0"),
        ({"shares": 129}, {}, "$.shares", "expected 1 to 128, found 129"),
        ({"shares": 2, "divide": "equal", "unit": 0}, {}, "$.unit", "must be at least 1"),
        (
            {"divide": "requested"},
            {},
            "$.divide",
            "requested: pods have no way to ask through kubelet",
        ),
        (
            {"divide": "requested"},
            {**DRA, "extendedResource": "x.y/z"},
            "$.divide",
            "requested: an extended resource would always ask for everything",
        ),
        (
            {"shares": 2, "divide": "equal", "enforce": "cgroup"},
            {},
            "$.enforce",
            "cgroup needs to know the pod, which only dra does",
        ),
        (
            {"shares": 2, "claimsMayAsk": ["timeslice"]},
            {},
            "$.claimsMayAsk",
            "there are no claims through kubelet",
        ),
        (
            {"shares": 2, "claimsMayAsk": ["enforce", "timeslices"]},
            DRA,
            "$.claimsMayAsk[1]",
            "expected one of enforce, timeslice, did you mean 'timeslice'?",
        ),
        (
            {"shares": 2, "claimsMayAsk": ["colour"]},
            DRA,
            "$.claimsMayAsk[0]",
            "expected one of enforce, timeslice",
        ),
        (
            {"shares": 2, "enforce": "mps"},
            {"select": {"partition": True}},
            "$.enforce",
            "mps is not offered on partitions",
        ),
        (
            {"shares": 2, "enforce": "mps"},
            {"select": {"profile": "1g*"}},
            "$.enforce",
            "mps is not offered on partitions",
        ),
        (
            {"timeslice": "long"},
            DRA,
            "$.timeslice",
            "long: means nothing for a device that nobody shares; give it shares",
        ),
        (
            {"divide": "equal"},
            {},
            "$.divide",
            "equal: means nothing for a device that nobody shares; give it shares",
        ),
        (
            {"shares": 2, "enforce": "library"},
            {},
            "$.enforce",
            "library has nothing to make sure of: divide is none",
        ),
        (
            {"shares": 2, "enforce": "cgroup"},
            DRA,
            "$.enforce",
            "cgroup has nothing to make sure of: divide is none",
        ),
        (
            {"shares": 2, "unit": "2Gi"},
            {},
            "$.unit",
            "means nothing unless divide is equal or requested",
        ),
    ],
)
def test_sharing_that_cannot_be_is_refused_with_its_reason(
    sharing: dict[str, object], offer: dict[str, object], path: str, text: str
) -> None:
    assert found(sharing, **offer) == [(path, text)]
