import attrs
import pytest

from accelkit import Holder, HolderKind, Holding, Severity
from accelkit.core.values import Standing
from accelkit.vendors.tpu.holders import Users
from tests.vendors.tpu.bench import Make


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("product", ["v5e", "7x", "v4"])
def test_process_that_has_a_chip_open_is_its_holder(bench: Make, product: str) -> None:
    """Seen elsewhere: groups of two digits were missed, and groups taken for indexes."""
    made = bench(product, 4)
    devices = made.devices()
    made.do("hold tpu-3 4711")

    assert list(made.vendor.holders(made.host, devices)) == [
        Holding(
            device=devices[3].id,
            through="process",
            holder=Holder(kind=HolderKind.FOREIGN, uid="4711"),
        )
    ]


def test_file_that_all_chips_share_makes_no_holder(bench: Make) -> None:
    made = bench("v5e", 2)
    made.do("hold tpu-0 7")
    link = made.path("/proc/7/fd/3")
    link.unlink()
    link.symlink_to("../../../dev/vfio/vfio")

    assert list(made.vendor.holders(made.host, made.devices())) == []


def test_process_in_no_pod_makes_its_chip_useless(bench: Make) -> None:
    made = bench("v5e", 4)
    one, other, *_ = made.devices()
    made.do("hold tpu-0 4711")
    (found,) = made.conditions(one)

    assert (found.code, found.severity) == ("busy-elsewhere", Severity.FATAL)
    assert found.message == "process 4711 (python3) has it open and is in no pod: end it"
    assert made.codes(other) == {}


def test_process_of_a_pod_uses_what_it_was_given(bench: Make) -> None:
    made = bench("v5e", 4)
    made.do("hold tpu-0 4711 pod")

    assert made.codes(made.devices()[0]) == {}


def test_process_that_may_not_be_looked_at_is_not_accused(bench: Make) -> None:
    made = bench("v5e", 1)
    made.do("hold tpu-0 4711")
    made.path("/proc/4711/cgroup").unlink()

    assert made.codes(made.devices()[0]) == {}


def test_process_without_a_name_is_told_by_its_number(bench: Make) -> None:
    made = bench("v5e", 1)
    made.do("hold tpu-0 4711")
    made.path("/proc/4711/comm").unlink()

    assert "process 4711 has it open" in made.conditions(made.devices()[0])[0].message


def test_one_look_serves_all_chips_for_a_while(bench: Make) -> None:
    made, clock = bench("v5e", 2), Clock()
    users = Users(clock)
    one, other = made.devices()
    users.know(one)
    users.know(other)

    def busy() -> list[bool]:
        return [bool([*users.conditions(made.host, d)]) for d in (one, other)]

    assert busy() == [False, False]
    made.do("hold tpu-1 9")
    assert busy() == [False, False]
    other = attrs.evolve(other, standing=Standing.STALE)  # as the core may have judged it
    assert busy() == [False, False]
    clock.now += 20
    assert busy() == [False, True]
    made.do("free tpu-1")
    clock.now += 20
    assert busy() == [False, False]


def test_chip_whose_files_changed_is_looked_at_anew(bench: Make) -> None:
    made, clock = bench("v5e", 1), Clock()
    users = Users(clock)
    (before,) = made.devices()
    assert not [*users.conditions(made.host, before)]
    made.do("reboot", "hold tpu-0 9")
    (after,) = made.devices()

    assert [c.code for c in users.conditions(made.host, after)] == ["busy-elsewhere"]


POD = "/pod1c7a2b3c-0d4e-4f5a-8b6c-7d8e9f0a1b2c/1f2e3d"
STATIC = "/pod9f8e7d6c5b4a39281706f5e4d3c2b1a0/1f2e3d"


@pytest.mark.parametrize(
    "cgroup, accused",
    [
        # As an agent in a cgroup namespace of its own sees it, of the kubelet's driver cgroupfs.
        (f"0::/../..{POD}", False),
        (f"0::/../../..{STATIC}", False),
        (f"0::/../../../besteffort{POD}", False),
        ("0::/../../kubepods-burstable-pod1c7a2b3c_0d4e_4f5a_8b6c_7d8e9f0a1b2c.slice/x", False),
        (f"12:devices:/kubepods{POD}\n1:name=systemd:/kubepods{POD}", False),
        ("0::/system.slice/podman-1c7a2b3c.scope", True),
        ("0::/user.slice/podcast", True),
        ("0::/", True),
    ],
)
def test_process_of_a_pod_is_known_wherever_its_cgroup_is_looked_at_from(
    bench: Make, cgroup: str, accused: bool
) -> None:
    made = bench("v5e", 1)
    made.do("hold tpu-0 4711")
    made.put("/proc/4711/cgroup", f"{cgroup}\n")

    assert ("busy-elsewhere" in made.codes(made.devices()[0])) is accused
