"""What the observer of a node finds wrong, without a node."""

import pytest

from tests.node.observer import Seen, gone, recorded_twice, two_owners


def seen(pod: str, gpus: set[int], parts: set[int] | None = None) -> Seen:
    return Seen(pod, frozenset(gpus), frozenset(parts or ()))


@pytest.mark.parametrize(
    "found, wrong",
    [
        ([seen("a", {0}), seen("b", {1})], []),
        ([seen("a", {0}), seen("a", {0})], []),
        ([seen("a", {0}, {3, 4}), seen("b", {0}, {5, 6})], []),
        ([seen("a", {0}), seen("b", {0})], ["GPU 0 is in pods a and b"]),
        ([seen("a", {0}), seen("b", {0}, {3})], ["GPU 0 is in pods a and b"]),
        ([seen("a", {0}, {3, 4}), seen("b", {0}, {4})], ["partition 4 is in pods a and b"]),
        ([seen("a", {7}), seen("b", {7})], []),
        ([seen(pod, {7}) for pod in "abc"], ["GPU 7 is in pods a, b, c, more than 2"]),
    ],
)
def test_device_of_two_pods_is_found(found: list[Seen], wrong: list[str]) -> None:
    assert list(two_owners(found, {7: 2})) == wrong


def test_partition_that_was_taken_from_a_pod_is_found() -> None:
    found = [seen("a", {0}, {3, 4})]

    assert list(gone(found, {3, 4, 5})) == []
    assert list(gone(found, {3})) == ["pod a has partition 4, which is no more"]


def entry(*names: str, state: str = "ready") -> dict[str, object]:
    return {"state": state, "pieces": [{"device": f"nvidia/{name}"} for name in names]}


@pytest.mark.parametrize(
    "entries, wrong",
    [
        ({"1": entry("gpu-a"), "2": entry("gpu-b", "gpu-c-1g-0")}, []),
        ({"1": entry("gpu-a"), "2": entry("gpu-a", state="releasing")}, []),
        ({"1": entry("gpu-s"), "2": entry("gpu-s")}, []),
        ({"1": entry("gpu-a", "gpu-a-1g-0")}, []),
        ({"1": entry("gpu-a"), "2": entry("gpu-a")}, ["gpu-a is of claims 1 and 2"]),
        (
            {"1": entry("gpu-a"), "2": entry("gpu-a-1g-0", state="working")},
            ["gpu-a-1g-0 is of claim 2, and gpu-a of 1"],
        ),
    ],
)
def test_device_of_two_claims_is_found(
    entries: dict[str, dict[str, object]], wrong: list[str]
) -> None:
    assert list(recorded_twice(entries, {"gpu-s"})) == wrong
