import pytest

from accelkit import MissingParts, Scope, Unreadable, Version
from accelkit.core.model import contradictions
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.products import MIB, PRODUCTS
from accelkit.vendors.amd.vendor import Amd
from tests.vendors.amd.bench import Make, grant

DISCOVERY_S = 0.05
"""What the biggest machine may cost, in processor time of this thread."""


def test_whole_gpu_is_told_with_place_and_facts(bench: Make) -> None:
    device = bench("mi300x", 2).devices()[1]

    assert device.kind == "gpu"
    assert device.product == "AMD Instinct MI300X"
    assert device.capacity == {"memory": 196592 * MIB, "computeUnits": 304}
    assert device.locality.pci_address == "0000:04:00.0"
    assert device.locality.numa_node == 1
    assert [n.path for n in device.nodes] == ["/dev/dri/card9", "/dev/dri/renderD136", "/dev/kfd"]
    assert device.usable
    assert device.mode == "spx-nps1"
    unique = str(device.attributes["uuid"]).removeprefix("GPU-")
    assert device.id.name == f"gpu-{unique}"
    assert device.aliases == {"0000:04:00.0", unique, f"GPU-{unique}"}
    assert device.attributes == {
        "uuid": f"GPU-{unique}",
        "pciDeviceId": "0x74a1",
        "productName": "AMD Instinct MI300X OAM",
        "serial": device.attributes["serial"],
        "vbiosVersion": "113-M3000100-102",
        "gfxTarget": "gfx942",
        "hiveId": device.attributes["hiveId"],
        "computePartition": "SPX",
        "memoryPartition": "NPS1",
        "partitionProfile": "spx_nps1",
        "driverVersion": Version(6, 14, 14),
        "driverSrcVersion": "533BB7E5866E52F63B9ACCB",
    }


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_every_product_is_found_whole_and_healthy_facts_agree(bench: Make, product: str) -> None:
    made = bench(product, 3)
    devices = made.devices()

    assert len(devices) == 3
    assert made.wrong() == []
    assert contradictions(devices, (), ()) == ()
    assert {d.capacity["memory"] for d in devices} == {PRODUCTS[product].memory}
    assert {d.capacity["computeUnits"] for d in devices} == {PRODUCTS[product].compute_units}
    types = {key: type(value) for d in devices for key, value in d.attributes.items()}
    assert types == {key: Amd.attributes[key] for key in types}


@pytest.mark.parametrize("product", ["mi210", "mi250x", "rx7900"])
def test_gpu_without_partition_files_is_a_whole_gpu(bench: Make, product: str) -> None:
    """Seen elsewhere: MI50, MI210 and Radeon were skipped where the files were missing."""
    (device,) = bench(product, 1).devices()

    assert device.usable
    assert (device.modes, device.mode, device.profiles, device.slots) == ((), None, (), 0)
    assert "computePartition" not in device.attributes


@pytest.mark.parametrize(
    "product,mode,count,size",
    [
        ("mi300x", "DPX", 2, 4),
        ("mi300x", "QPX", 4, 2),
        ("mi300x", "CPX", 8, 1),
        ("mi300a", "TPX", 3, 2),
        ("mi300a", "CPX", 6, 1),
        ("mi325x", "CPX", 8, 1),
    ],
)
def test_gpu_that_is_cut_has_partitions_and_is_not_handed_out(
    bench: Make, product: str, mode: str, count: int, size: int
) -> None:
    made = bench(product, 2)
    made.do(f"mode gpu-0 {mode}")
    whole, other = made.wholes()
    parts = made.parts()
    slug = f"{mode.lower()}-nps1"

    assert not whole.usable
    assert whole.mode == slug
    assert other.usable
    assert {p.parent for p in parts} == {whole.id}
    assert [p.id.name for p in parts] == [
        f"{whole.id.name}-{slug}-{n * size}" for n in range(count)
    ]
    table = PRODUCTS[product]
    for part in parts:
        assert part.profile == f"{mode.lower()}_nps1"
        assert part.locality == whole.locality
        assert part.capacity == {
            "memory": table.memory // count,
            "computeUnits": table.compute_units // count,
        }
        assert part.attributes["uuid"] == whole.attributes["uuid"]
        assert part.attributes["computePartition"] == mode
        assert "serial" not in part.attributes
    assert len({p.nodes for p in parts}) == count
    assert contradictions(made.devices(), (), ()) == ()


