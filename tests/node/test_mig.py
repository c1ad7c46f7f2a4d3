"""GPUs that are had whole or in parts, as claims want them: made and unmade on the machine."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.node.agents import NodeAgent
from tests.node.claims import (
    DRIVER,
    allocated,
    claim,
    claiming,
    from_template,
    in_containers,
    request,
    results,
    said,
)
from tests.node.cluster import Cluster
from tests.node.containers import Sight, sight, why_unscheduled
from tests.node.measured import Measured
from tests.node.releases import needs
from tests.node.serving import forget, run, serving, taints
from tests.node.simulated import Gpus

pytestmark = needs("DRAPartitionableDevices")
COUNT = 2
DYNAMIC = [{"select": {"vendor": "nvidia"}, "how": "dynamic"}]


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Gpus:
    return Gpus(whole_run_cluster, count=COUNT)


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Gpus) -> Iterator[NodeAgent]:
    with serving(whole_run_cluster, machine, partitioning=DYNAMIC) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    forget(cluster)


def caps(seen: Sight) -> frozenset[str]:
    """Rights to parts that a container has."""
    return frozenset(name for name in seen.nodes if "cap" in name)


def test_two_parts_of_one_gpu_are_asked_for_by_their_parent(
    cluster: Cluster, machine: Gpus
) -> None:
    """Each container finds its own part, and nothing of the other's."""
    parts = [request("big", profile="3g.40gb"), request("small", profile="1g.10gb")]
    same = {"requests": ["big", "small"], "matchAttribute": f"{DRIVER}/parent"}
    claim(cluster, "pair", *parts, constraints=[same])

    run(cluster, in_containers(claiming("user", "pair"), big=["pair/big"], small=["pair/small"]))

    big, small = (sight(cluster, "user", name) for name in ("big", "small"))
    (minor,) = (m for m in range(COUNT) if machine.parts(m))
    assert [profile for profile, _ in machine.parts(minor)] == ["1g.10gb", "3g.40gb"]
    assert big.nodes - caps(big) == small.nodes - caps(small) == {f"nvidia{minor}"}
    assert len(caps(big)) == len(caps(small)) == 2  # of the GPU instance, and its compute instance
    assert not caps(big) & caps(small)


def test_next_alternative_is_taken_when_the_first_is_not_to_be_had(cluster: Cluster) -> None:
    claim(cluster, "all", request(count=COUNT - 1, profile="whole"))
    claim(cluster, "part", request(profile="4g.40gb"))
    run(cluster, claiming("first", "all"), claiming("second", "part"))
    wishes = [("best", "whole"), ("good", "4g.40gb"), ("small", "1g.10gb")]
    exactly = [(name, request(profile=profile)["exactly"]) for name, profile in wishes]
    either = {"name": "any", "firstAvailable": [{"name": n, **e} for n, e in exactly]}
    claim(cluster, "listed", either)

    run(cluster, in_containers(claiming("user", "listed"), main=["listed/any"]))

    (got,) = results(cluster, "listed")
    assert got["request"] == "any/small"
    assert "-1g10gb-" in got["device"]
    assert len(caps(sight(cluster, "user"))) == 2


def test_whole_gpus_wait_for_their_parts_to_end(
    cluster: Cluster, machine: Gpus, measured: Measured
) -> None:
    claim(cluster, "part", request(profile="1g.10gb"))
    begun = time.monotonic()
    run(cluster, claiming("part", "part"))
    measured.add("a pod with a new part of a GPU: until it runs", time.monotonic() - begun)
    (minor,) = (m for m in range(COUNT) if machine.parts(m))
    assert machine.cut(minor)
    assert [profile for profile, _ in machine.parts(minor)] == ["1g.10gb"]
    claim(cluster, "wholes", request(count=COUNT, profile="whole"))
    cluster.apply(claiming("wholes", "wholes"))
    cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "wholes"))

    begun = time.monotonic()
    cluster.kubectl("delete", "pod", "part", "--wait=false")
    cluster.wait_for_phase("wholes", "Running")

    measured.add(
        "the last part of a GPU ends: until a pod that waits has it whole", time.monotonic() - begun
    )
    assert set(allocated(cluster, "wholes")) == set(machine.whole)
    assert sight(cluster, "wholes").nodes == {f"nvidia{m}" for m in range(COUNT)}
    assert [machine.parts(m) for m in range(COUNT)] == [[]] * COUNT
    assert [machine.cut(m) for m in range(COUNT)] == [False] * COUNT


BURST = ("1g.10gb", "3g.40gb", "whole", "2g.20gb", "whole", "4g.40gb")
"""More than there is at once. Faster than three a second, the kubelet may not read its claims."""


def test_mixed_pods_in_a_burst_never_overlap(
    cluster: Cluster, machine: Gpus, measured: Measured
) -> None:
    """And what one of them gives back is nothing that the next one has to wait for."""
    for profile in set(BURST):
        claim(cluster, _dashed(profile), request(profile=profile), kind="ResourceClaimTemplate")
    names = [f"pod-{number}" for number, _ in enumerate(BURST)]
    begun = time.monotonic()
    for number, (name, profile) in enumerate(zip(names, BURST, strict=True)):
        made = from_template(claiming(name, _dashed(profile)))
        made["spec"]["containers"][0]["command"] = ["sleep", "1"]
        cluster.apply(made)
        time.sleep(max(0.0, begun + number / 3 - time.monotonic()))
    tainted: dict[str, object] = {}

    def done() -> bool:
        tainted.update(taints(cluster))
        assert not twice(cluster)
        return all(cluster.phase(name) == "Succeeded" for name in names)

    cluster.wait_for("all done", done)
    measured.add(
        f"{len(BURST)} pods for parts and wholes of {COUNT} GPUs, each for a second",
        time.monotonic() - begun,
    )
    assert tainted == {}
    assert [said(cluster, name, "FailedPrepareDynamicResources") for name in names] == [""] * len(
        names
    )
    cluster.wait_for("all unmade", lambda: not machine.parts(0) and not machine.parts(1))


def _dashed(profile: str) -> str:
    return profile.replace(".", "-")


def twice(cluster: Cluster) -> list[tuple[str, int]]:
    """GPU and slot of everything that several claims have at once."""
    items = cluster.api("/apis/resource.k8s.io/v1/resourceclaims")["items"]
    devices = [
        result["device"]
        for item in items
        for result in item.get("status", {})
        .get("allocation", {})
        .get("devices", {})
        .get("results", ())
    ]
    taken = Counter(place for device in devices for place in places(device))
    return [place for place, times in taken.items() if times > 1]


SIZES = {"1g10gb": 1, "2g20gb": 2, "3g40gb": 4, "4g40gb": 4}


def places(device: str) -> list[tuple[str, int]]:
    """GPU and each slot of a device, as its name says."""
    gpu, slug, start = device.rsplit("-", 2)
    if slug not in SIZES:
        return [(device, slot) for slot in range(8)]
    return [(gpu, int(start) + slot) for slot in range(SIZES[slug])]
