"""GPUs that several pods have at once: how much each gets, and what its containers are told."""

from collections.abc import Iterator

import pytest

from tests.node.agents import NodeAgent
from tests.node.claims import (
    DRA,
    DRIVER,
    claim,
    claim_config,
    claiming,
    config,
    request,
    results,
    said,
)
from tests.node.cluster import Cluster
from tests.node.containers import sight, why_unscheduled
from tests.node.objects import Document, quantity
from tests.node.releases import needs
from tests.node.serving import forget, run, serving
from tests.node.simulated import Gpus

pytestmark = needs("DRAConsumableCapacity")
ASKED, EQUAL, FREE = "asked", "equal", "free"
HAMI_CORE = "/usr/local/vgpu"
MEMORY, CORES = "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_SM_LIMIT_0"


@pytest.fixture(scope="module")
def machine(whole_run_cluster: Cluster) -> Gpus:
    return Gpus(whole_run_cluster, count=3, options={"hamiCore": HAMI_CORE})


@pytest.fixture(scope="module")
def agent(whole_run_cluster: Cluster, machine: Gpus) -> Iterator[NodeAgent]:
    """A GPU for each way of sharing."""
    sharing: dict[str, Document] = {
        ASKED: {"divide": "requested", "enforce": "library"},
        EQUAL: {"divide": "equal", "shares": 4, "enforce": "library"},
        FREE: {"shares": 2, "claimsMayAsk": ["timeslice"]},
    }
    offers = [
        {**DRA, "name": name, "select": {"name": [device]}, "sharing": terms}
        for (name, terms), device in zip(sharing.items(), machine.whole, strict=True)
    ]
    with serving(whole_run_cluster, machine, *offers) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(cluster: Cluster, agent: NodeAgent) -> Iterator[None]:  # noqa: ARG001 - it frees claims
    yield
    forget(cluster)


def share(offer: str, **amounts: str) -> Document:
    """A request for a share of the GPU of an offer."""
    fields: Document = {"capacity": {"requests": amounts}} if amounts else {}
    return request(where=f'device.attributes["{DRIVER}"].offer == "{offer}"', **fields)


def amounts(cluster: Cluster, name: str) -> dict[str, int]:
    """What a claim got of its device."""
    (result,) = results(cluster, name)
    return {key: int(quantity(text)) for key, text in result["consumedCapacity"].items()}


def test_gpu_is_shared_by_the_memory_that_pods_ask_for(cluster: Cluster) -> None:
    wishes = {"a": ("20Gi", "10"), "b": ("20000Mi", "25"), "c": ("10Gi", "1"), "d": ("28Gi", "5")}
    for name, (memory, cores) in wishes.items():
        claim(cluster, name, share(ASKED, memory=memory, cores=cores))
    claim(cluster, "e", share(ASKED, memory="2Gi", cores="1"))
    run(cluster, *(claiming(name, name) for name in wishes))
    cluster.apply(claiming("e", "e"))

    assert "cannot allocate" in cluster.wait_for("a reason", lambda: why_unscheduled(cluster, "e"))
    seen = {name: sight(cluster, name) for name in wishes}
    told = {name: (one.environment[MEMORY], one.environment[CORES]) for name, one in seen.items()}
    assert told == {
        "a": ("20480m", "10"),
        "b": ("20480m", "25"),  # whole units, as in the claim's status
        "c": ("10240m", "1"),
        "d": ("28672m", "5"),
    }
    assert amounts(cluster, "b") == {"memory": 20 << 30, "cores": 25}
    assert {one.nodes for one in seen.values()} == {frozenset({"nvidia0"})}
    shares = {results(cluster, name)[0]["shareID"] for name in wishes}
    assert len(shares) == len(wishes)

    cluster.kubectl("delete", "pod", "c", "--wait=false")

    cluster.wait_for_phase("e", "Running")
    assert sight(cluster, "e").environment[MEMORY] == "2048m"


def test_limits_are_enforced_by_a_library_in_the_container(cluster: Cluster) -> None:
    """Its processes find each other by a file that no other pod sees."""
    for name in ("one", "two"):
        claim(cluster, name, share(ASKED, memory="8Gi", cores="50"))
    run(cluster, *(claiming(name, name) for name in ("one", "two")))
    cache = sight(cluster, "one").environment["CUDA_DEVICE_MEMORY_SHARED_CACHE"]

    cluster.exec_in_pod("one", "sh", "-c", f"echo mine > {cache}")

    preload = cluster.exec_in_pod("one", "cat", "/etc/ld.so.preload")
    assert preload.strip() == f"{HAMI_CORE}/libvgpu.so"
    assert cluster.exec_in_pod("one", "cat", preload.strip()) == "libvgpu\n"
    found = cluster.exec_in_pod("two", "sh", "-c", f"test -e {cache} && echo seen; true")
    assert found == ""


def test_equal_shares_are_the_same_whoever_has_them(cluster: Cluster) -> None:
    names = [f"pod-{number}" for number in range(5)]
    for name in names:
        claim(cluster, name, share(EQUAL))
    run(cluster, *(claiming(name, name) for name in names[:4]))
    cluster.apply(claiming(names[4], names[4]))

    assert cluster.wait_for("a reason", lambda: why_unscheduled(cluster, names[4]))
    seen = [sight(cluster, name) for name in names[:2]]
    assert [one.environment[MEMORY] for one in seen] == ["19456m"] * 2
    assert [one.environment[CORES] for one in seen] == ["25"] * 2
    assert amounts(cluster, names[0]) == {"memory": 19 << 30, "cores": 25, "shares": 1}


def test_pods_of_one_gpu_agree_on_its_time_slices(cluster: Cluster, machine: Gpus) -> None:
    """The second one is told why it cannot have it otherwise, and has it when the first is gone."""
    for name, slice_ in (("long", "long"), ("short", "short")):
        block = config(claim_config(sharing={"timeslice": slice_}))
        claim(cluster, name, share(FREE), configs=[block])
    run(cluster, claiming("long", "long"))
    assert machine.time_slice(2) == 3

    cluster.apply(claiming("short", "short"))

    refused = "FailedPrepareDynamicResources"
    text = cluster.wait_for("an event", lambda: said(cluster, "short", refused))
    assert "timeslice cannot be short, since the claim default/long needs long" in text
    assert machine.time_slice(2) == 3

    cluster.kubectl("delete", "pod", "long", "--wait")
    assert machine.time_slice(2) == 0
    cluster.kubectl("label", "pod", "short", "again=now")  # or the kubelet waits for a minute

    cluster.wait_for_phase("short", "Running")
    assert machine.time_slice(2) == 1


def test_claim_may_not_ask_what_its_offer_does_not_allow(cluster: Cluster) -> None:
    block = config(claim_config(sharing={"timeslice": "long"}))
    claim(cluster, "asks", share(EQUAL), configs=[block])
    cluster.apply(claiming("asks", "asks"))

    refused = "FailedPrepareDynamicResources"
    text = cluster.wait_for("an event", lambda: said(cluster, "asks", refused))

    assert "$.sharing.timeslice: the offer equal does not let claims ask for it" in text
