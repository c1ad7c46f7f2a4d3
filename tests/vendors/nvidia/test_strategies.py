"""The strategies none, single and mixed of NVIDIA's device plugin, in the words of a policy."""

from collections.abc import Iterable

import attrs
import pytest

from accelkit.backends.kubelet.backend import create
from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import DeviceId, Snapshot
from accelkit.core.partitioning import Create, Destroy, SetMode, plan, steps
from accelkit.core.policy import Offer, Partitioning, PartitioningHow, Policy, Selection
from accelkit.core.snapshot import build_view
from accelkit.core.values import FrozenMap
from accelkit.core.view import View
from tests.vendors.nvidia.bench import Bench, Make
from tests.vendors.opened import NOW

LAYOUTS = FrozenMap(
    {
        "small": FrozenMap({"1g.10gb": 7}),
        "mixed": FrozenMap({"3g.40gb": 1, "1g.10gb": 4}),
    }
)
KUBELET = Offer(name="all")


def cut_to(layout: str, *offers: Offer, select: Selection = Selection()) -> Policy:  # noqa: B008 - a value
    rule = Partitioning(select=select, how=PartitioningHow.LAYOUT, layout=layout)
    return Policy(offers=offers or (KUBELET,), partitioning=(rule,), layouts=LAYOUTS)


def snapshot_of(bench: Bench) -> Snapshot:
    return Snapshot(node="node", devices=bench.devices(), answered=frozenset({"nvidia"}))


def carried_out(bench: Bench, policy: Policy, made: Iterable[DeviceId] = ()) -> list[str]:
    """Do on the machine what is left to do; returns the steps, GPUs called by their position."""
    snapshot = snapshot_of(bench)
    todo = steps(snapshot, plan(snapshot, policy, made=frozenset(made)))
    for step in todo:
        there = {device.id: device for device in bench.devices()}
        match step:
            case Destroy(partition=partition):
                bench.vendor.destroy(bench.host, there[partition])
            case SetMode(device=device, mode=mode):
                bench.vendor.set_mode(bench.host, there[device], mode)
            case Create(device=device, placement=place, partition=partition):
                assert bench.vendor.create(bench.host, there[device], place).id == partition
    gpus = [device.id for device in snapshot.devices if device.parent is None]
    words = [str(step) for step in todo]
    for n, gpu in enumerate(gpus):
        words = [word.replace(str(gpu), f"gpu{n}") for word in words]
    return words


def seen(bench: Bench, policy: Policy) -> View:
    snapshot = snapshot_of(bench)
    return build_view(
        snapshot,
        policy,
        edits={device.id: ContainerEdits() for device in snapshot.devices},
        domains={"nvidia": "nvidia.com"},
        previous=None,
        now_s=0.0,
        now=NOW,
    )


def listed(bench: Bench, policy: Policy) -> dict[str, int]:
    """How many healthy devices the kubelet gets of each resource."""
    document = create(policy).render(seen(bench, policy))
    return {name: sum(d.healthy for d in devices) for name, devices in document.items()}


def test_none_leaves_gpus_whole(bench: Make) -> None:
    made = bench("h100", 2)

    assert carried_out(made, Policy()) == []
    assert listed(made, Policy()) == {"nvidia.com/gpu": 2}


@pytest.mark.slow
def test_mixed_names_each_profile(bench: Make) -> None:
    made, policy = bench("h100", 2), cut_to("mixed")

    done = carried_out(made, policy)

    assert done[:3] == ["set-mode gpu0 mig", "set-mode gpu1 mig", "create gpu0-1g10gb-0"]
    assert listed(made, policy) == {"nvidia.com/mig-1g.10gb": 8, "nvidia.com/mig-3g.40gb": 2}
    assert carried_out(made, policy) == []


@pytest.mark.slow
def test_single_gives_all_partitions_one_name(bench: Make) -> None:
    policy = cut_to("small", Offer(name="single", resource="nvidia.com/gpu"))
    made = bench("h100", 2)

    carried_out(made, policy)

    assert listed(made, policy) == {"nvidia.com/gpu": 14}


