from pathlib import Path

import attrs
import pytest

from accelkit import Device, Unreadable
from accelkit.core.model import contradictions, part_of
from accelkit.vendors.nvidia import facts, mig
from accelkit.vendors.nvidia.card import card_of
from accelkit.vendors.nvidia.nvml import Nvml
from accelkit.vendors.nvidia.products import PRODUCTS
from tests.vendors.nvidia.bench import Bench, Liar, Make


def parts(bench: Bench) -> list[Device]:
    return [d for d in bench.devices() if d.parent is not None]


def test_profiles_are_those_that_the_driver_names(bench: Make) -> None:
    (device,) = bench("h100", 1).devices()

    assert (device.slots, device.mode) == (8, "whole")
    assert {p.name: (p.size, p.starts, p.limit) for p in device.profiles} == {
        "1g.10gb": (1, (0, 1, 2, 3, 4, 5, 6), 7),
        "1g.10gb+me": (1, (0, 1, 2, 3, 4, 5, 6), 1),
        "1g.20gb": (2, (0, 2, 4, 6), 4),
        "2g.20gb": (2, (0, 2, 4), 3),
        "3g.40gb": (4, (0, 4), 2),
        "4g.40gb": (4, (0,), 1),
        "7g.80gb": (8, (0,), 1),
    }
    assert device.counters == {"ce": 8, "dec": 7, "jpeg": 7, "ofa": 1, "sm": 132}


def test_gpu_that_cannot_be_cut_has_no_profiles_and_no_modes(bench: Make) -> None:
    (device,) = bench("l4", 1).devices()

    assert (device.profiles, device.modes, device.mode, device.slots) == ((), (), None, 0)


@pytest.mark.parametrize("product,live", [("a100-40", False), ("h100", True)])
def test_mode_is_live_where_no_reset_is_needed(bench: Make, product: str, live: bool) -> None:
    (device,) = bench(product, 1).devices()

    assert [(m.name, m.live) for m in device.modes] == [("mig", live), ("whole", live)]


def test_gpu_in_mig_mode_without_instances_is_not_usable_and_breaks_nothing(bench: Make) -> None:
    """Seen elsewhere: one such GPU broke the whole node."""
    made = bench("h100", 2)
    made.do("mig gpu-0 on")
    first, second = made.devices()

    assert (first.usable, first.mode) == (False, "mig")
    assert (second.usable, second.mode) == (True, "whole")