def test_first_partition_has_the_files_of_the_pci_function_and_others_of_platform_devices(
    bench: Make,
) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 CPX")

    assert [p.handle for p in made.parts()] == [
        "0000:03:00.0",
        *(f"amdgpu_xcp_{n}" for n in range(7)),
    ]


@pytest.mark.parametrize(
    "machine", [{"xcp": "dotted"}, {"location": "high"}, {"domains": "own"}, {"driver": "kernel"}]
)
def test_every_spelling_of_partitions_is_understood(bench: Make, machine: dict[str, str]) -> None:
    """Seen elsewhere: amdgpu_xcp.3 was not found; with own domains 8 of 16 devices were."""
    made = bench("mi300x", 2, machine)
    made.do("mode gpu-0 DPX", "mode gpu-1 DPX")

    assert made.wrong() == []
    assert len(made.parts()) == 4
    assert len({p.nodes for p in made.parts()}) == 4
    assert len({d.locality.pci_address for d in made.wholes()}) == 2


def test_platform_devices_of_no_partition_are_no_devices(bench: Make) -> None:
    made = bench("mi300x", 2)

    assert "amdgpu_xcp_13" in made.host.names("/sys/devices/platform")
    assert len(made.devices()) == 2


def test_partition_without_a_device_number_is_told_and_the_others_stay(bench: Make) -> None:
    """Seen elsewhere: 63 of 64 partitions, and nobody said which one was missing."""
    made = bench("mi300x", 8)
    made.do("minors 63", "mode CPX")
    last = made.wholes()[-1]

    assert len(made.parts()) == 63
    assert made.wrong() == [(f"{last.id.name}-cpx-nps1-7", "partition-missing")]
    assert last.capacity == {"memory": 196592 * MIB, "computeUnits": 304}


def test_memory_modes_that_need_the_driver_anew_disturb_every_gpu(bench: Make) -> None:
    (device,) = bench("mi300x", 1).devices()

    assert {m.name: (m.cut, m.count, m.disturbs) for m in device.modes} == {
        "spx-nps1": (None, 0, Scope.DEVICE),
        "dpx-nps1": ("dpx_nps1", 2, Scope.DEVICE),
        "qpx-nps1": ("qpx_nps1", 4, Scope.DEVICE),
        "cpx-nps1": ("cpx_nps1", 8, Scope.DEVICE),
        "qpx-nps4": ("qpx_nps4", 4, Scope.VENDOR),
        "cpx-nps4": ("cpx_nps4", 8, Scope.VENDOR),
    }


def test_modes_and_profiles_are_the_same_in_every_memory_mode(bench: Make) -> None:
    made = bench("mi300x", 1)
    (before,) = made.wholes()
    made.do("memory NPS4")
    (after,) = made.wholes()

    assert after.mode == "cpx-nps4"
    assert after.profiles == before.profiles
    assert {m.name for m in after.modes} == {m.name for m in before.modes}
    assert len(made.parts()) == 8


def test_two_memory_ranges_cut_new_gpus_in_two(bench: Make) -> None:
    made = bench("mi355x", 1)
    made.do("memory NPS2")

    assert made.wholes()[0].mode == "dpx-nps2"
    assert {"qpx-nps2", "cpx-nps2"} <= {m.name for m in made.wholes()[0].modes}


