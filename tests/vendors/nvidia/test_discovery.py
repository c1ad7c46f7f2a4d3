from pathlib import Path

import pytest

from accelkit import Device, StartOver, Unreadable, Version
from accelkit.core.registry import hardware_present
from accelkit.vendors.nvidia.discovery import unsupported_platform
from accelkit.vendors.nvidia.patience import Patience
from accelkit.vendors.nvidia.products import PRODUCTS
from accelkit.vendors.nvidia.vendor import Nvidia
from tests.vendors.nvidia.bench import Answer, Bench, Liar, Make


def put(bench: Bench, path: str, text: str = "") -> None:
    file = Path(bench.directory + path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def wrong(found: list[Unreadable]) -> list[tuple[str, str]]:
    return [(u.subject, u.code) for u in found]


def test_whole_gpu_is_told_with_place_and_facts(bench: Make) -> None:
    made = bench("h100", 2)
    device = made.devices()[1]

    assert device.id.name == str(device.attributes["uuid"]).lower()
    assert device.kind == "gpu"
    assert device.product == "NVIDIA H100 80GB HBM3"
    assert device.capacity == {"memory": 85422243840}
    assert device.locality.pci_address == "0000:04:00.0"
    assert device.locality.pcie_root == "pci0000:00"
    assert device.locality.numa_node == 1
    assert device.handle in device.aliases
    assert "0000:04:00.0" in device.aliases
    assert [n.path for n in device.nodes] == [
        "/dev/nvidia-modeset",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
        "/dev/nvidia1",
        "/dev/nvidiactl",
    ]
    assert device.attributes["architecture"] == "Hopper"
    assert device.attributes["cudaComputeCapability"] == Version(9, 0)
    assert device.attributes["driverVersion"] == Version(580, 65, 6)
    assert device.attributes["cudaDriverVersion"] == Version(13, 0)


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_every_attribute_is_declared_with_its_type(bench: Make, product: str) -> None:
    (device,) = bench(product, 1).devices()

    types = {key: type(value) for key, value in device.attributes.items()}
    assert types == {key: Nvidia.attributes[key] for key in types}


@pytest.mark.parametrize("count", [1, 3, 16])
def test_as_many_gpus_are_found_as_there_are(bench: Make, count: int) -> None:
    devices = bench("a100-40", count).devices()

    assert len({d.id for d in devices}) == count


def test_nothing_is_found_and_no_library_is_asked_for_without_gpus(bench: Make) -> None:
    made = bench("l4", 1)
    made.do("remove gpu-0", "uninstall")

    assert made.discover() == []


def test_reading_twice_gives_equal_answers(bench: Make) -> None:
    made = bench("h200", 4)

    assert made.discover() == made.discover()


def test_ids_stay_when_a_reboot_renumbers_the_gpus(bench: Make) -> None:
    made = bench("l4", 3)
    before = made.devices()
    made.do("reboot")
    made.vendor.close()
    after = made.devices()

    assert [d.id for d in after] == [d.id for d in before]
    assert [d.nodes for d in after] != [d.nodes for d in before]


def test_one_lost_gpu_costs_only_itself(bench: Make) -> None:
    """Seen elsewhere: one lost GPU, and no GPU of the node could be allocated any more."""
    made = bench("h100", 8)
    third = made.devices()[2]
    made.do("lose gpu-2")

    assert len(made.devices()) == 7
    assert wrong(made.unreadable()) == [(third.locality.pci_address, "gpu-lost")]
    assert "reboot" in made.unreadable()[0].remedy


def test_lost_gpu_is_back_after_it_was_mended(bench: Make) -> None:
    made = bench("h100", 2)
    before = made.discover()
    made.do("lose gpu-1")
    made.discover()
    made.do("restore gpu-1")

    assert made.discover() == before


@pytest.mark.parametrize("code", [15, 999])
def test_gpu_that_only_the_old_session_does_not_see_is_back_at_the_next_look(
    bench: Make, code: int
) -> None:
    """A session does not see a GPU again that was reset since it was opened."""
    made = bench("h100", 2)
    made.devices()
    new: list[int] = []

    def stale(honest: Answer, *args: object) -> int:
        return honest(*args) if new else code

    def opens(honest: Answer, *args: object) -> int:
        new.append(1)
        return honest(*args)

    liar = Liar(made.directory)
    liar.lies = {"nvmlDeviceGetHandleByIndex_v2": stale, "nvmlInitWithFlags": opens}
    made.host = liar
    made.devices()
    new.clear()

    assert made.devices() == ()
    assert len(made.devices()) == 2


def test_gpu_with_an_unknown_error_is_told_by_its_address(bench: Make) -> None:
    """Seen elsewhere: an unknown error of the first GPU ended the plugin."""
    made = bench("h100", 2)
    made.fail("nvmlDeviceGetHandleByIndex_v2", "error 999", times=1)
    found = made.discover()

    assert [type(f) for f in found].count(Device) == 1
    (lost,) = (f for f in found if isinstance(f, Unreadable))
    assert (lost.code, "unknown error" in lost.reason) == ("nvml-failed", True)


@pytest.mark.parametrize("code", [4, 8, 11, 16, 999])
def test_sick_gpu_costs_only_itself_whatever_its_sickness(bench: Make, code: int) -> None:
    made = bench("h100", 3)
    made.do(f"error gpu-1 {code}")

    assert [d.locality.pci_address for d in made.devices()] == ["0000:03:00.0", "0000:13:00.0"]
    assert [u.subject for u in made.unreadable()] == ["0000:04:00.0"]
    assert all(u.remedy for u in made.unreadable())


def test_gpu_that_hangs_in_every_call_costs_only_itself(bench: Make) -> None:
    """Seen elsewhere: a call that never returned stopped the monitor of the whole node."""
    made = bench("h100", 3)
    made.vendor._patience = Patience(0.5)
    made.do("hang gpu-1 2s")

    assert [d.locality.pci_address for d in made.devices()] == ["0000:03:00.0", "0000:13:00.0"]
    assert [(u.subject, u.code) for u in made.unreadable()] == [("0000:04:00.0", "source-timeout")]
    assert "kernel log" in made.unreadable()[0].remedy


def test_gpu_that_does_not_answer_costs_only_itself(bench: Make) -> None:
    made = bench("h100", 4)
    made.vendor._patience = Patience(0.5)
    made.fail("nvmlDeviceGetMinorNumber", "hang 4s", times=1)
    found = made.discover()
    again = made.discover()

    assert [type(f) for f in found].count(Device) == 3
    assert [f.code for f in found if isinstance(f, Unreadable)] == ["source-timeout"]
    assert [type(f) for f in again].count(Device) == 3


def test_gpu_that_was_unbound_and_comes_back_is_seen(bench: Make) -> None:
    made = bench("h100", 2)
    before = made.discover()
    made.do("bind gpu-0 none")
    unbound = made.unreadable()
    made.do("bind gpu-0 nvidia")

    assert wrong(unbound) == [("0000:03:00.0", "driver-not-ready")]
    assert made.discover() == before


def test_gpu_that_the_driver_is_told_to_leave_alone_says_so(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("exclude gpu-0")
    (found,) = made.unreadable()

    assert (found.subject, found.code) == ("0000:03:00.0", "driver-not-ready")
    assert "NVreg_ExcludedGpus" in found.remedy
    assert [d.locality.pci_address for d in made.devices()] == ["0000:04:00.0"]


def test_gpu_of_a_virtual_machine_is_not_ours(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("bind gpu-0 vfio-pci")

    assert [d.locality.pci_address for d in made.devices()] == ["0000:04:00.0"]
    assert made.unreadable() == []


def test_gpu_that_nouveau_has_is_not_ready(bench: Make) -> None:
    made = bench("l4", 1)
    made.do("bind gpu-0 nouveau")
    (found,) = made.unreadable()

    assert (found.subject, found.code) == ("0000:03:00.0", "driver-not-ready")
    assert found.remedy == "blacklist nouveau, or bind the GPU to nvidia"


@pytest.mark.parametrize("verb", ["unload", "uninstall"])
def test_gpus_without_driver_are_not_ready_until_it_is_there(bench: Make, verb: str) -> None:
    made = bench("h100", 2)
    made.do(verb)
    without = made.discover()
    made.do("load")

    assert wrong([u for u in without if isinstance(u, Unreadable)]) == [
        ("0000:03:00.0", "driver-not-ready"),
        ("0000:04:00.0", "driver-not-ready"),
    ]
    assert len(made.devices()) == 2


def test_library_of_another_version_asks_for_a_fresh_process(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mismatch")

    with pytest.raises(StartOver, match="different versions") as caught:
        made.discover()
    assert "restart the agent" in caught.value.remedy


@pytest.mark.parametrize(
    "path,text,name",
    [
        ("/dev/dxg", "", "wsl"),
        ("/etc/nv_tegra_release", "", "tegra"),
        ("/sys/devices/soc0/family", "Tegra\n", "tegra"),
    ],
)
def test_platform_that_nvml_does_not_describe_is_unsupported(
    bench: Make, path: str, text: str, name: str
) -> None:
    made = bench("l4", 1)
    made.do("remove gpu-0")
    put(made, path, text)

    assert wrong(made.unreadable()) == [(name, "platform-unsupported")]
    assert unsupported_platform(made.host) is not None


@pytest.mark.parametrize(
    "path, asked",
    [
        ("/dev/dxg", True),
        ("/etc/nv_tegra_release", True),
        ("/sys/devices/soc0/family", False),  # boards of all makers have one
    ],
)
def test_plugin_is_asked_on_its_platforms_though_nothing_is_on_the_bus(
    bench: Make, path: str, *, asked: bool
) -> None:
    made = bench("l4", 1)
    made.do("remove gpu-0")
    put(made, path, "")

    assert hardware_present(Nvidia, made.host) is asked


def test_numa_node_that_the_firmware_does_not_name_is_none(bench: Make) -> None:
    made = bench("l4", 1)
    folder = made.host.resolve("/sys/bus/pci/devices/0000:03:00.0")
    put(made, f"{folder}/numa_node", "-1\n")
    (device,) = made.devices()

    assert device.locality.numa_node is None


def test_gpu_whose_memory_is_the_hosts_has_none_of_its_own(bench: Make) -> None:
    """Seen elsewhere: GPUs with unified memory ended the plugin."""
    made = bench("l4", 1)
    made.fail("nvmlDeviceGetMemoryInfo", "error 3")
    (device,) = made.devices()

    assert "memory" not in device.capacity
    assert device.attributes["unifiedMemory"] is True


@pytest.mark.parametrize(
    "symbol,key",
    [
        ("nvmlDeviceGetBrand", "brand"),
        ("nvmlDeviceGetSerial", "serial"),
        ("nvmlDeviceGetArchitecture", "architecture"),
        ("nvmlSystemGetCudaDriverVersion", "cudaDriverVersion"),
    ],
)
@pytest.mark.parametrize("code", ["3", "13", "26"])
def test_fact_that_a_driver_does_not_tell_is_left_out(
    bench: Make, symbol: str, key: str, code: str
) -> None:
    made = bench("l4", 1)
    made.fail(symbol, f"error {code}")
    (device,) = made.devices()

    assert key not in device.attributes


def test_gpu_without_memory_of_its_own_can_be_cut_all_the_same(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")
    made.fail("nvmlDeviceGetMemoryInfo", "error 3")

    assert [d.id.name[-9:] for d in made.devices()[1:]] == ["-1g10gb-0"]


def test_driver_container_is_found_below_its_root(bench: Make) -> None:
    made = bench("h100", 1, machine={"driverRoot": "/run/nvidia/driver"})

    assert len(made.devices()) == 1


def test_clique_of_a_joined_fabric_is_an_attribute(bench: Make) -> None:
    cluster = "0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f"
    (device,) = bench("h100", 1, machine={"cluster": cluster}).devices()

    assert device.attributes["fabricClique"] == f"{cluster}.1"
