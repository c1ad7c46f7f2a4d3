"""Measures as dashboards for DCGM have them."""

from accelkit.core.allocation import Sample
from accelkit.core.dcgm import DCGM, LABELS, as_dcgm
from accelkit.core.model import Holder, Holding, Locality, Placement
from accelkit.core.samples import believed
from accelkit.core.values import FrozenMap, HolderKind
from tests.core.things import gpu, of

FIRST, SECOND = (
    gpu(
        name,
        product="H",
        locality=Locality(pci_address=f"0000:0{place}:00.0"),
        attributes={"uuid": f"GPU-{name}"},
    )
    for place, name in enumerate("ba")
)
PART = gpu("b-p", parent=of("b"), placement=Placement(profile="1g", start=0, size=1))
DEVICES = {d.id: d for d in (SECOND, FIRST, PART)}


def series(
    *samples: tuple[str, str, float, str, str], holdings: tuple[Holding, ...] = ()
) -> dict[str, list[tuple[dict[str, str], float]]]:
    """By name labels that are not empty, and the value."""
    made = [
        Sample(device=of(name), metric=m, value=v, labels=FrozenMap({key: own} if key else {}))
        for name, m, v, key, own in samples
    ]
    measured, wrong = believed(made, DEVICES)
    assert wrong == {}
    return {
        name: [
            ({k: text for k, text in zip(LABELS, labels, strict=True) if text}, value)
            for labels, value in found.items()
        ]
        for name, found in as_dcgm(measured, DEVICES, holdings, "n1").items()
        if found
    }


def held(pod: str | None, device: str = "b") -> Holding:
    holder = Holder(kind=HolderKind.POD, namespace="ns", pod=pod, container="main")
    return Holding(device=of(device), through="kubelet", holder=holder)


def test_values_are_in_units_of_dcgm_and_devices_numbered_by_place() -> None:
    found = series(
        ("a", "hw_gpu_utilization_ratio", 0.25, "task", "general"),
        ("a", "hw_gpu_utilization_ratio", 0.5, "task", "tensor"),
        ("b", "hw_energy_joules_total", 2.0, "", ""),
    )

    def whose(number: int, name: str) -> dict[str, str]:
        where = {"pci_bus_id": f"00000000:0{number}:00.0", "device": f"toy{number}"}
        own = {"gpu": str(number), "UUID": f"GPU-{name}", "hostname": "n1", "modelName": "H"}
        return {**where, **own}

    assert found == {
        "DCGM_FI_DEV_GPU_UTIL": [(whose(1, "a"), 25.0)],
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": [(whose(0, "b"), 2000.0)],
    }


def test_free_memory_is_what_is_not_in_use() -> None:
    found = series(
        ("a", "hw_memory_usage_bytes", 2.0**30, "", ""),
        ("a", "hw_memory_size_bytes", 3 * 2.0**30, "", ""),
        ("b", "hw_memory_size_bytes", 3 * 2.0**30, "", ""),
    )

    assert [value for _, value in found["DCGM_FI_DEV_FB_USED"]] == [1024.0]
    assert [value for _, value in found["DCGM_FI_DEV_FB_FREE"]] == [2048.0]


def test_partition_is_told_by_its_gpu_and_profile() -> None:
    ((labels, _),) = series(("b-p", "hw_memory_usage_bytes", 0.0, "", ""))["DCGM_FI_DEV_FB_USED"]

    assert (labels["gpu"], labels["GPU_I_PROFILE"], labels["UUID"]) == ("0", "1g", "b-p")


def test_every_pod_of_a_shared_device_has_a_series() -> None:
    pods = (held("two"), held("one"), held("one"), held(None))

    found = series(("b", "hw_power_watts", 7.0, "", ""), holdings=pods)

    told = found["DCGM_FI_DEV_POWER_USAGE"]
    assert [(labels["pod"], labels["namespace"], labels["container"]) for labels, _ in told] == [
        ("one", "ns", "main"),
        ("two", "ns", "main"),
    ]
    assert [value for _, value in told] == [7.0, 7.0]


def test_no_name_is_there_twice() -> None:
    names = [metric.name for metric in DCGM]

    assert len(set(names)) == len(names)


def test_what_nobody_measured_has_no_series() -> None:
    assert series() == {}