def test_instances_are_partitions_named_by_their_place(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 3g.40gb 4", "create-mig gpu-0 1g.10gb+me 0")
    parent, *found = made.devices()
    names = {d.id.name.removeprefix(parent.id.name): d for d in found}

    assert contradictions((parent, *found), (), ()) == ()
    assert names.keys() == {"-1g10gb-me-0", "-3g40gb-4"}
    large = names["-3g40gb-4"]
    assert (large.kind, large.usable, large.locality) == ("mig", True, parent.locality)
    assert large.capacity["memory"] == 40448 << 20
    assert large.capacity["multiprocessors"] == 60
    assert large.handle is not None
    assert large.handle.startswith("MIG-")
    assert large.aliases == {large.handle}


def test_instances_are_what_their_places_say_before_they_are_there(bench: Make) -> None:
    """Otherwise what is offered of a partition would change when a claim gets it."""
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 3g.40gb 4")
    parent, part = made.devices()
    profile = next(p for p in parent.profiles if p.name == "3g.40gb")

    expected = part_of(parent, profile, 4)

    assert part == attrs.evolve(
        expected, nodes=part.nodes, aliases=part.aliases, handle=part.handle
    )
    assert expected.kind == "mig"
    assert parent.attributes.keys() - expected.attributes.keys() == {"serial", "uuid"}


def test_partition_has_its_rights_beside_the_files_of_its_parent(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 2")
    (part,) = parts(made)
    caps = [n.path for n in part.nodes if "nvidia-caps" in n.path]

    assert len(caps) == 2
    assert "/dev/nvidia0" in [n.path for n in part.nodes]
    assert all(made.host.exists(path) for path in caps)


def test_instance_without_compute_instance_is_not_usable(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 2g.20gb 0 bare")
    (part,) = parts(made)

    assert (part.usable, part.handle, part.placement is not None) == (False, None, True)


def test_new_instances_are_seen_without_a_restart(bench: Make) -> None:
    """Seen elsewhere: new instances needed a restart of the plugin."""
    made = bench("h100", 1)
    made.do("mig gpu-0 on")
    before = parts(made)
    made.do("create-mig gpu-0 1g.10gb 6")
    there = parts(made)
    made.do("destroy-mig gpu-0 6")

    assert (before, [p.id.name[-2:] for p in there], parts(made)) == ([], ["-6"], [])


def test_instances_end_with_the_boot_but_the_mode_of_ampere_stays(bench: Make) -> None:
    made = bench("a100-40", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 7g.40gb 0", "reboot")
    made.vendor.close()

    assert [(d.mode, d.parent) for d in made.devices()] == [("mig", None)]


def test_driver_that_does_not_name_profiles_has_them_computed(bench: Make) -> None:
    made = bench("a100-40", 1)
    made.fail("nvmlDeviceGetGpuInstanceProfileInfoV", "error 13")
    (device,) = made.devices()

    assert {p.name for p in device.profiles} == {
        profile.name for profile in PRODUCTS["a100-40"].profiles
    }


@pytest.mark.parametrize(
    "name,slug",
    [
        ("1g.10gb", "1g10gb"),
        ("1g.10gb+me", "1g10gb-me"),
        ("1g.24gb+me.all", "1g24gb-meall"),
        ("1g.24gb-me", "1g24gb-nome"),
    ],
)
def test_profile_becomes_a_part_of_a_name(name: str, slug: str) -> None:
    assert mig.slug(name) == slug


def test_kernel_module_that_does_not_tell_the_rights_costs_that_gpu_only(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")
    made.fail("nvmlDeviceGetComputeInstanceId", "error 999")

    assert [d.locality.pci_address for d in made.devices()] == ["0000:04:00.0"]
    assert [u.subject for u in made.unreadable()] == ["0000:03:00.0"]


@pytest.mark.parametrize(
    "call,verb,left",
    [
        ("nvmlGpuInstanceGetInfo", "destroy-mig gpu-0 2", []),
        ("nvmlDeviceGetGpuInstanceId", "destroy-mig gpu-0 2", []),
        ("nvmlDeviceGetComputeInstanceId", "destroy-mig gpu-0 2", []),
        ("nvmlDeviceGetMaxMigDeviceCount", "destroy-mig gpu-0 2", []),
        ("nvmlDeviceGetMaxMigDeviceCount", "create-mig gpu-0 1g.10gb 5", ["-2", "-5"]),
        ("nvmlGpuInstanceGetInfo", "create-mig gpu-0 1g.10gb 5", ["-2", "-5"]),
    ],
)
def test_gpu_that_is_cut_between_two_calls_is_read_again(
    bench: Make, call: str, verb: str, left: list[str]
) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 2")
    made.fail(call, verb, times=1)
    found = made.discover()

    assert [d for d in found if isinstance(d, Unreadable)] == []
    names = {d.id.name[-2:] for d in found if isinstance(d, Device) and d.parent is not None}
    assert names <= {"-2", "-5"}
    assert [p.id.name[-2:] for p in parts(made)] == left


def test_partition_whose_rights_are_gone_hides_neither_its_gpu_nor_other_partitions(
    bench: Make,
) -> None:
    """As for a moment while it is unmade."""
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 3g.40gb 4", "create-mig gpu-0 1g.10gb 0")
    *others, going = made.devices()
    right = Path(made.directory, "proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access")
    right.unlink()

    assert made.devices() == tuple(others)
    (unread,) = made.unreadable()
    assert (unread.subject, unread.code) == (going.id.name, "not-there")
    assert "gi1/ci0/access" in unread.reason


def test_gpu_that_tells_neither_names_nor_memory_any_more_has_no_profiles(bench: Make) -> None:
    """Names are computed of its memory."""
    made = bench("h100", 1)
    made.do("mig gpu-0 on")
    (device,) = made.devices()
    host = Liar(made.directory)
    host.lies = {
        "nvmlDeviceGetGpuInstanceProfileInfoV": lambda _real, *_args: facts.FUNCTION_NOT_FOUND,
        "nvmlDeviceGetMemoryInfo": lambda _real, *_args: facts.NOT_SUPPORTED,
    }

    card = card_of(Nvml(host, ["/"]), device)

    assert card.cut.profiles == ()
