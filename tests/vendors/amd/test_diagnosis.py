import os
from pathlib import Path

import pytest

from accelkit import AccessDenied, SourceError
from accelkit.core.host import Door, Host
from tests.vendors.amd.bench import Bench, Make


def test_nothing_is_wrong_with_a_sound_host(bench: Make) -> None:
    assert bench("mi300x", 2).findings() == {}


def test_host_without_gpus_is_told(bench: Make) -> None:
    made = bench("mi210", 1)
    made.do("remove gpu-0")

    assert [*made.findings()] == ["hardware"]


@pytest.mark.parametrize(
    "verb,suspect,sure",
    [
        ("unload", "the amdgpu kernel module", True),
        ("no-kfd", "the kernel", True),
        ("unsupport gpu-0", "KFD", False),
        ("rubbish gpu-0 current_compute_partition", "amdgpu", False),
        ("bind gpu-0 vfio-pci", "vfio-pci", False),
        ("hold gpu-0 4711", "processes that use KFD", False),
    ],
)
def test_cause_is_found(bench: Make, verb: str, suspect: str, *, sure: bool) -> None:
    made = bench("mi300x", 1)
    made.do(verb)
    findings = made.findings()

    assert suspect in findings
    assert findings[suspect].sure is sure
    assert findings[suspect].proof
    assert findings[suspect].remedy


def test_gpu_whose_driver_cannot_be_looked_at_costs_no_other_finding(bench: Make) -> None:
    """Nothing at all was found then."""
    made = bench("mi210", 2)
    first = made.devices()[0]
    made.do("bind gpu-1 vfio-pci")
    link = made.function(first, "driver")

    class Closed(Door):
        def resolve(self, path: str) -> str:
            if path == link:
                raise AccessDenied(f"{path}: this process may not resolve it")
            return super().resolve(path)

    found = Bench(made.directory, Closed(made.host), made.vendor).findings()

    assert sorted(found) == ["the agent's rights", "vfio-pci"]


def test_missing_partitions_are_counted(bench: Make) -> None:
    """Seen elsewhere: 63 of 64 partitions, and tools that said nothing."""
    made = bench("mi300x", 8)
    made.do("minors 63", "mode CPX")
    (finding,) = made.vendor.diagnose(made.host)

    assert finding.suspect == "the kernel's device numbers"
    assert finding.proof == "the modes of the GPUs stand for 64 partitions, 63 are there"


def test_device_file_that_is_missing_or_closed_is_told(bench: Make) -> None:
    made = bench("mi210", 1)
    closed = made.directory + "/dev/dri/renderD128"
    os.chmod(closed, 0o660)  # noqa: PTH101 - of the machine
    permissions = made.findings()["permissions"]
    Path(closed).unlink()

    assert "renderD128 has mode 660" in permissions.proof
    assert "supplementalGroups" in permissions.remedy
    assert made.findings()["device files"].proof == "/dev/dri/renderD128 is not there"


class Dark(Door):
    """KFD cannot be listed."""

    def __init__(self, host: Host, error: SourceError) -> None:
        super().__init__(host)
        self.error = error

    def names(self, path: str) -> tuple[str, ...]:
        if "topology" in path:
            raise self.error
        return super().names(path)


@pytest.mark.parametrize(
    "error, suspect",
    [
        (SourceError("cannot read it: Input/output error"), "KFD"),
        (AccessDenied("this process may not list it"), "the agent's rights"),
    ],
)
def test_source_that_fails_is_told(bench: Make, error: SourceError, suspect: str) -> None:
    """KFD was suspected where a right was missing."""
    made = bench("mi210", 1)
    dark = Bench(made.directory, Dark(made.host, error), made.vendor)

    assert dark.findings()[suspect].proof == str(error)
