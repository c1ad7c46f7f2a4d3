from pathlib import Path

import pytest

from accelkit import ContainerEdits, MissingParts, Mount
from accelkit.vendors.intel.edits import ByPath
from accelkit.vendors.intel.vendor import IntelOptions
from tests.vendors.intel.bench import Make, grant


def paths(edits: ContainerEdits) -> list[str]:
    return [node.path for node in edits.nodes]


def test_container_gets_the_files_of_its_gpu_and_nothing_else(bench: Make) -> None:
    made = bench("arc-b580", 3)
    devices = made.devices()
    edits = made.vendor.edits(made.host, grant(*devices[:2]))

    assert [paths(edits.each[d.id]) for d in devices[:2]] == [
        ["/dev/dri/card0", "/dev/dri/renderD128"],
        ["/dev/dri/card1", "/dev/dri/renderD129"],
    ]
    assert edits.each[devices[0].id] == ContainerEdits(nodes=edits.each[devices[0].id].nodes)
    assert not edits.whole


def test_files_are_those_of_this_boot(bench: Make) -> None:
    """Numbers of cards change; whoever holds an old value gets the right files."""
    made = bench("arc-b580", 2)
    device = made.devices()[0]
    made.do("reboot")
    edits = made.vendor.edits(made.host, grant(device))

    assert paths(edits.each[device.id]) == ["/dev/dri/card1", "/dev/dri/renderD129"]


def test_virtual_function_brings_its_own_files_only(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2")
    part = made.devices()[2]
    edits = made.vendor.edits(made.host, grant(part))

    assert paths(edits.each[part.id]) == ["/dev/dri/card2", "/dev/dri/renderD130"]


def test_management_engine_is_for_whoever_monitors(bench: Make) -> None:
    made = bench("arc-b580", 1)
    device = made.devices()[0]
    plain = made.vendor.edits(made.host, grant(device)).each[device.id]
    monitoring = made.vendor.edits(made.host, grant(device, admin=True)).each[device.id]

    assert "/dev/mei0" not in paths(plain)
    assert set(paths(monitoring)) == {*paths(plain), "/dev/mei0"}
    assert made.work.exists("/dev/mei0")


@pytest.mark.parametrize("by_path,mounts", [(ByPath.NONE, 0), (ByPath.ALL, 1)])
def test_links_by_path_are_all_there_or_none(bench: Make, by_path: ByPath, mounts: int) -> None:
    """Some of them broke frameworks that walk through the folder."""
    made = bench("arc-a770", 2, IntelOptions(by_path=by_path))
    devices = made.devices()
    edits = made.vendor.edits(made.host, grant(*devices))
    link = Mount(host_path="/dev/dri/by-path", container_path="/dev/dri/by-path")

    assert [e.mounts for e in edits.each.values()] == [(link,) * mounts] * 2


def test_driver_of_intels_packages_is_told_to_programs(bench: Make) -> None:
    made = bench("max-1550", 1, machine={"backport": "1.25.2"})
    device = made.devices()[0]

    assert made.vendor.edits(made.host, grant(device)).each[device.id].env == {
        "NEO_ENABLE_I915_PRELIM_DETECTION": "1"
    }


@pytest.mark.parametrize("verb", ["unload", "lose gpu-0", "no-nodes", "bind gpu-0 vfio-pci"])
def test_gpu_whose_files_are_missing_is_refused(bench: Make, verb: str) -> None:
    made = bench("arc-b580", 1)
    device = made.devices()[0]
    made.do(verb)

    with pytest.raises(MissingParts):
        made.vendor.edits(made.host, grant(device))


def test_virtual_function_that_is_gone_is_refused(bench: Make) -> None:
    made = bench("arc-pro-b60", 1)
    made.do("vfs gpu-0 2")
    part = made.devices()[1]
    made.do("vfs gpu-0 0")

    with pytest.raises(MissingParts, match="no driver shows device files"):
        made.vendor.edits(made.host, grant(part))


def test_every_path_of_edits_is_there(bench: Make) -> None:
    made = bench("flex-170", 2, IntelOptions(by_path=ByPath.ALL), {"backport": "1.25.2"})
    made.do("vfs gpu-0 4")
    usable = [d for d in made.devices() if d.usable]
    edits = made.vendor.edits(made.host, grant(*usable))
    wanted = [n.on_host for e in edits.each.values() for n in e.nodes]

    assert len(edits.each) == 5
    assert all(Path(made.directory + path).exists() for path in wanted)
