import os
from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.nvidia.machine import NvidiaMachine
from accelkit.vendors.nvidia.products import PRODUCTS
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Make


def test_units_and_serials_follow_the_seed(tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        simulate("nvidia", "l4", 2, str(tmp_path / name), seed=seed)
        host = MachineHost(str(tmp_path / name))

        found.append(tuple(Nvidia(NvidiaOptions()).discover(host)))

    assert found[0] == found[1] != found[2]


def test_device_files_have_the_numbers_of_the_kernel(bench: Make) -> None:
    made = bench("h100", 2)
    stats = {
        path: made.host.stat(path) for path in ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")
    }

    assert {p: (s.kind, s.major, s.minor) for p, s in stats.items() if s is not None} == {
        "/dev/nvidia1": ("c", 195, 1),
        "/dev/nvidiactl": ("c", 195, 255),
        "/dev/nvidia-uvm": ("c", 510, 0),
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are made by root only")
def test_real_device_files_can_be_made(tmp_path: Path) -> None:
    simulate("nvidia", "l4", 1, str(tmp_path), device_nodes=True)

    assert (tmp_path / "dev/nvidia0").is_char_device()


@pytest.mark.parametrize(
    "verb",
    [
        "lose",
        "lose gpu-7",
        "xid gpu-0",
        "xid gpu-0 many",
        "bind gpu-0",
        "mig gpu-0 maybe",
        "ecc gpu-0",
        "hang gpu-0",
        "create-mig gpu-0 1g.10gb 0",
        "create-mig gpu-1 9g.99gb 0",
        "create-mig gpu-1 3g.40gb 1",
        "create-mig gpu-1 1g.10gb 4",
        "destroy-mig gpu-1",
        "destroy-mig gpu-1 3",
        "create-mig gpu-1 1g.10gb 0 whole",
        "hold gpu-0",
        "hold gpu-0 somebody",
        "hold gpu-0 7 0",
        "lag gpu-0",
        "remap gpu-0 3",
        "persistence gpu-0 3",
        "recovery gpu-0 reset",
        "mismatch 580",
        "lose gpu-0 gpu-1",
    ],
)
def test_misused_verb_is_refused_with_its_usage(bench: Make, verb: str) -> None:
    made = bench("h100", 2)
    made.do("mig gpu-1 on", "create-mig gpu-1 3g.40gb 4")
    before = made.discover()

    with pytest.raises(ConfigError) as caught:
        set_state(made.directory, verb.split())
    assert caught.value.remedy == f"write: {NvidiaMachine.verbs[verb.split(maxsplit=1)[0]]}"
    assert made.discover() == before


@pytest.mark.parametrize("product", ["a100-40", "h100", "b200"])
def test_profile_can_be_named_by_its_size_alone(bench: Make, product: str) -> None:
    made = bench(product, 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 3g 4", "create-mig gpu-0 1g 0")
    names = [d.profile or "" for d in made.devices() if d.parent is not None]

    assert sorted(name.split(".")[0] for name in names) == ["1g", "3g"]
    assert not any("+me" in name for name in names)


def test_time_that_is_none_is_refused(bench: Make) -> None:
    with pytest.raises(ConfigError, match="duration"):
        bench("l4", 1).do("hang gpu-0 long")


def test_product_without_mig_refuses_the_mode(bench: Make) -> None:
    with pytest.raises(ConfigError, match="product that has it"):
        bench("l4", 1).do("mig gpu-0 on")


def test_what_was_lost_is_there_after_a_reboot(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("lose gpu-0", "unload", "reboot")
    made.vendor.close()

    assert len(made.devices()) == 2


@pytest.mark.parametrize("name", sorted(PRODUCTS))
def test_profiles_of_a_product_fit_its_slots_and_memory(name: str) -> None:
    product = PRODUCTS[name]

    for profile in product.profiles:
        assert max(profile.starts) + profile.size <= product.slots
        assert profile.memory_mb << 20 <= product.memory
        assert len(profile.starts) >= profile.limit or profile.limit == 1
