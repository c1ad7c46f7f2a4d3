from pathlib import Path

import pytest

from accelkit.vendors.nvidia import diagnosis
from tests.vendors.nvidia.bench import Bench, Make


def suspects(bench: Bench) -> list[str]:
    return [finding.suspect for finding in bench.findings()]


def test_nothing_is_wrong_with_a_healthy_host(bench: Make) -> None:
    assert bench("h100", 2).findings() == []


@pytest.mark.parametrize(
    "verb,suspect",
    [
        ("unload", "the nvidia kernel module"),
        ("mismatch", "driver and library have different versions"),
        ("uninstall", "NVML"),
        ("remove gpu-0", "hardware"),
        ("bind gpu-0 nouveau", "nouveau"),
        ("bind gpu-0 vfio-pci", "vfio-pci"),
        ("persistence gpu-0 2", "persistence mode"),
        ("lose gpu-0", "the GPU with index 0"),
        ("hang gpu-0 2s", "the GPU with index 0"),
    ],
)
def test_cause_is_named_first(
    bench: Make, monkeypatch: pytest.MonkeyPatch, verb: str, suspect: str
) -> None:
    """Seen elsewhere: a crash loop with a hint that did not help."""
    monkeypatch.setattr(diagnosis, "_ANSWER_S", 0.5)
    made = bench("h100", 1)
    made.do(verb)

    assert suspects(made)[0] == suspect
    assert all(f.proof and f.remedy and f.symptom for f in made.findings())


def test_missing_device_files_are_named_one_by_one(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("no-nodes")

    assert [f.proof for f in made.findings()] == [
        "/dev/nvidiactl is not there",
        "/dev/nvidia-uvm is not there",
    ]


def test_device_file_that_only_root_may_use_is_named(bench: Make) -> None:
    made = bench("h100", 1)
    Path(made.directory, "dev/nvidia0").chmod(0o600)

    assert [(f.suspect, f.proof) for f in made.findings()] == [
        ("permissions", "/dev/nvidia0 has mode 600")
    ]


def test_missing_driver_files_are_named(bench: Make) -> None:
    made = bench("h100", 1)
    Path(made.directory, "usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06").unlink()

    assert suspects(made) == ["driver libraries"]


def test_gpu_that_the_driver_does_not_list_is_missed(bench: Make) -> None:
    made = bench("h100", 2)
    made.do("bind gpu-1 none")

    assert suspects(made) == ["some GPUs"]


@pytest.mark.parametrize("verb", ["bind gpu-0 vfio-pci", "bind gpu-0 nouveau", "exclude gpu-0"])
def test_gpu_that_somebody_keeps_from_the_driver_is_not_missed(bench: Make, verb: str) -> None:
    made = bench("h100", 2)
    made.do(verb)

    assert "some GPUs" not in suspects(made)


def test_versions_that_differ_are_told(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mismatch")
    first, second = made.findings()

    assert "that of the loaded module is 575.57.08" in first.proof
    assert "libcuda.so.575.57.08" in second.proof


def test_platform_is_the_cause_where_nvml_does_not_describe_it(bench: Make) -> None:
    made = bench("l4", 1)
    Path(made.directory, "dev/dxg").touch()

    assert suspects(made) == ["platform"]


def test_driver_that_answers_errors_is_the_cause(bench: Make) -> None:
    made = bench("l4", 1)
    made.fail("nvmlDeviceGetCount_v2", "error 999")

    assert suspects(made) == ["the driver"]


def test_toolkit_without_its_hook_is_named_and_one_with_it_is_not(bench: Make) -> None:
    made = bench("l4", 1)
    Path(made.directory, "usr/bin/nvidia-ctk").touch()
    without = suspects(made)
    Path(made.directory, "usr/bin/nvidia-cdi-hook").touch()

    assert (without, suspects(made)) == (["the container toolkit"], [])
