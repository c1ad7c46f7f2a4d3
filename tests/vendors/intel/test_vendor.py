from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

from accelkit import Device, Finished, Holder, HolderKind, Holding, Link, LinkKind, Version
from accelkit.core.host import Door
from accelkit.core.real_host import RealHost
from accelkit.core.vendor import abilities
from accelkit.vendors.intel.vendor import Intel
from tests.vendors.intel.bench import Bench, Make, grant


def test_vendor_says_what_it_can() -> None:
    assert abilities(Intel) == (
        *("diagnosis", "health", "holders", "links"),
        *("partitioning", "signals", "telemetry"),
    )
    assert (Intel.native, Intel.sets) == (False, False)


def holders(made: Bench) -> list[Holding]:
    return list(made.vendor.holders(made.host, made.devices()))


def test_processes_hold_what_they_have_open(bench: Make) -> None:
    made = bench("arc-pro-b60", 2)
    made.do("vfs gpu-0 2", "hold gpu-0 4711 1", "hold gpu-1 12", "hold gpu-1 4711")
    _, _, second, other = made.devices()

    def by(device: object, pid: str) -> Holding:
        holder = Holder(kind=HolderKind.FOREIGN, uid=pid)
        return Holding(device=device, through="process", holder=holder)  # type: ignore[arg-type]  # an id

    assert holders(made) == [by(other.id, "12"), by(second.id, "4711"), by(other.id, "4711")]
    made.do("free gpu-0", "free gpu-1")
    assert holders(made) == []


def test_gpus_below_one_switch_are_linked(bench: Make) -> None:
    made = bench("flex-170", 4)
    made.do("vfs gpu-0 2")
    devices = made.devices()
    whole = [d.id for d in devices if d.parent is None]

    assert list(made.vendor.links(made.host, devices)) == [
        Link.between(whole[0], whole[1], LinkKind.SWITCH),
        Link.between(whole[2], whole[3], LinkKind.SWITCH),
    ]


def test_samples_are_what_the_driver_shows(bench: Make) -> None:
    made = bench("arc-b580", 1)
    found = {(s.metric, *s.labels.items()): s.value for s in made.samples()}

    assert found == {
        ("hw_memory_size_bytes",): 12 * 2.0**30,
        ("hw_temperature_celsius", ("sensor", "gpu")): 48.0,
        ("hw_temperature_celsius", ("sensor", "memory")): 50.0,
        ("hw_energy_joules_total",): 123.456789,
        ("hw_power_limit_watts",): 190.0,
        ("hw_frequency_hertz", ("domain", "tile0/gt0")): 1.2e9,
        ("hw_frequency_hertz", ("domain", "tile0/gt1")): 1.2e9,
    }


def test_samples_that_a_driver_does_not_show_are_absent(bench: Make) -> None:
    """Another version has no temperatures: that is not 0 °C."""
    made = bench("max-1550", 1)
    (made.sysfs() / "hwmon/hwmon3/temp1_input").unlink()

    assert {s.metric for s in made.samples()} == {
        "hw_memory_size_bytes",
        "hw_energy_joules_total",
        "hw_power_limit_watts",
        "hw_frequency_hertz",
    }
    assert made.codes(made.devices()[0]) == {}


def test_energy_is_that_of_the_package_where_the_card_has_none(bench: Make) -> None:
    made = bench("arc-b580", 1)
    (made.sysfs() / "hwmon/hwmon3/energy1_input").unlink()

    assert [s.value for s in made.samples() if s.metric == "hw_energy_joules_total"] == [100.0]


@pytest.mark.parametrize("text", ["", "\0", "-1", "9" * 40, "1e9", "300000000"])
def test_sample_that_makes_no_sense_is_absent(bench: Make, text: str) -> None:
    made = bench("arc-b580", 1)
    for name in ("temp2_input", "energy1_input"):
        (made.sysfs() / "hwmon/hwmon3" / name).write_text(text)

    places = [s.labels.get("sensor", "") for s in made.samples()]
    assert ("gpu" in places) == (text == "-1")
    assert all(s.value >= 0 for s in made.samples() if s.metric == "hw_energy_joules_total")


def test_gpus_that_are_gone_are_left_out_of_samples(bench: Make) -> None:
    made = bench("arc-b580", 2)
    devices = made.devices()
    made.do("lose gpu-0")
    found = {s.device for s in made.vendor.samples(made.host, devices)}

    assert devices[1].id in found