def test_virtual_function_is_known_by_its_id_and_cannot_be_set(bench: Make) -> None:
    """Seen elsewhere: a virtual function has no product_name, and no device was labelled."""
    made = bench("mi300x", 2, {"guest": "vf"})

    assert {d.product for d in made.devices()} == {"AMD Instinct MI300X VF"}
    assert all(d.modes == () and d.usable for d in made.devices())
    assert all("productName" not in d.attributes for d in made.devices())


def test_virtual_function_that_its_host_has_cut_has_all_its_partitions(bench: Make) -> None:
    """Seen elsewhere, with a PCI domain for each GPU: 8 of 16 devices."""
    made = bench("mi300x", 8, {"guest": "vf", "domains": "own"})
    made.do("mode DPX")

    assert made.wrong() == []
    assert len(made.parts()) == 16
    assert len({n.path for p in made.parts() for n in p.nodes}) == 1 + 2 * 16


def test_missing_optional_files_cost_no_device(bench: Make) -> None:
    made = bench("mi300x", 2)
    before = made.devices()
    for name in ("product_name", "unique_id", "serial_number", "vbios_version", "numa_node"):
        made.do(f"hide gpu-0 {name}")
    for name in ("mem_info_vram_total", "available_memory_partition"):
        made.do(f"hide gpu-1 {name}")
    made.put(made.function(before[0], "numa_node"), "-1\n")

    assert [d.id for d in made.devices()] == [d.id for d in before]
    assert [d.product for d in made.devices()] == [d.product for d in before]
    assert [d.capacity for d in made.devices()] == [d.capacity for d in before]
    assert made.devices()[0].locality.numa_node is None


def test_memory_that_nothing_says_is_not_made_up(bench: Make) -> None:
    made = bench("rx7900", 1)
    made.do("hide gpu-0 mem_info_vram_total")
    made.put("/sys/devices/virtual/kfd/kfd/topology/nodes/2/mem_banks/0/properties", "heap_type 0")

    assert made.devices()[0].capacity == {"computeUnits": 96}


