import pytest

from accelkit.core.errors import ConfigError
from accelkit.vendors.amd.kfd import read_topology
from tests.vendors.amd.bench import Make

GENERATION = "/sys/devices/virtual/kfd/kfd/topology/generation_id"


@pytest.mark.parametrize(
    "verb, said",
    [
        ("hide gpu-0 product_nam", "there is no file product_nam"),
        ("hide gpu-0 drm", "there is no file drm"),
        ("hide gpu-0 ../../vendor", "there is no file"),
        ("hide gpu-0", "needs one file"),
        ("hide gpu-0 vendor device", "takes no device behind that"),
        ("rubbish gpu-0 current_mode", "there is no file current_mode"),
        ("rubbish gpu-0 vendor device", "takes no device behind that"),
        ("ras gpu-0 vram 1", "knows the blocks umc, sdma"),
        ("ras gpu-0 umc", "needs a block"),
        ("pages gpu-0 X", "needs a letter"),
    ],
)
def test_verb_with_wrong_words_is_refused_and_changes_nothing(
    bench: Make, verb: str, said: str
) -> None:
    """A name with a slip in it was taken, and nothing happened."""
    made = bench("mi300x", 1)
    before = made.devices()

    with pytest.raises(ConfigError, match=said):
        made.do(verb)
    assert made.devices() == before


@pytest.mark.parametrize("product, machine", [("rx7900", {}), ("mi300x", {"guest": "vf"})])
@pytest.mark.parametrize("verb", ["ras gpu-0 umc 1", "pages gpu-0 R"])
def test_errors_happen_to_gpus_that_count_them(
    bench: Make, product: str, machine: dict[str, str], verb: str
) -> None:
    made = bench(product, 1, machine)
    (device,) = made.devices()

    with pytest.raises(ConfigError, match="needs a product that counts errors"):
        made.do(verb)
    assert made.host.names(made.function(device, "ras")) == ()


@pytest.mark.parametrize("name", ["numa_node", "product_name", "hwmon/hwmon0/temp2_input"])
def test_any_file_of_a_gpu_can_be_missing_until_it_is_restored(bench: Make, name: str) -> None:
    made = bench("mi300x", 1)
    (device,) = made.devices()
    made.do(f"hide gpu-0 {name}", f"hide gpu-0 {name}")
    missing = not made.host.exists(made.function(device, name))
    made.do("restore gpu-0")

    assert missing
    assert made.host.exists(made.function(device, name))


def test_gpu_that_another_driver_has_is_none_of_kfd(bench: Make) -> None:
    made = bench("mi210", 2)
    made.do("bind gpu-0 vfio-pci")

    assert len(read_topology(made.host).nodes) == 1


@pytest.mark.parametrize("verb", ["memory NPS4", "mode CPX"])
def test_mode_that_somebody_sets_is_a_new_generation(bench: Make, verb: str) -> None:
    """The agent watches the number: it was told of no new memory mode."""
    made = bench("mi300x", 1)
    before = made.host.read(GENERATION)
    made.do(verb)

    assert made.host.read(GENERATION) != before
