from pathlib import Path

import pytest

from accelkit.core.real_host import RealHost
from accelkit.vendors.tpu.vendor import Tpu, TpuOptions
from tests.vendors.tpu.bench import Make


@pytest.mark.parametrize("product,count", [("v5e", 8), ("v4", 4), ("7x", 4)])
def test_nothing_is_wrong_with_a_healthy_host(bench: Make, product: str, count: int) -> None:
    assert bench(product, count).findings() == []


@pytest.mark.parametrize(
    "product,verb,proof",
    [
        ("v5e", "unload", "no driver is bound to 0000:03:00.0, and not vfio-pci"),
        ("v5e", "bind tpu-0 gasket", "gasket is bound to 0000:03:00.0, and not vfio-pci"),
        ("v4", "unload", "0000:03:00.0 has no /dev/accelN: no driver is bound to it"),
        ("v4", "bind tpu-0 vfio-pci", "0000:03:00.0 has no /dev/accelN: vfio-pci has made none"),
        ("v5e", "rubbish tpu-0", "0000:03:00.0 is in no IOMMU group"),
        ("7x", "halve tpu-0", "only 1 of its 2 functions is there"),
        ("v5e", "hide tpu-0", "/dev/vfio/6 is not there"),
        ("v5e", "metadata none", "the topology is not known"),
        ("v5e", "lose tpu-0", "1 chip is there, and a host should have 2"),
        ("v5e", "hold tpu-0 7", "process 7 (python3) has its device file open and is in no pod"),
    ],
)
def test_cause_is_named(bench: Make, product: str, verb: str, proof: str) -> None:
    made = bench(product, 2)
    made.do(verb)
    found = made.findings()

    assert found[0].proof.startswith(proof)
    assert all(f.symptom and f.suspect and f.remedy for f in found)


def test_missing_file_is_told_from_a_busy_one(bench: Make) -> None:
    """Seen elsewhere: both were "cannot open", and new virtual machines were made for either."""
    made = bench("v4", 4)
    made.do("hide tpu-0", "hold tpu-1 7")

    assert [(f.suspect, f.remedy) for f in made.findings()] == [
        ("device files", "a restart of the virtual machine seldom brings it back: make a new one"),
        ("process 7 (python3)", "end it: a chip is opened by one process only"),
    ]


def test_file_that_only_root_may_open_is_told(bench: Make) -> None:
    made = bench("v5e", 1)
    made.path("/dev/vfio/6").chmod(0o600)

    assert [f.proof for f in made.findings()] == ["/dev/vfio/6 has mode 600"]


def test_host_without_tpus_is_told_so(tmp_path: Path) -> None:
    (finding,) = Tpu(TpuOptions()).diagnose(RealHost(str(tmp_path)))

    assert finding.suspect == "hardware"


def test_chips_of_two_generations_are_no_host_that_is_known(bench: Make) -> None:
    made = bench("v5e", 2)
    made.path("/sys/bus/pci/devices/0000:03:00.0/device").write_text("0x006f\n")

    assert made.findings()[0].proof == (
        "chips of several generations are on one host: TPU v5e, TPU v6e"
    )
