import os
from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.tpu.machine import TpuMachine
from tests.vendors.tpu.bench import Make


@pytest.mark.parametrize("product", TpuMachine.products)
def test_every_product_has_all_its_chips(bench: Make, product: str) -> None:
    made = bench(product, 4)

    assert len(made.devices()) == 4
    assert made.unreadable() == {}


def test_device_files_have_the_numbers_of_the_kernel(bench: Make) -> None:
    made = bench("v5e", 1)
    stats = {path: made.host.stat(path) for path in ("/dev/vfio/6", "/dev/vfio/vfio")}

    assert {p: (s.kind, s.major, s.minor) for p, s in stats.items() if s is not None} == {
        "/dev/vfio/6": ("c", 511, 6),
        "/dev/vfio/vfio": ("c", 10, 196),
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are made by root only")
def test_real_device_files_can_be_made(tmp_path: Path) -> None:
    simulate("tpu", "v5e", 1, str(tmp_path), device_nodes=True)

    assert (tmp_path / "dev/vfio/6").is_char_device()


def test_strangers_have_groups_between_those_of_chips(bench: Make) -> None:
    made = bench("v5e", 4)
    nodes = {n for n in made.host.names("/dev/vfio") if n.isdecimal()}
    chips = {n.path.rpartition("/")[2] for d in made.devices() for n in d.nodes}

    assert nodes == {"6", "7", "8", "9", "10", "11"}
    assert nodes - chips == {"8", "11"}


@pytest.mark.parametrize(
    "verb",
    [
        "lose",
        "lose tpu-7",
        "lose tpu-0 twice",
        "hold tpu-0",
        "hold tpu-0 many",
        "hold tpu-0 7 jail",
        "free tpu-0 7",
        "bind tpu-0",
        "status tpu-0 TIRED",
        "restore tpu-0 all",
        "metadata",
        "metadata some",
        "unload all",
    ],
)
def test_wrong_words_are_refused(bench: Make, verb: str) -> None:
    made = bench("v5e", 1)

    with pytest.raises(ConfigError):
        made.do(verb)


@pytest.mark.parametrize(
    "product,verb",
    [("v5e", "status tpu-0 DEAD"), ("7x", "status tpu-0 DEAD"), ("v4", "share tpu-0")]
    + [(product, "halve tpu-0") for product in ("v5e", "v6e", "v5p", "v4")],
)
def test_what_cannot_happen_to_a_product_is_refused(bench: Make, product: str, verb: str) -> None:
    """It was said to be done, and nothing was."""
    with pytest.raises(ConfigError, match="does not have"):
        bench(product, 1).do(verb)


@pytest.mark.parametrize("product,driver", [("v5e", "vfio-pci"), ("v4", "tpu-accel")])
def test_chip_that_gets_its_driver_back_is_well(bench: Make, product: str, driver: str) -> None:
    made = bench(product, 1)
    made.do("bind tpu-0 none", f"bind tpu-0 {driver}")

    assert [made.codes(device) for device in made.devices()] == [{}]


def test_metadata_survives_a_reboot(bench: Make) -> None:
    made = bench("v5e", 4)
    made.do("metadata ambiguous", "hide tpu-0", "reboot")

    assert "CHIPS_PER_HOST_BOUNDS" not in made.host.read("/etc/tpu/tpu-env")
    assert made.codes(made.devices()[0]) == {}


def test_machine_beside_one_of_another_maker(tmp_path: Path) -> None:
    simulate("nvidia", "h100", 2, str(tmp_path))
    simulate("tpu", "v5e", 4, str(tmp_path))
    set_state(str(tmp_path), ["hide", "tpu-2"])

    assert (tmp_path / "dev/nvidia1").exists()
    assert (tmp_path / "dev/vfio/7").exists()


def test_group_of_a_chip_of_two_functions_can_be_shared(bench: Make) -> None:
    made = bench("7x", 4)
    device = made.devices()[0]
    made.do("share tpu-0")

    assert [*made.codes(device)] == ["group-shared"]