def test_a_template_with_the_profile_is_mixed_under_names_of_ones_own(bench: Make) -> None:
    policy = cut_to("mixed", Offer(name="own", resource="example.com/gpu-{profile}"))
    made = bench("h100", 1)

    carried_out(made, policy)

    assert listed(made, policy) == {"example.com/gpu-1g.10gb": 4, "example.com/gpu-3g.40gb": 1}


def test_gpus_of_a_node_may_be_cut_and_whole(bench: Make) -> None:
    made = bench("h100", 2)
    first = made.devices()[0].id.name

    carried_out(made, cut_to("mixed", select=Selection(name=(first,))))

    assert listed(made, cut_to("mixed", select=Selection(name=(first,)))) == {
        "nvidia.com/gpu": 1,
        "nvidia.com/mig-1g.10gb": 4,
        "nvidia.com/mig-3g.40gb": 1,
    }


@pytest.mark.slow
def test_another_layout_keeps_what_it_can_and_back_again(bench: Make) -> None:
    made = bench("h100", 1)
    carried_out(made, cut_to("small"))
    parts = {device.id for device in made.devices() if device.parent is not None}

    there = carried_out(made, cut_to("mixed"), parts)
    back = carried_out(
        made, cut_to("small"), {device.id for device in made.devices() if device.parent}
    )

    assert there == [*(f"destroy gpu0-1g10gb-{n}" for n in (4, 5, 6)), "create gpu0-3g40gb-4"]
    assert back == ["destroy gpu0-3g40gb-4", *(f"create gpu0-1g10gb-{n}" for n in (4, 5, 6))]


@pytest.mark.parametrize("product, half", [("h100", "3g.40gb"), ("a100-40", "3g.20gb")])
def test_layout_is_made_again_after_a_reboot(bench: Make, product: str, half: str) -> None:
    """Partitions end with the boot, whether the mode does (H100) or not (A100)."""
    layouts = FrozenMap({"halves": FrozenMap({half: 2})})
    policy = attrs.evolve(cut_to("halves"), layouts=layouts)
    made = bench(product, 1)
    made.do("mig gpu-0 on")
    carried_out(made, policy)
    before = made.devices()
    made.do("reboot")
    after = made.devices()

    done = carried_out(made, policy)

    assert [device.parent for device in after] == [None]
    assert len([step for step in done if step.startswith("create")]) == 2
    assert [device.id for device in made.devices()] == [device.id for device in before]


def test_a_partition_that_a_claim_has_made_is_offered_as_it_was(bench: Make) -> None:
    """Neither selections nor documents can tell them apart."""
    dra = Offer(name="dra", through="dra", select=Selection(kind=("mig",)))
    rule = Partitioning(how=PartitioningHow.DYNAMIC, profiles=("3g*",))
    policy = Policy(offers=(dra, KUBELET), partitioning=(rule,))
    made = bench("h100", 1)
    made.do("mig gpu-0 on")
    before = seen(made, policy)
    (wanted, _) = before.potential

    assert wanted.placement is not None
    real = made.vendor.create(made.host, made.devices()[0], wanted.placement)
    after = seen(made, policy)

    live = attrs.evolve(wanted, nodes=real.nodes, aliases=real.aliases, handle=real.handle)
    assert real == live
    assert after.assignments == before.assignments
    assert after.offered[real.id] == real


@pytest.mark.parametrize("product", ["a100-40", "h100", "a30", "rtx-pro-6000", "b200"])
def test_every_product_can_be_filled_with_its_smallest_profile(bench: Make, product: str) -> None:
    made = bench(product, 1)
    made.do("mig gpu-0 on")
    smallest = made.devices()[0].profiles[0]
    layouts = FrozenMap({"full": FrozenMap({smallest.name: smallest.limit or 0})})
    policy = attrs.evolve(cut_to("full"), layouts=layouts)

    carried_out(made, policy)

    profile = smallest.name.replace("+", ".")
    assert listed(made, policy) == {f"nvidia.com/mig-{profile}": smallest.limit}