def test_software_is_what_the_kernel_says(bench: Make) -> None:
    made = bench("arc-b580", 1)

    assert made.vendor.software(made.host) == {"kernel": "7.3.0"}
    assert made.vendor.software(RealHost(str(made.sysfs()))) == {}


def test_version_that_makes_no_sense_is_left_out(bench: Make) -> None:
    made = bench("arc-b580", 1)
    made.put("/sys/module/xe/version", "newest")

    assert "driverVersion" not in made.devices()[0].attributes
    made.put("/sys/module/xe/version", "1.2.3-rc1")
    assert made.devices()[0].attributes["driverVersion"] == Version(1, 2, 3, "rc1")


# Diagnosis.


def test_host_that_is_well_has_no_findings(bench: Make) -> None:
    assert [f for f in bench("arc-b580", 2).findings() if f.sure] == []


def test_host_without_gpus_is_told(bench: Make) -> None:
    made = bench("arc-b580", 1)
    made.do("lose gpu-0")

    (finding,) = made.findings()
    assert (finding.suspect, finding.sure) == ("hardware", False)


@pytest.mark.parametrize(
    "verb,suspects",
    [
        ("unload", ["the kernel modules i915 and xe", "driver-not-ready"]),
        ("bind gpu-0 none", ["driver-not-ready"]),
        ("bind gpu-0 nouveau", ["driver-not-ready"]),
        ("bind gpu-0 vfio-pci", ["vfio-pci"]),
        ("wedge gpu-0 vendor-specific", ["survivability-mode"]),
        ("no-nodes", ["device files", "device files"]),
        ("vfs gpu-0 2", ["its virtual functions"]),
    ],
)
def test_each_reason_why_a_gpu_is_not_offered_is_said(
    bench: Make, verb: str, suspects: list[str]
) -> None:
    """Plugins that logged nothing left people without a clue."""
    made = bench("arc-pro-b60", 1)
    made.do(verb)
    found = made.findings()

    assert [f.suspect for f in found] == suspects
    assert all(f.proof and f.remedy for f in found)


def test_files_that_only_root_may_open_are_told(bench: Make) -> None:
    made = bench("arc-b580", 1)
    made.work.resolve("/dev/dri/renderD128")
    (made.sysfs() / "device").read_text()
    file = made.put("/dev/dri/renderD128")
    file.chmod(0o660)

    (finding,) = made.findings()
    assert (finding.suspect, "660" in finding.proof) == ("permissions", True)


def test_no_program_of_the_host_is_run(bench: Make) -> None:
    """Tools that called modprobe failed in containers without it."""
    made = bench("arc-pro-b60", 1)
    whole = made.devices()[0]
    ran: list[Sequence[str]] = []

    class Noting(Door):
        def run(self, argv: Sequence[str], timeout_s: float) -> Finished:
            ran.append(argv)
            return super().run(argv, timeout_s)

    host = Noting(made.work)
    made.vendor.set_mode(host, whole, "vfs-2")
    devices = [d for d in made.vendor.discover(host) if isinstance(d, Device)]
    for device in devices:
        list(made.vendor.conditions(host, device, ()))
    list(made.vendor.samples(host, tuple(devices)))
    list(made.vendor.links(host, tuple(devices)))
    list(made.vendor.holders(host, tuple(devices)))
    made.vendor.edits(host, grant(*(d for d in devices if d.usable)))
    made.do("unload")
    (first, *_) = made.vendor.diagnose(host)

    assert first.remedy.startswith("modprobe xe or i915 on the host")
    assert not any("CAP" in c or "SYS" in c for c in Intel.access.capabilities)
    assert (len(devices), ran) == (3, [])


def test_what_is_read_and_written_is_declared(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    whole = made.devices()[0]
    wrote: list[str] = []

    class Noting(type(made.work)):  # type: ignore[misc]  # the machine's own door
        def write(self, path: str, text: str) -> None:
            wrote.append(path)
            super().write(path, text)

    made.vendor.set_mode(Noting(made.directory), whole, "vfs-2")

    assert wrote
    assert all(any(fnmatchcase(p, glob) for glob in Intel.access.write) for p in wrote)