def test_modes_of_a_gpu_that_does_not_tell_them_follow_from_its_nodes(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 QPX", "hide gpu-0 current_compute_partition")
    made.do("hide gpu-0 current_memory_partition", "hide gpu-0 available_compute_partition")

    assert made.wholes()[0].mode == "qpx"
    assert len(made.parts()) == 4


def test_ids_stay_when_a_reboot_finds_the_gpus_in_another_order(bench: Make) -> None:
    made = bench("mi300x", 3)
    before = made.devices()
    made.do("reboot")
    after = made.devices()

    assert [d.id for d in after] == [d.id for d in before]
    assert [d.nodes for d in after] != [d.nodes for d in before]


def test_gpu_without_an_identity_is_named_by_its_place(bench: Make) -> None:
    made = bench("rx7900", 1)
    made.do("hide gpu-0 unique_id")
    path = "/sys/devices/virtual/kfd/kfd/topology/nodes/2/properties"
    text = made.host.read(path)
    made.put(path, "\n".join(line for line in text.splitlines() if "unique_id" not in line))

    assert [d.id.name for d in made.devices()] == ["gpu-0000-03-00-0"]


def test_second_gpu_with_the_same_identity_is_told(bench: Make) -> None:
    made = bench("mi210", 2)
    first, second = made.devices()
    nodes = "/sys/devices/virtual/kfd/kfd/topology/nodes"
    theirs = made.host.read(f"{nodes}/3/properties")
    one, two = (int(str(d.attributes["uuid"]).removeprefix("GPU-"), 16) for d in (first, second))
    made.put(f"{nodes}/3/properties", theirs.replace(str(two), str(one)))

    assert [d.id for d in made.devices()] == [first.id]
    assert made.wrong() == [(second.locality.pci_address, "same-identity")]


def test_gpus_without_driver_are_told_and_those_of_virtual_machines_are_not(bench: Make) -> None:
    made = bench("mi210", 2)
    addresses = [d.locality.pci_address for d in made.devices()]
    made.do("bind gpu-0 vfio-pci", "bind gpu-1 radeon")
    bound = made.wrong()
    made.do("bind gpu-1 amdgpu", "unload")

    assert bound == [(addresses[1], "driver-not-ready")]
    assert made.wrong() == [(addresses[1], "driver-not-ready")]
    assert made.vendor.software(made.host) == {}


@pytest.mark.parametrize(
    "verb, step",
    [
        ("bind gpu-0 none", "write 0000:03:00.0 to /sys/bus/pci/drivers/amdgpu/bind"),
        ("bind gpu-0 radeon", "unbind it from radeon, and write 0000:03:00.0 to"),
        ("unload", "modprobe amdgpu;"),
    ],
)
def test_gpu_without_driver_says_the_step_that_is_missing(
    bench: Make, verb: str, step: str
) -> None:
    """To load a driver that is loaded was said to be the way."""
    made = bench("mi210", 1)
    made.do(verb)
    (problem,) = made.discover()

    assert isinstance(problem, Unreadable)
    assert problem.remedy.startswith(step)


def test_kernel_without_compute_is_told_by_that_name(bench: Make) -> None:
    """Seen elsewhere: /dev/kfd was missing, and the plugin failed on a pattern of files."""
    made = bench("rx7900", 1)
    made.do("no-kfd")

    assert made.wrong() == [("0000:03:00.0", "kfd-missing")]


def test_gpu_that_compute_does_not_have_is_told(bench: Make) -> None:
    made = bench("mi210", 2)
    made.do("unsupport gpu-1")

    assert len(made.devices()) == 1
    assert made.wrong() == [("0000:04:00.0", "no-compute")]


def test_gpu_that_changes_its_mode_right_now_cannot_be_read(bench: Make) -> None:
    made = bench("mi300x", 2)
    first = made.devices()[0]
    made.do("mode gpu-0 CPX")
    made.put(made.function(first, "current_compute_partition"), "SPX\n")

    assert len(made.devices()) == 1
    assert made.wrong() == [(first.locality.pci_address, "unreadable")]


def test_nothing_is_found_on_a_host_without_gpus(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("remove gpu-0")

    assert made.discover() == []


def test_edits_are_the_device_files_alone(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 DPX")
    parts = made.parts()
    edits = made.vendor.edits(made.host, grant(parts))

    assert {i: e.nodes for i, e in edits.each.items()} == {p.id: p.nodes for p in parts}
    assert not edits.whole
    assert all(not e.env and not e.mounts for e in edits.each.values())


def test_edits_of_a_gpu_whose_files_are_gone_are_refused(bench: Make) -> None:
    made = bench("mi210", 1)
    (device,) = made.devices()
    made.do("unload")

    with pytest.raises(MissingParts, match="/dev/kfd"):
        made.vendor.edits(made.host, grant((device,)))


def test_driver_of_the_kernel_has_the_version_of_the_kernel(bench: Make) -> None:
    made = bench("mi210", 1, {"driver": "kernel"})
    made.put("/proc/sys/kernel/osrelease", "6.12.41\n")

    assert made.vendor.software(made.host) == {"driver": "6.12.41"}
    assert "driverVersion" not in made.devices()[0].attributes


def test_every_id_has_a_name_and_every_pair_of_modes_is_known() -> None:
    assert set(facts.VIRTUAL) <= set(facts.NAMES)
    assert set(facts.COMPLEXES) <= set(facts.NAMES)
    assert {product.pci_device for product in PRODUCTS.values()} <= set(facts.NAMES)
    assert [facts.compute_modes(n) for n in (1, 4, 6, 8)] == [
        (),
        ("SPX", "DPX", "CPX"),
        ("SPX", "TPX", "CPX"),
        ("SPX", "DPX", "QPX", "CPX"),
    ]
    names = [facts.target_of(n) for n in (90402, 90010, 90500, 110000, 110501, 120001, 0)]
    assert names == ["gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1151", "gfx1201", None]
